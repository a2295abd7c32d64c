//! Timers that are made once something has to be waited for: most deliveries never wait, and make none.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

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
