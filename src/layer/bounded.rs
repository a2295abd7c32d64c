//! Each handler is bounded: by its limit, by the order to abort, and by the lease of its claim. Its panics are caught.

use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::unconstrained;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::guard::Guard;
use super::run_state::RunState;
use crate::caught::caught;
use crate::dedupe::{Ownership, StoreError};
use crate::outcome::Failure;
use crate::pipeline::{Claim, Claims};

/// The end of a handler.
pub(crate) enum Handled<T> {
    Answered(T),
    /// With the message of the panic.
    Panicked(String),
    /// It was aborted: it ran longer than the run limit, or the receiver was drained.
    Aborted(Failure),
}

/// A run that holds a claim.
pub(super) struct ClaimedRun<'a, R, E> {
    pub(super) guard: &'a Guard<Claims>,
    pub(super) claim: Claim,
    pub(super) state: &'a RunState<R, E>,
    pub(super) started: Instant,
}

impl<R, E> ClaimedRun<'_, R, E> {
    fn renew_every(&self) -> Duration {
        self.guard.next.lease / 3
    }

    /// Returns the time until the first renewal of the lease. Counted from the call that asked for the claim, because the
    /// store's answer may have come late.
    fn first_renewal(&self) -> Duration {
        self.renew_every().saturating_sub(self.claim.age())
    }

    /// Returns whether lease and limit need timers. While the request waits, its answer is due before either of them: most runs
    /// end without any timer.
    fn needs_timers(&self) -> bool {
        let settings = &self.guard.settings;
        self.first_renewal().min(settings.run_limit) < settings.answer_within
            || self.state.is_detached()
    }

    async fn keep_lease(&self) {
        let first = self.started + self.first_renewal();
        keep_lease(self.renew_every(), first, || self.claim.renew()).await;
    }
}

/// Renews a lease after each third of its length, as long as the claim is held. It is never ready.
async fn keep_lease<F>(every: Duration, mut next: Instant, renew: impl Fn() -> F)
where
    F: Future<Output = Result<Ownership, StoreError>>,
{
    loop {
        // There is no burst of renewals for time that has already passed.
        next = next.max(Instant::now());
        sleep_until(next).await;
        // A call that hangs must not delay the next one. A call that fails decides nothing: the next one may succeed.
        let longest = every.max(Duration::from_millis(1));
        if let Ok(Ok(Ownership::Lost)) = timeout(longest, renew()).await {
            // The lease is lost. The effects under way cannot be stopped; the commit will report the loss.
            pending::<()>().await;
        }
        next += every;
    }
}

/// Awaits a future, and renews a lease meanwhile. The lease began at `claimed`, when the claim was called.
pub(crate) async fn under_lease<T, F>(
    work: impl Future<Output = T>,
    lease: Duration,
    claimed: Instant,
    renew: impl Fn() -> F,
) -> T
where
    F: Future<Output = Result<Ownership, StoreError>>,
{
    let every = lease / 3;
    let mut work = pin!(work);
    let mut renewals = pin!(keep_lease(every, claimed + every, renew));
    poll_fn(|context| {
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            let _ = is_ready(renewals.as_mut(), context);
        }
        polled
    })
    .await
}

/// Polls a handler, or a dead-letter hook, to its end. The future is borrowed: if it were passed by value, it would be in two
/// frames, and a run with a large frame costs more to allocate than to execute.
#[allow(clippy::manual_async_fn)] // an `async fn` keeps each argument twice: as passed, and as used
pub(super) fn supervise<'a, F: Future, R, E>(
    future: Pin<&'a mut Option<F>>,
    run: &'a ClaimedRun<'a, R, E>,
) -> impl Future<Output = Handled<F::Output>> + use<'a, F, R, E> {
    async move {
        let aborted = pin!(run.guard.settings.shutdown.aborted());
        // The limit and the renewals. Made when they are first needed: most runs never need them.
        let mut limits = None;
        let limit = pin!(poll_fn(|context| {
            if !run.needs_timers() {
                return Poll::Pending;
            }
            let limits = limits.get_or_insert_with(|| {
                let limit = run.started + run.guard.settings.run_limit;
                Box::pin(timeout_at(limit, run.keep_lease()))
            });
            limits.as_mut().poll(context)
        }));
        bounded(future, aborted, limit).await
    }
}

/// Polls a future from outside this crate to its end, to the order to abort, or to its limit, whichever comes first. It is
/// dropped before this is ready: everything that a handler holds must be free before its event is.
pub(crate) fn bounded<F: Future>(
    mut future: Pin<&mut Option<F>>,
    mut aborted: Pin<&mut impl Future>,
    mut limit: Pin<&mut impl Future>,
) -> impl Future<Output = Handled<F::Output>> {
    // Not an async function, which keeps each argument twice.
    poll_fn(move |context| {
        let polled = caught(|| match future.as_mut().as_pin_mut() {
            Some(future) => future.poll(context),
            None => Poll::Pending,
        });
        let handled = if let Err(panicked) = polled {
            Handled::Panicked(panicked)
        } else if let Ok(Poll::Ready(answer)) = polled {
            Handled::Answered(answer)
        } else if is_ready(aborted.as_mut(), context) {
            Handled::Aborted(Failure::Drained)
        } else if is_ready(limit.as_mut(), context) {
            Handled::Aborted(Failure::RunLimit)
        } else {
            return Poll::Pending;
        };
        // A future can panic in its destructor too.
        let _ = caught(|| future.set(None));
        Poll::Ready(handled)
    })
}

/// Polls a future that is not bound to the task's budget of polls: code that uses it up each time would stop it.
fn is_ready(future: Pin<&mut impl Future>, context: &mut Context<'_>) -> bool {
    pin!(unconstrained(future)).poll(context).is_ready()
}
