//! The receiver's calls of its store. A store is code from outside this crate: if a call panics, it counts as failed.

use std::sync::Arc;

#[cfg(feature = "metrics")]
use crate::catch_panic::catch_panic;
use crate::catch_panic::catch_panic_in;
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

    pub(super) async fn call<'a, T>(
        &'a self,
        call: impl FnOnce(&'a dyn DedupeStore) -> StoreFuture<'a, T>,
    ) -> Result<T, StoreError> {
        guarded(|| call(&*self.0)).await
    }

    /// Returns the store's own numbers, if the store reports them.
    #[cfg(feature = "metrics")]
    pub(crate) fn observe(&self) -> Option<StoreStats> {
        catch_panic(|| self.0.observe()).ok().flatten()
    }
}

/// Makes a call of a store, which is code from outside. A panic is an error of the kind
/// [`Unavailable`](StoreErrorKind::Unavailable), whether it happens in the call itself or when its
/// future is polled. The receiver calls its own store like this, and so does a program that calls a
/// store, a sink or an engine by itself.
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
pub async fn guarded<'a, T, C>(call: C) -> Result<T, StoreError>
where
    C: FnOnce() -> StoreFuture<'a, T>,
{
    let answer = catch_panic_in(async { call().await }).await;
    answer.unwrap_or_else(|_| {
        let panicked = StoreError::new(StoreErrorKind::Unavailable);
        Err(panicked.caused_by("the store panicked"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_on;
    use crate::dedupe::Ownership;

    #[test]
    fn a_call_that_panics_is_an_error() {
        let calls: [fn() -> StoreFuture<'static, Ownership>; 2] = [
            || panic!("made-up panic of the call"),
            || StoreFuture::boxed(async { panic!("made-up panic of the future") }),
        ];
        for call in calls {
            let error = block_on(guarded(call)).unwrap_err();
            let below = std::error::Error::source(&error).map(ToString::to_string);
            assert_eq!(error.kind(), StoreErrorKind::Unavailable);
            assert_eq!(below.as_deref(), Some("the store panicked"));
        }
    }
}
