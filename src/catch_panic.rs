//! Catches panics of code from outside this crate: of handlers, hooks, look-ups and stores.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

use crate::readable::cut_to;

/// The most bytes that are kept of a panic's message.
const LONGEST_MESSAGE: usize = 512;

/// Calls code from outside, such as a hook, and catches its panic. It is for a program that calls
/// the user's code by itself, as a receiver does;
/// [`catch_store_panic`](crate::internal::catch_store_panic) is the same for a call of a store.
///
/// State that the call shares with the rest of the program must be sound after a panic: dropped
/// with the call, or locked.
///
/// # Errors
/// The call panicked: the message of the panic, at most 512 bytes of it. The panic hook has had the
/// whole message and the place.
///
/// # Security
/// A panic's message can contain what the call worked on: log it, and answer no sender with it.
///
/// ```
/// use hookgate::internal::catch_panic;
///
/// assert_eq!(catch_panic(|| 7).ok(), Some(7));
/// let message = catch_panic(|| panic!("made up")).unwrap_err();
/// assert_eq!(message, "made up");
/// ```
pub fn catch_panic<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(message)
}

/// Awaits a future from outside, and catches its panic: [`catch_panic`] for each poll. The future
/// is not polled again after a panic. It comes pinned, so that the caller's future holds it once.
pub(crate) async fn catch_panic_in<F: Future + ?Sized>(
    mut future: Pin<&mut F>,
) -> Result<F::Output, String> {
    poll_fn(
        |context| match catch_panic(|| future.as_mut().poll(context)) {
            Ok(polled) => polled.map(Ok),
            Err(message) => Poll::Ready(Err(message)),
        },
    )
    .await
}

/// Returns the message of a panic: `panic!` makes one of these two payloads, others come from
/// `panic_any`.
fn message(payload: Box<dyn Any + Send>) -> String {
    let text = match payload.downcast_ref::<&'static str>() {
        Some(text) => Some(*text),
        None => payload.downcast_ref::<String>().map(String::as_str),
    };
    cut_to(LONGEST_MESSAGE, text.unwrap_or("a panic without a text"))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;
    use crate::block_on;

    // fault F30: a handler panics, and the operator learns only that it did, unless the panic hook's output is kept
    #[test]
    fn the_message_is_kept_and_bounded() {
        let message = |call: fn()| catch_panic(call).unwrap_err();
        assert_eq!(message(|| panic!("plain")), "plain");
        assert_eq!(message(|| panic!("{} of {}", 1, 2)), "1 of 2");
        assert_eq!(
            message(|| std::panic::panic_any(7)),
            "a panic without a text"
        );
        let long = message(|| panic!("{}", "x".repeat(10_000)));
        assert_eq!(long, "x".repeat(LONGEST_MESSAGE) + "…");
    }

    #[test]
    fn a_panic_of_a_future_is_caught_at_each_poll() {
        assert_eq!(block_on(catch_panic_in(pin!(async { 7 }))), Ok(7));
        let panics = async { panic!("made up") };
        assert_eq!(
            block_on(catch_panic_in(pin!(panics))),
            Err("made up".to_owned())
        );
    }
}
