//! Waits for a store without a runtime.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Runs a future to its end on this thread. The thread sleeps while it waits. For servers without a runtime.
///
/// [`MemoryStore`](crate::MemoryStore) answers at once, so with it the thread never sleeps. A store that needs a runtime of its
/// own needs that runtime's `block_on`.
///
/// ```
/// assert_eq!(hookgate::block_on(async { 1 + 1 }), 2);
/// ```
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            // The thread's token keeps a wake-up that happens between poll and park.
            Poll::Pending => thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
