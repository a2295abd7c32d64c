//! Watching over a handler: its panics, its limit, its claim's lease, and the order to abort.

use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::unconstrained;
use tokio::time::{Instant, sleep_until, timeout};

use super::catch::{CatchUnwind, caught};
use super::meeting::Meeting;
use super::settings::LayerSettings;
use crate::dedupe::{Claim, Ownership};
use crate::outcome::Failure;
use crate::receiver::Receiver;

/// How a handler ended.
pub(crate) enum Handled<T> {
    Answered(T),
    Panicked,
    /// It was cut off: it ran longer than a run may, or the receiver was drained.
    Aborted(Failure),
}

/// What a handler is watched by.
pub(super) struct Watch<'a, R, E> {
    pub(super) receiver: &'a Receiver,
    claim: &'a Claim,
    meeting: &'a Meeting<R, E>,
    pub(super) started: Instant,
}

impl<'a, R, E> Watch<'a, R, E> {
    pub(super) fn new(
        receiver: &'a Receiver,
        claim: &'a Claim,
        meeting: &'a Meeting<R, E>,
    ) -> Self {
        Self {
            receiver,
            claim,
            meeting,
            started: Instant::now(),
        }
    }

    fn limits(&self) -> &LayerSettings {
        &self.receiver.shared.layer
    }

    fn renew_every(&self) -> Duration {
        self.receiver.shared.lease / 3
    }

    /// When the lease is first due. Counted from when the claim was asked for: its answer may have come late.
    fn first_renewal(&self) -> Duration {
        self.renew_every().saturating_sub(self.claim.age())
    }

    /// Whether lease and limit need timers. While the request waits, its budget ends before either: most runs are over
    /// without ever registering one.
    fn needs_timers(&self) -> bool {
        let limits = self.limits();
        self.first_renewal().min(limits.run_limit) < limits.budget || self.meeting.alone()
    }

    /// Ends when the run has reached its limit, and keeps the lease until then.
    async fn limit_and_lease(&self) {
        // Neither is bound to the task's budget of polls: a handler that uses it up each time would silence them.
        let limit = sleep_until(self.started + self.limits().run_limit);
        let mut limit = pin!(unconstrained(limit));
        let mut lease = pin!(unconstrained(self.keep_lease()));
        poll_fn(|context| {
            if limit.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            let _ = lease.as_mut().poll(context);
            Poll::Pending
        })
        .await;
    }

    /// Renews the lease at a third of it, for as long as it is held.
    async fn keep_lease(&self) {
        let every = self.renew_every();
        let mut next = self.started + self.first_renewal();
        loop {
            // Never in a burst for the time that has passed already.
            next = next.max(Instant::now());
            sleep_until(next).await;
            // A call that hangs must not outlive the next one. One that fails says nothing: the next may succeed.
            let longest = every.max(Duration::from_millis(1));
            if let Ok(Ok(Ownership::Lost)) = timeout(longest, self.claim.renew()).await {
                // Nothing to keep any more. The effects under way can't be stopped; the commit will say what became of it.
                pending::<()>().await;
            }
            next += every;
        }
    }
}

/// Polls a handler, or a dead-letter hook, to its end. `None` is one that panicked before there was a future.
///
/// It is lent: a future that is passed on by value lies in both frames, and a run whose frame is large costs more to allocate than to
/// walk.
pub(super) async fn supervise<F: Future, R, E>(
    future: Pin<&mut Option<CatchUnwind<F>>>,
    watch: &Watch<'_, R, E>,
) -> Handled<F::Output> {
    let aborted = pin!(watch.receiver.shared.gate.bell.aborted());
    // Made when they are first needed, which in most runs is never.
    let mut limits = None;
    let limit = |context: &mut Context<'_>| {
        if !watch.needs_timers() {
            return Poll::Pending;
        }
        let limits = limits.get_or_insert_with(|| Box::pin(watch.limit_and_lease()));
        limits.as_mut().poll(context)
    };
    bounded(future, aborted, limit).await
}

/// Polls what is not ours to its end, to the order to abort, or to its limit, whichever comes first. All that it holds is free when this
/// is ready: what a handler holds must be so before its event is.
pub(crate) fn bounded<F: Future>(
    mut future: Pin<&mut Option<CatchUnwind<F>>>,
    mut aborted: Pin<&mut impl Future>,
    mut limit: impl FnMut(&mut Context<'_>) -> Poll<()>,
) -> impl Future<Output = Handled<F::Output>> {
    // No async function, which keeps each argument twice.
    poll_fn(move |context| {
        let handled = if let Some(running) = future.as_mut().as_pin_mut() {
            if let Poll::Ready(answer) = running.poll(context) {
                answer.map_or(Handled::Panicked, Handled::Answered)
            } else if aborted.as_mut().poll(context).is_ready() {
                Handled::Aborted(Failure::Drained)
            } else if limit(context).is_ready() {
                Handled::Aborted(Failure::RunLimit)
            } else {
                return Poll::Pending;
            }
        } else {
            Handled::Panicked
        };
        // A future can panic in its destructor too.
        let _ = caught(|| future.set(None));
        Poll::Ready(handled)
    })
}
