//! Catches panics of code from outside this crate.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::readable::cut_to;

/// The most bytes that are kept of a panic's message.
const LONGEST_MESSAGE: usize = 512;

/// Calls code from outside, such as a hook, and catches its panic, also one of the payload's destructor. For a program that calls the user's
/// code by itself, as a receiver does; [`guarded`](crate::receiver::guarded) is the same for a call of a store.
///
/// State that the call shares with the rest of the program must be sound after a panic: dropped with the call, or locked.
///
/// # Errors
/// The call panicked: the message of the panic, at most 512 bytes of it. The panic hook has had the whole message and the place.
///
/// # Security
/// A panic's message can contain what the call worked on: log it, and answer no sender with it.
///
/// ```
/// use hookgate::receiver::caught;
///
/// assert_eq!(caught(|| 7).ok(), Some(7));
/// let panicked = caught(|| panic!("made up")).unwrap_err();
/// assert_eq!(panicked, "made up");
/// ```
pub fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(discard)
}

/// Takes the message out of a panic's payload, and drops the payload. Its destructor can panic with a payload whose destructor panics
/// too. That second payload is leaked: dropping it could go on without end.
fn discard(payload: Box<dyn Any + Send>) -> String {
    // `panic!` makes one of these two. Other payloads come from `panic_any`.
    let text = match payload.downcast_ref::<&'static str>() {
        Some(text) => Some(*text),
        None => payload.downcast_ref::<String>().map(String::as_str),
    };
    let message = cut_to(LONGEST_MESSAGE, text.unwrap_or("a panic without a text"));
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
    message
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

    #[test]
    fn the_message_is_kept_and_bounded() {
        let said = |call: fn()| caught(call).unwrap_err().to_string();
        assert_eq!(said(|| panic!("plain")), "plain");
        assert_eq!(said(|| panic!("{} of {}", 1, 2)), "1 of 2");
        assert_eq!(said(|| std::panic::panic_any(7)), "a panic without a text");
        let long = said(|| panic!("{}", "x".repeat(10_000)));
        assert_eq!(long, "x".repeat(LONGEST_MESSAGE) + "…");
    }
}
