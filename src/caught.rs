//! Panics of code that is not ours, kept where they happen.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The call panicked. What it said has gone to the panic hook already.
#[derive(Debug)]
pub(crate) struct Panicked;

/// Runs `call`, and keeps its panic in.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    // Unwind safety: what was shared with the call is dropped with it or locked against poisoning.
    catch_unwind(AssertUnwindSafe(call)).map_err(discard)
}

/// A payload can panic in its own destructor.
fn discard(payload: Box<dyn Any + Send>) -> Panicked {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    Panicked
}
