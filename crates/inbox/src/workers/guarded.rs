//! Calls of code that is not ours: of services, hooks and stores. Each may panic, and a store may hang.

use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hookgate::{StoreError, StoreErrorKind, StoreFuture};
use tokio::time::timeout;

/// The message of a panic.
#[derive(Debug)]
pub(super) struct Panicked(String);

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Panicked {}

/// Runs `call` and catches its panic.
pub(super) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| Panicked(message(payload)))
}

fn message(payload: Box<dyn Any + Send>) -> String {
    let text = match payload.downcast::<&'static str>() {
        Ok(text) => return (*text).to_owned(),
        Err(payload) => payload.downcast::<String>(),
    };
    match text {
        Ok(text) => *text,
        Err(other) => {
            mem::forget(other); // its destructor may panic again
            "a panic without a text".to_owned()
        }
    }
}

pub(super) type Hook<T> = Arc<dyn Fn(&T) + Send + Sync>;

/// Calls a hook, if it is set.
pub(super) fn call<T>(hook: Option<&Hook<T>>, report: &T) {
    if let Some(hook) = hook {
        let _ = caught(|| hook(report));
    }
}

/// Calls a store, and waits for its answer for at most `limit`. The call may hang, fail or panic: each is an error.
pub(super) async fn call_store<'a, T>(
    limit: Duration,
    call: impl FnOnce() -> StoreFuture<'a, T>,
) -> Result<T, StoreError> {
    let panicked = |_| {
        let error = StoreError::new(StoreErrorKind::Unavailable);
        error.caused_by("the store panicked")
    };
    let mut future = caught(call).map_err(panicked)?;
    let answered = poll_fn(|context| {
        let polled = caught(|| Pin::new(&mut future).poll(context));
        polled.unwrap_or_else(|error| Poll::Ready(Err(panicked(error))))
    });
    let answered = timeout(limit, answered).await;
    let _ = caught(|| drop(future));
    answered.unwrap_or_else(|_| Err(StoreError::new(StoreErrorKind::TimedOut)))
}
