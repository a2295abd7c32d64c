//! Calls of code from outside this crate: a store, a hook, a recorder of metrics. A panic of it is caught.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use hookgate::{
    dedupe::{StoreError, StoreErrorKind, StoreFuture},
    internal::{catch_panic, catch_store_panic},
};

pub(super) type Hook<T> = Arc<dyn Fn(&T) + Send + Sync>;

/// Calls a hook, if it is set.
pub(super) fn call_hook<T>(hook: Option<&Hook<T>>, report: &T) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_panic_of_a_store_or_a_hook_is_caught() {
        let limit = Duration::from_secs(1);
        for panics in [
            || panic!("made-up panic of the call"),
            || StoreFuture::boxed(async { panic!("made-up panic of the future") }),
        ] {
            let error = call_store::<()>(limit, panics).await.unwrap_err();
            let below = std::error::Error::source(&error).map(ToString::to_string);
            assert_eq!(error.kind(), StoreErrorKind::Unavailable);
            assert_eq!(below.as_deref(), Some("the store panicked"));
        }
        let hook: Hook<()> = Arc::new(|()| panic!("made-up panic of the hook"));
        call_hook(Some(&hook), &());
    }
}
