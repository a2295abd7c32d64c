//! Looks up a subscription's keys within the budget. A look-up that outlives its requests goes on in its own task.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::lookup::{LONGEST, Waiting};
use crate::lookup::{LookupError, LookupErrorKind};
use crate::observe::in_this_span;
use crate::outcome::Refusal;
use crate::verify::{Intake, KeyRing};
use crate::walk::{Authenticator, CheckedHead};

/// The largest share of the budget for a look-up.
const MOST: Duration = Duration::from_secs(1);

/// Returns the look-up's share of the budget: the same as for a call of the store, and never more than half.
pub(super) fn share_of(budget: Duration) -> Duration {
    MOST.min(budget / 2)
}

/// Waits for the look-up, at most for this time.
pub(super) async fn within(
    limit: Duration,
    auth: &Authenticator,
    head: CheckedHead<'_>,
    waiting: Waiting,
) -> Result<Intake, Refusal> {
    let mut look_up = DetachedLookUp {
        waiting: Some(waiting),
        runtime: Handle::try_current().ok(),
    };
    let found = timeout(limit, &mut look_up).await;
    auth.keys_found(&head, found.unwrap_or_else(|_| Err(too_slow())))
}

fn too_slow() -> Arc<LookupError> {
    Arc::new(LookupError::new(LookupErrorKind::TimedOut))
}

/// Leaves the look-up when it is dropped, at its end or before. If no other request waits for the look-up, it goes on for a
/// while: the answer of a slow database then serves the retry. Otherwise each retry would meet the same slow database again.
struct DetachedLookUp {
    waiting: Option<Waiting>,
    /// Taken here, because the request's future may be dropped on a thread without a runtime.
    runtime: Option<Handle>,
}

impl Future for DetachedLookUp {
    type Output = Result<Arc<KeyRing>, Arc<LookupError>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.waiting {
            Some(waiting) => Pin::new(waiting).poll(context),
            None => Poll::Ready(Err(too_slow())), // only `drop` takes it out
        }
    }
}

impl Drop for DetachedLookUp {
    fn drop(&mut self) {
        if let Some(mut waiting) = self.waiting.take()
            && let Some(runtime) = self.runtime.take()
            && waiting.detach_if_last()
        {
            runtime.spawn(in_this_span(async move {
                let _ = timeout(LONGEST, waiting).await;
            }));
        }
    }
}
