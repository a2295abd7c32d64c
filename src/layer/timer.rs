//! Timers that are made once something has to be waited for: most deliveries never wait, and make none.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

/// The time limit of a store call when no request waits for its answer any more.
pub(crate) const LATE_STORE_CALL: Duration = Duration::from_secs(30);

/// A timer, once there is one.
#[derive(Default)]
pub(super) struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Ready at this time, which may be another one at each call.
    pub(super) fn poll(&mut self, due: Instant, context: &mut Context<'_>) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if sleep.deadline() != due {
            sleep.as_mut().reset(due);
        }
        // Not bound to the task's budget of polls: code that uses it up each time would stop the timer.
        pin!(unconstrained(sleep.as_mut())).poll(context)
    }
}

/// Returns the answer of a store; `None` if there is none within the time limit, which begins at the first poll. `waits` is called
/// before the first wait.
pub(crate) fn in_time<F: Future>(
    mut call: Pin<&mut F>,
    mut waits: impl FnMut(),
) -> impl Future<Output = Option<F::Output>> {
    let (mut timer, mut ends) = (Timer::default(), None);
    poll_fn(move |context| {
        if let Poll::Ready(answer) = call.as_mut().poll(context) {
            return Poll::Ready(Some(answer));
        }
        let ends = *ends.get_or_insert_with(|| {
            waits();
            Instant::now() + LATE_STORE_CALL
        });
        timer.poll(ends, context).map(|()| None)
    })
}
