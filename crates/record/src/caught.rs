//! Catches panics of code from outside this crate.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `call` and catches its panic, which the panic hook has already reported.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Option<T> {
    // Unwind safety: state shared with the call is dropped with it, or is locked against poisoning.
    let payload = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(returned) => return Some(returned),
        Err(payload) => payload,
    };
    // A payload may panic when it is dropped. The payload of that panic is leaked.
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
    None
}
