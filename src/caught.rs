//! Catches panics of code from outside this crate.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The call panicked. The panic hook has already had the message.
#[derive(Debug)]
pub(crate) struct Panicked;

/// Runs `call` and catches its panic.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    // Unwind safety: state shared with the call is dropped with it, or is locked against poisoning.
    catch_unwind(AssertUnwindSafe(call)).map_err(discard)
}

/// Drops a panic payload. Its destructor can panic with a payload whose destructor panics too. That second payload is leaked:
/// dropping it could go on without end.
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
