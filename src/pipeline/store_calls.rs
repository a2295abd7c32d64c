//! The receiver's calls of its store. A store is code from outside this crate: if a call panics, it counts as failed.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::caught::caught;
#[cfg(feature = "metrics")]
use crate::dedupe::StoreStats;
use crate::dedupe::{DedupeStore, StoreError, StoreErrorKind, StoreFuture};

/// The store, for the receiver and its claims. No call of it panics.
#[derive(Clone, Debug)]
pub(crate) struct Store(Arc<dyn DedupeStore>);

impl Store {
    pub(crate) fn new(store: Arc<dyn DedupeStore>) -> Self {
        Self(store)
    }

    pub(super) fn call<'a, T>(
        &'a self,
        call: impl FnOnce(&'a dyn DedupeStore) -> StoreFuture<'a, T>,
    ) -> Call<'a, T> {
        Call::new(|| call(&*self.0))
    }

    /// Returns the store's own numbers, if the store reports them.
    #[cfg(feature = "metrics")]
    pub(crate) fn observe(&self) -> Option<StoreStats> {
        caught(|| self.0.observe()).ok().flatten()
    }
}

/// Makes a call of a store, which is code from outside. A panic is an error of the kind
/// [`Unavailable`](StoreErrorKind::Unavailable), wherever it happens: in the call itself, when its future is polled, or when the future
/// is dropped. The receiver calls its own store like this, and so does a program that calls a store, a sink or an engine by itself.
///
/// ```
/// use hookgate::{
///     block_on,
///     dedupe::{StoreErrorKind, StoreFuture},
///     receiver::guarded,
/// };
///
/// let error = block_on(guarded(|| -> StoreFuture<'_, ()> { panic!("made up") })).unwrap_err();
/// assert_eq!(error.kind(), StoreErrorKind::Unavailable);
/// ```
pub fn guarded<'a, T, C>(call: C) -> impl Future<Output = Result<T, StoreError>> + use<'a, T, C>
where
    C: FnOnce() -> StoreFuture<'a, T>,
{
    Call::new(call)
}

/// One call of the store. A panic is an error of the kind `Unavailable`, wherever it happens: in the call itself, when its
/// future is polled, or when the future is dropped.
pub(crate) struct Call<'a, T>(Option<StoreFuture<'a, T>>);

impl<'a, T> Call<'a, T> {
    pub(crate) fn new(call: impl FnOnce() -> StoreFuture<'a, T>) -> Self {
        Self(caught(call).ok())
    }

    /// Drops the call. A panic of its future is caught.
    fn end(&mut self) {
        if let Some(future) = self.0.take() {
            let _ = caught(|| drop(future));
        }
    }
}

impl<T> Future for Call<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = match &mut self.0 {
            Some(future) => caught(|| Pin::new(future).poll(context)).ok(),
            None => None,
        };
        polled.unwrap_or_else(|| {
            self.end(); // a future that has panicked is not polled again
            let panicked = StoreError::new(StoreErrorKind::Unavailable);
            Poll::Ready(Err(panicked.caused_by("the store panicked")))
        })
    }
}

impl<T> Drop for Call<'_, T> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_on;
    use crate::dedupe::Ownership;

    fn fails(call: Call<'_, Ownership>) -> bool {
        let error = block_on(call).unwrap_err();
        let below = std::error::Error::source(&error).map(ToString::to_string);
        error.kind() == StoreErrorKind::Unavailable
            && below.as_deref() == Some("the store panicked")
    }

    #[test]
    fn a_call_that_panics_is_an_error() {
        assert!(fails(Call::new(|| panic!("made-up panic of the call"))));
        assert!(fails(Call::new(|| StoreFuture::boxed(async {
            panic!("made-up panic of the future")
        }))));
    }

    #[test]
    fn a_future_that_panics_when_it_is_dropped_changes_no_answer() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("made-up panic of a destructor");
            }
        }
        impl Future for Bomb {
            type Output = Result<Ownership, StoreError>;

            fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
                Poll::Ready(Ok(Ownership::Held))
            }
        }
        let call = || Call::new(|| StoreFuture::boxed(Bomb));
        assert_eq!(block_on(call()).unwrap(), Ownership::Held);
        drop(call()); // given up
    }
}
