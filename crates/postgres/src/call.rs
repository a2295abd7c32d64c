//! What calls of the database share: a limit of times, and the first of two futures.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Returns microseconds, limited to a hundred years, which the server can add to its time.
pub(crate) fn micros(time: Duration) -> i64 {
    const MAX: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);
    i64::try_from(time.min(MAX).as_micros()).unwrap_or(i64::MAX)
}

/// Returns the output of the future that ends first.
pub(crate) async fn first_of<A: Future, B: Future>(
    one: A,
    other: B,
) -> Result<A::Output, B::Output> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| {
        if let Poll::Ready(output) = one.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        other.as_mut().poll(context).map(Err)
    })
    .await
}
