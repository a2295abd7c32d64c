//! The future of a call of a store, a sink or a provider, and a way to wait for one without a
//! runtime.

use std::fmt;
use std::future::{Future, Ready, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::store_error::StoreError;

/// The future of a call of a store, a sink or a provider, which ends in a `T` or in an `E`.
///
/// An implementation that answers at once uses [`ready`](Self::ready) and allocates nothing; one
/// that waits uses [`boxed`](Self::boxed).
///
/// ```
/// use hookgate::{
///     block_on,
///     dedupe::{StoreError, StoreErrorKind, StoreFuture},
/// };
///
/// let at_once = StoreFuture::<u64>::ready(Ok(1));
/// assert_eq!(block_on(at_once).unwrap(), 1);
/// let later = StoreFuture::<u64>::boxed(async { Err(StoreError::new(StoreErrorKind::TimedOut)) });
/// assert_eq!(block_on(later).unwrap_err().kind(), StoreErrorKind::TimedOut);
/// ```
pub struct StoreFuture<'a, T, E = StoreError>(Inner<'a, Result<T, E>>);

enum Inner<'a, A> {
    Ready(Ready<A>),
    Boxed(Pin<Box<dyn Future<Output = A> + Send + 'a>>),
}

impl<'a, T, E> StoreFuture<'a, T, E> {
    /// Returns an answer that is ready at once.
    #[must_use]
    pub fn ready(answer: Result<T, E>) -> Self {
        Self(Inner::Ready(ready(answer)))
    }

    /// Returns an answer that has to be waited for.
    #[must_use]
    pub fn boxed(future: impl Future<Output = Result<T, E>> + Send + 'a) -> Self {
        Self(Inner::Boxed(Box::pin(future)))
    }
}

impl<T, E> Future for StoreFuture<'_, T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, E>> {
        match &mut self.0 {
            Inner::Ready(answer) => Pin::new(answer).poll(context),
            Inner::Boxed(future) => future.as_mut().poll(context),
        }
    }
}

impl<T, E> fmt::Debug for StoreFuture<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreFuture")
    }
}

/// Runs a future to its end on this thread. The thread sleeps while it waits. For servers without a
/// runtime.
///
/// [`MemoryStore`](crate::MemoryStore) answers at once, so with it the thread never sleeps. A store
/// that needs a runtime of its own needs that runtime's `block_on`.
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
