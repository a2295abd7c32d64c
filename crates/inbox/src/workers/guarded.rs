//! Calls of code that is not ours: of services, hooks and stores. Each may panic, and a store may hang.

use std::sync::Arc;
use std::time::Duration;

use hookgate::{
    dedupe::{StoreError, StoreErrorKind, StoreFuture},
    receiver::{catch_panic, catch_store_panic},
};
use tokio::time::timeout;

pub(super) type Hook<T> = Arc<dyn Fn(&T) + Send + Sync>;

/// Calls a hook, if it is set.
pub(super) fn call<T>(hook: Option<&Hook<T>>, report: &T) {
    if let Some(hook) = hook {
        let _ = catch_panic(|| hook(report));
    }
}

/// Calls a store, and waits for its answer for at most `limit`. The call may hang, fail or panic: each is an error.
pub(super) async fn call_store<'a, T>(
    limit: Duration,
    call: impl FnOnce() -> StoreFuture<'a, T>,
) -> Result<T, StoreError> {
    let answered = timeout(limit, catch_store_panic(call)).await;
    answered.unwrap_or_else(|_| Err(StoreError::new(StoreErrorKind::TimedOut)))
}
