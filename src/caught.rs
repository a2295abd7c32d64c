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

/// A payload can panic in its own destructor, with another one that does so too. That one is leaked: there is no end to it.
fn discard(payload: Box<dyn Any + Send>) -> Panicked {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
    Panicked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_that_panics_when_dropped_again_and_again_stays_in() {
        struct Again(u8);
        impl Drop for Again {
            fn drop(&mut self) {
                if let Some(left) = self.0.checked_sub(1) {
                    std::panic::panic_any(Self(left));
                }
            }
        }
        assert!(caught(|| std::panic::panic_any(Again(3))).is_err());
    }
}
