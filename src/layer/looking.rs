//! Looking a subscription's keys up, within the budget. A look-up that outlives its requests goes on in a task of its own.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;

use super::trace::in_this_span;
use crate::error::{LookupError, LookupErrorKind};
use crate::lookup::{LONGEST, Waiting};
use crate::outcome::Refusal;
use crate::receiver::{LookingUp, Receiver};
use crate::verify::{Intake, Ring};

/// The most of the budget that a look-up gets.
const MOST: Duration = Duration::from_secs(1);

/// What a look-up gets of the budget: as much as a call of the store, and never so much that little is left for the rest.
pub(super) fn share_of(budget: Duration) -> Duration {
    MOST.min(budget / 2)
}

/// Waits that long for the look-up.
pub(super) async fn within(
    patience: Duration,
    receiver: &Receiver,
    looking_up: LookingUp<'_>,
    waiting: Waiting,
) -> Result<Intake, Refusal> {
    let mut lingering = Lingering {
        waiting: Some(waiting),
        runtime: Handle::try_current().ok(),
    };
    let found = timeout(patience, &mut lingering).await;
    receiver.opened(looking_up, found.unwrap_or_else(|_| Err(too_slow())))
}

fn too_slow() -> Arc<LookupError> {
    Arc::new(LookupError::new(LookupErrorKind::TimedOut))
}

/// Leaves the look-up when it is dropped, at its end or before. If nobody else waits for it, it goes on for a while: the answer of
/// a slow database serves the retry, which would else meet the same slowness, again and again.
struct Lingering {
    waiting: Option<Waiting>,
    /// Taken here: the request's future may be dropped on a thread that knows of no runtime.
    runtime: Option<Handle>,
}

impl Future for Lingering {
    type Output = Result<Option<Arc<Ring>>, Arc<LookupError>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.waiting {
            Some(waiting) => Pin::new(waiting).poll(context),
            None => Poll::Ready(Err(too_slow())), // it is taken out by `drop` alone
        }
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        if let Some(mut waiting) = self.waiting.take()
            && let Some(runtime) = self.runtime.take()
            && waiting.stays_behind()
        {
            runtime.spawn(in_this_span(async move {
                let _ = timeout(LONGEST, waiting).await;
            }));
        }
    }
}
