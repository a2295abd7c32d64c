//! Calls of code that is not ours: of services, hooks and stores. Each may panic, and a store may hang.

use std::any::Any;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use hookgate::{
    dedupe::{StoreError, StoreErrorKind, StoreFuture},
    receiver::guarded,
};
use tokio::time::timeout;

use crate::line::one_line;

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

/// Takes the text out of a payload, and drops it. Its destructor can panic with a payload whose destructor panics too; that one is leaked.
fn message(payload: Box<dyn Any + Send>) -> String {
    let text = match payload.downcast_ref::<&'static str>() {
        Some(text) => Some(*text),
        None => payload.downcast_ref::<String>().map(String::as_str),
    };
    let text = text.map_or_else(|| "a panic without a text".to_owned(), one_line);
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(another);
    }
    text
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
    let answered = timeout(limit, guarded(call)).await;
    answered.unwrap_or_else(|_| Err(StoreError::new(StoreErrorKind::TimedOut)))
}
