//! Where a run and its request meet: what the run waits for, and what it has to say.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Response;
use tokio::time::Instant;

use super::hooks::Reason;
use super::response::Own;
use super::waiting::{Place, WaitingRoom};
use crate::dedupe::EventKey;
use crate::outcome::{Failure, Outcome, Refusal, RefusalKind};

/// The most of the budget that one call of the store gets.
const STORE_CALL: Duration = Duration::from_secs(1);

/// How a run ended, as its request hears it.
pub(super) struct Ended<R, E> {
    pub(super) end: End<R, E>,
    pub(super) outcome: Outcome,
    pub(super) reason: Option<Reason>,
}

pub(super) enum End<R, E> {
    /// The inner service's answer.
    Response(Response<R>),
    /// An answer of our own.
    Own(Own),
    /// No run began.
    Refused(Refusal),
    /// The inner service failed.
    Error(E),
}

impl<R, E> Ended<R, E> {
    pub(super) fn own(own: Own, outcome: Outcome) -> Self {
        Self {
            end: End::Own(own),
            outcome,
            reason: None,
        }
    }

    pub(super) fn refused(refusal: Refusal) -> Self {
        Self {
            outcome: Outcome::Refused(refusal.kind()),
            end: End::Refused(refusal),
            reason: None,
        }
    }
}

/// Where run and request meet.
pub(super) struct Meeting<R, E>(Mutex<Shared<R, E>>);

struct Shared<R, E> {
    phase: Phase,
    /// Whether the request has been answered, or its sender has hung up.
    alone: bool,
    /// Whether it has heard, or is about to hear, how its delivery ended.
    heard: bool,
    /// A copy's place among those that wait. Here, so that one that hangs up leaves it, even while it asks a store that
    /// hangs.
    place: Option<Place>,
    ended: Option<Ended<R, E>>,
}

/// What a run is waiting for.
#[derive(Clone, Copy)]
pub(super) enum Phase {
    /// The store, about the claim. Whether it holds one is unknown. A copy that has waited for another one knows what
    /// was left of that one's lease.
    Claiming {
        since: Instant,
        lease_left: Option<Duration>,
    },
    /// Another copy's run. It holds nothing.
    Waiting { lease_left: Duration },
    /// The handler. It holds a claim.
    Handling,
    /// The store, about commit or release. The answer is there.
    Settling { since: Instant },
}

impl<R, E> Meeting<R, E> {
    pub(super) fn new() -> Self {
        let since = Instant::now();
        Self(Mutex::new(Shared {
            phase: Phase::Claiming {
                since,
                lease_left: None,
            },
            alone: false,
            heard: false,
            place: None,
            ended: None,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Shared<R, E>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.lock().phase = phase;
    }

    /// Takes a place among the copies that wait, unless it has one.
    pub(super) fn queue(
        &self,
        room: &Arc<WaitingRoom>,
        event: EventKey,
    ) -> Result<(), RefusalKind> {
        let mut shared = self.lock();
        if shared.place.is_none() {
            shared.place = Some(room.enter(event)?);
        }
        Ok(())
    }

    /// Waits no more.
    pub(super) fn leave_queue(&self) {
        self.lock().place = None;
    }

    /// Whether nobody waits for the answer any more.
    pub(super) fn alone(&self) -> bool {
        self.lock().alone
    }

    /// Whether the sender has hung up on an answer that nobody has been told of: not on a run, which tells its own end.
    pub(super) fn hung_up(&self) -> bool {
        let shared = self.lock();
        shared.alone && !shared.heard
    }

    /// Lays the answer down before the store hears of the end, so that a slow store can't keep it.
    pub(super) fn settling(&self, ended: Ended<R, E>) {
        let mut shared = self.lock();
        shared.phase = Phase::Settling {
            since: Instant::now(),
        };
        shared.ended = Some(ended);
    }

    /// The outcome is known now; the request may have left with the answer already.
    pub(super) fn settled(&self, outcome: Outcome) {
        if let Some(ended) = &mut self.lock().ended {
            ended.outcome = outcome;
        }
    }

    pub(super) fn end(&self, ended: Ended<R, E>) {
        self.lock().ended = Some(ended);
    }

    /// How the run ended, once it has. It has left no end only where something else than handler and store panicked in it, such as a clock.
    pub(super) fn take_end(&self) -> Ended<R, E> {
        let ended = self.lock().ended.take();
        ended.unwrap_or_else(|| Ended::own(Own::Failed, Outcome::Failed(Failure::Panicked)))
    }

    /// When the request must be answered at the latest, by what the run is waiting for.
    pub(super) fn due(&self, budget_ends: Instant) -> Instant {
        match self.lock().phase {
            Phase::Claiming { since, .. } | Phase::Settling { since } => {
                budget_ends.min(since + STORE_CALL)
            }
            Phase::Waiting { .. } | Phase::Handling => budget_ends,
        }
    }

    /// What the request is answered now that it can't wait any longer.
    pub(super) fn answer_due(&self) -> Ended<R, E> {
        let mut shared = self.lock();
        shared.heard = true;
        if let Some(ended) = shared.ended.take() {
            return ended;
        }
        match shared.phase {
            Phase::Claiming {
                lease_left: None, ..
            } => Ended::refused(Refusal::new(RefusalKind::StoreTooSlow)),
            Phase::Waiting { lease_left }
            | Phase::Claiming {
                lease_left: Some(lease_left),
                ..
            } => Ended::refused(
                Refusal::new(RefusalKind::StillRunning).retry_after_lease(lease_left),
            ),
            Phase::Handling | Phase::Settling { .. } => Ended::own(Own::RunsOn, Outcome::RunsOn),
        }
    }

    /// The request is answered, or its sender has hung up. Says whether the run must go on: one that merely waits for
    /// another copy holds nothing.
    pub(super) fn part(&self) -> bool {
        let mut shared = self.lock();
        shared.alone = true;
        shared.place = None;
        !matches!(shared.phase, Phase::Waiting { .. })
    }
}
