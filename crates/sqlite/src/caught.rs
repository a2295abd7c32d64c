//! Catches panics of code from outside this crate: the user's clock.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The call panicked. The panic hook has had the message.
pub(crate) struct Panicked;

/// Runs `call` and catches its panic.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    // Unwind safety: state shared with the call is dropped with it.
    catch_unwind(AssertUnwindSafe(call)).map_err(discard)
}

/// Drops the payload. If its destructor panics too, that second payload is leaked: dropping it could go on without end.
fn discard(payload: Box<dyn Any + Send>) -> Panicked {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
    Panicked
}
