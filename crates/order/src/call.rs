//! Calls of code from outside this crate: a store, a hook, a recorder of metrics. A panic of it is caught.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use hookgate::{
    dedupe::{StoreError, StoreErrorKind, StoreFuture},
    receiver::{catch_panic, guarded},
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
    let answered = timeout(limit, guarded(call)).await;
    answered.unwrap_or_else(|_| Err(StoreError::new(StoreErrorKind::TimedOut)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panics when it is dropped, with a payload that does the same, this many times.
    struct Bomb(u8);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if let Some(left) = self.0.checked_sub(1) {
                std::panic::panic_any(Self(left));
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_of_a_store_or_a_hook_is_caught_wherever_it_happens() {
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
        // Its future panics when it is dropped: after its answer, and when it is given up.
        let held = |bomb: Bomb, waits: bool| {
            StoreFuture::boxed(async move {
                let _bomb = bomb;
                if waits {
                    std::future::pending::<()>().await;
                }
                Ok(())
            })
        };
        let given_up = call_store(limit, || held(Bomb(3), true)).await;
        assert_eq!(given_up.unwrap_err().kind(), StoreErrorKind::TimedOut);
        drop(call_store(limit, || held(Bomb(3), true)));
        let hook: Hook<()> = Arc::new(|()| drop(Bomb(3)));
        call_hook(Some(&hook), &());
    }
}
