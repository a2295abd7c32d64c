//! The state that a run shares with its request: the phase of the run, and its result.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Response;
use tokio::time::Instant;

use super::waiting_copies::{WaitingCopies, WaitingPlace};
use crate::dedupe::EventKey;
use crate::observe::Reason;
use crate::outcome::{Failure, Outcome, Refusal, RefusalKind};

/// The most time of a request that one call of the store gets.
const STORE_CALL: Duration = Duration::from_secs(1);

/// The end of a run, as its request gets it.
pub(crate) struct Ended<R, E> {
    pub(crate) end: End<R, E>,
    pub(crate) outcome: Outcome,
    pub(crate) reason: Option<Reason>,
    /// When it ended, if nothing was waited for since: the clock need not be read again for the answer.
    pub(crate) at: Option<Instant>,
}

pub(crate) enum End<R, E> {
    /// The inner service's answer.
    Response(Response<R>),
    /// An answer of our own, to this outcome. A commit that fails does not change it.
    Own(Outcome),
    /// No run began.
    Refused(Refusal),
    /// The inner service failed.
    Error(E),
}

impl<R, E> Ended<R, E> {
    /// The receiver itself answers, as the outcome says.
    pub(crate) fn own(outcome: Outcome) -> Self {
        Self {
            end: End::Own(outcome),
            outcome,
            reason: None,
            at: None,
        }
    }

    pub(crate) fn refused(refusal: Refusal) -> Self {
        Self {
            outcome: Outcome::Refused(refusal.kind()),
            end: End::Refused(refusal),
            reason: None,
            at: None,
        }
    }
}

/// The progress of a run, which run and request share.
pub(crate) struct RunState<R, E>(Mutex<RunProgress<R, E>>);

struct RunProgress<R, E> {
    phase: Phase,
    /// When the store was called.
    since: Instant,
    /// The rest of the lease of another copy's run, once this one has waited for it.
    lease_left: Option<Duration>,
    request: RequestState,
    /// A copy's place among the copies that wait. It is kept here, so that a copy that hangs up frees its place even while it
    /// waits for a store that hangs.
    place: Option<WaitingPlace>,
    /// The end of a run that waits for its store. Boxed, because most runs return it and never wait.
    ended: Option<Box<Ended<R, E>>>,
}

/// The request of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestState {
    Waits,
    Answered,
    /// Its sender has hung up before it was answered.
    HungUp,
}

/// The phase of a run: the thing that it waits for.
#[derive(Clone, Copy)]
enum Phase {
    /// It waits for the store to answer the claim. Whether it holds a claim is unknown.
    Claiming,
    /// It waits for another copy's run. It holds no claim.
    Waiting,
    /// It waits for the handler. It holds a claim.
    Handling,
    /// It waits for the store to commit or release. The answer is ready.
    Settling,
}

impl<R, E> RunState<R, E> {
    pub(crate) fn new(since: Instant) -> Self {
        Self(Mutex::new(RunProgress {
            phase: Phase::Claiming,
            since,
            lease_left: None,
            request: RequestState::Waits,
            place: None,
            ended: None,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, RunProgress<R, E>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the store for the claim once more.
    pub(super) fn claims_again(&self) {
        let now = Instant::now();
        let mut progress = self.lock();
        progress.phase = Phase::Claiming;
        progress.since = now;
    }

    /// Waits for another copy's run. Takes a place among the copies that wait, unless it already has one.
    pub(super) fn wait(
        &self,
        room: &Arc<WaitingCopies>,
        event: EventKey,
        lease_left: Duration,
    ) -> Result<(), Refusal> {
        let refused = |kind| Refusal::new(kind).retry_after_lease(lease_left);
        let mut progress = self.lock();
        if progress.request != RequestState::Waits {
            return Err(refused(RefusalKind::StillRunning));
        }
        if progress.place.is_none() {
            progress.place = Some(room.enter(event).map_err(refused)?);
        }
        progress.lease_left = Some(lease_left);
        progress.phase = Phase::Waiting;
        Ok(())
    }

    /// Enters the phase of the handler. Returns false if no request waits for the answer any more: the handler is not called.
    pub(crate) fn begins_to_handle(&self) -> bool {
        let mut progress = self.lock();
        progress.place = None;
        if progress.request != RequestState::Waits {
            return false;
        }
        progress.phase = Phase::Handling;
        true
    }

    /// Returns whether no request waits for the answer any more.
    pub(crate) fn is_detached(&self) -> bool {
        self.lock().request != RequestState::Waits
    }

    /// Returns whether the sender has hung up before its request took an answer. This does not count for a run, which reports
    /// its own end.
    pub(crate) fn hung_up(&self) -> bool {
        self.lock().request == RequestState::HungUp
    }

    /// Stores the answer while the store is waited for, so that a slow store cannot delay it.
    pub(crate) fn settling(&self, ended: Ended<R, E>, since: Instant) {
        let ended = Some(Box::new(ended));
        let mut progress = self.lock();
        progress.phase = Phase::Settling;
        progress.since = since;
        progress.ended = ended;
    }

    /// Returns the answer that was stored, unless the request has left with it.
    pub(crate) fn settled(&self) -> Option<Ended<R, E>> {
        self.lock().ended.take().map(|ended| *ended)
    }

    /// Returns the end of a run that did not return it. It has none only if code other than handler and store panicked in it,
    /// such as a clock.
    pub(crate) fn take_end(&self) -> Ended<R, E> {
        self.settled()
            .unwrap_or_else(|| Ended::own(Outcome::Failed(Failure::Panicked)))
    }

    /// Returns the latest time for the answer to the request, by the phase of the run.
    pub(crate) fn due(&self, answer_due: Instant) -> Instant {
        let progress = self.lock();
        match progress.phase {
            Phase::Claiming | Phase::Settling => answer_due.min(progress.since + STORE_CALL),
            Phase::Waiting | Phase::Handling => answer_due,
        }
    }

    /// Returns the answer to a request that cannot wait any longer.
    pub(crate) fn answer(&self) -> Ended<R, E> {
        let mut progress = self.lock();
        progress.request = RequestState::Answered;
        if let Some(ended) = progress.ended.take() {
            return *ended;
        }
        match (progress.phase, progress.lease_left) {
            (Phase::Handling | Phase::Settling, _) => Ended::own(Outcome::RunsOn),
            (_, Some(lease_left)) => {
                let still_running = Refusal::new(RefusalKind::StillRunning);
                Ended::refused(still_running.retry_after_lease(lease_left))
            }
            (_, None) => Ended::refused(Refusal::new(RefusalKind::StoreTooSlow)),
        }
    }

    /// Marks the request as answered or hung up. Returns whether the run must continue: a run that only waits for another copy
    /// holds no claim.
    pub(crate) fn detach(&self) -> bool {
        let mut progress = self.lock();
        if progress.request == RequestState::Waits {
            progress.request = RequestState::HungUp;
        }
        progress.place = None;
        !matches!(progress.phase, Phase::Waiting)
    }
}
