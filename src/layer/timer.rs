//! Timers that are made once something has to be waited for: most deliveries never wait, and make none. Limited calls of a store.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use crate::dedupe::{StoreError, StoreErrorKind, StoreFuture};
use crate::walk::Call;

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

/// The longest wait for one call, from its first poll.
pub(super) struct CallLimit {
    limit: Duration,
    ends: Option<Instant>,
}

impl CallLimit {
    pub(super) fn of(limit: Duration) -> Self {
        Self { limit, ends: None }
    }

    /// Returns the answer of the call; `None` if it has none within the limit. `first` is called before the first wait.
    pub(super) fn wait<F: Future>(
        &mut self,
        mut call: Pin<&mut F>,
        mut first: impl FnMut(),
    ) -> impl Future<Output = Option<F::Output>> {
        let mut timer = Timer::default();
        poll_fn(move |context| {
            if let Poll::Ready(answer) = call.as_mut().poll(context) {
                return Poll::Ready(Some(answer));
            }
            let ends = *self.ends.get_or_insert_with(|| {
                first();
                Instant::now() + self.limit
            });
            timer.poll(ends, context).map(|()| None)
        })
    }

    /// Returns whether the call had to be waited for. If not, a reading of the clock from before the call is still good.
    pub(super) fn has_waited(&self) -> bool {
        self.ends.is_some()
    }
}

/// Calls a store, and waits for its answer for at most `limit`. The call may hang, fail or panic: each is an error.
pub(crate) async fn call_store<'a, T>(
    limit: Duration,
    call: impl FnOnce() -> StoreFuture<'a, T>,
) -> Result<T, StoreError> {
    let answered = timeout(limit, Call::new(call)).await;
    answered.unwrap_or_else(|_| Err(StoreError::new(StoreErrorKind::TimedOut)))
}
