//! The life of a process in a replay: after its end, no effect of it reaches the outside any more.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use tokio::sync::Notify;

/// Shared by all parts that end together.
#[derive(Clone, Default)]
pub(super) struct EndSignal(Arc<Inner>);

#[derive(Default)]
struct Inner {
    over: AtomicBool,
    ends: Notify,
}

impl EndSignal {
    pub(super) fn has_ended(&self) -> bool {
        self.0.over.load(Ordering::SeqCst)
    }

    pub(super) fn end(&self) {
        self.0.over.store(true, Ordering::SeqCst);
        self.0.ends.notify_waiters();
    }

    /// Polls the future for as long as the process lives. `None` once it has ended: the future is polled no more.
    pub(super) async fn until_end<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut ends = pin!(self.0.ends.notified());
        // The task listens before it reads the flag, so that it can't miss the end between the two steps.
        ends.as_mut().enable();
        poll_fn(|context| {
            if self.has_ended() || ends.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            future.as_mut().poll(context).map(Some)
        })
        .await
    }
}
