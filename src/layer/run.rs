//! The run: claim, handler and commit as one future that no cancellation can cut in half.
//!
//! A run is polled inside its request's own task, which is cheaper than a task of its own. When the budget ends, or the
//! request's future is dropped because the sender hung up, the run moves to a task and goes on there. What it has to say
//! to its request lies in a [`Slot`] that both hold.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout};
use tower_service::Service;

use super::body::VerifiedBody;
use super::catch::caught;
use super::hooks::Reason;
use super::response::Own;
use super::settle::{Settling, settle};
use super::supervise::{Handled, Watch, supervise};
use super::trace::in_this_span;
use super::waiting::{Place, WaitingRoom};
use crate::dedupe::{Claim, EventKey};
use crate::delivery::Delivery;
use crate::outcome::{Failure, Outcome, Refusal, RefusalKind};
use crate::receiver::{Admission, Receiver};

/// The most of the budget that one call of the store gets.
const STORE_CALL: Duration = Duration::from_secs(1);
/// The most time that a call of the store gets when nobody waits for its answer any more.
pub(super) const LATE_STORE_CALL: Duration = Duration::from_secs(30);
/// The waits of a copy that asks whether another one is done: 25 ms, doubling.
const FIRST_WAIT: Duration = Duration::from_millis(25);
const LONGEST_WAIT: Duration = Duration::from_millis(400);

/// What a run works on.
pub(super) struct Work<S> {
    pub(super) receiver: Receiver,
    pub(super) delivery: Delivery,
    pub(super) inner: S,
    pub(super) request: Request<VerifiedBody>,
}

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

    fn refused(refusal: Refusal) -> Self {
        let outcome = Outcome::Refused(refusal.kind());
        Self::own(Own::Refused(refusal), outcome)
    }
}

/// Where run and request meet.
pub(super) struct Slot<R, E>(Mutex<Meeting<R, E>>);

struct Meeting<R, E> {
    phase: Phase,
    /// Whether the request has been answered, or its sender has hung up.
    alone: bool,
    /// A copy's place among those that wait. Here, so that one that hangs up leaves it, even while it asks a store that
    /// hangs.
    place: Option<Place>,
    ended: Option<Ended<R, E>>,
}

/// What a run is waiting for.
#[derive(Clone, Copy)]
enum Phase {
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

impl<R, E> Slot<R, E> {
    fn new() -> Self {
        let since = Instant::now();
        Self(Mutex::new(Meeting {
            phase: Phase::Claiming {
                since,
                lease_left: None,
            },
            alone: false,
            place: None,
            ended: None,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Meeting<R, E>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, phase: Phase) {
        self.lock().phase = phase;
    }

    /// Takes a place among the copies that wait, unless it has one.
    fn queue(&self, room: &Arc<WaitingRoom>, event: EventKey) -> Result<(), RefusalKind> {
        let mut meeting = self.lock();
        if meeting.place.is_none() {
            meeting.place = Some(room.enter(event)?);
        }
        Ok(())
    }

    /// Waits no more.
    fn leave_queue(&self) {
        self.lock().place = None;
    }

    /// Whether nobody waits for the answer any more.
    pub(super) fn alone(&self) -> bool {
        self.lock().alone
    }

    /// Lays the answer down before the store hears of the end, so that a slow store can't keep it.
    pub(super) fn settling(&self, ended: Ended<R, E>) {
        let mut meeting = self.lock();
        meeting.phase = Phase::Settling {
            since: Instant::now(),
        };
        meeting.ended = Some(ended);
    }

    /// The outcome is known now; the request may have left with the answer already.
    pub(super) fn settled(&self, outcome: Outcome) {
        if let Some(ended) = &mut self.lock().ended {
            ended.outcome = outcome;
        }
    }

    fn end(&self, ended: Ended<R, E>) {
        self.lock().ended = Some(ended);
    }
}

/// A run that is attached to its request. Dropped before its end, it goes on in a task of its own.
pub(super) struct Attached<R, E> {
    run: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    slot: Arc<Slot<R, E>>,
}

impl<R: Send + 'static, E: Send + 'static> Attached<R, E> {
    pub(super) fn begin<S>(work: Work<S>) -> Self
    where
        S: Service<Request<VerifiedBody>, Response = Response<R>, Error = E> + Send + 'static,
        S::Future: Send + 'static,
    {
        let slot = Arc::new(Slot::new());
        Self {
            run: Some(Box::pin(run(work, Arc::clone(&slot)))),
            slot,
        }
    }

    /// Polls the run until it has ended or its answer is due.
    pub(super) async fn until(mut self, budget_ends: Instant) -> Ended<R, E> {
        let mut alarm = pin!(sleep_until(budget_ends));
        poll_fn(|context| match self.poll_run(context) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => self.poll_alarm(alarm.as_mut(), budget_ends, context),
        })
        .await;
        if self.run.is_none() {
            // A run ends without a word only where the store panicked under it.
            return self
                .slot
                .lock()
                .ended
                .take()
                .unwrap_or_else(|| Ended::own(Own::Failed, Outcome::Failed(Failure::Panicked)));
        }
        self.answer_is_due()
    }

    fn poll_run(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // Taken out while it is polled: what has panicked must not be polled again, not even in a task of its own.
        let Some(mut run) = self.run.take() else {
            return Poll::Ready(());
        };
        match caught(|| run.as_mut().poll(context)) {
            Ok(Poll::Pending) => {
                self.run = Some(run);
                Poll::Pending
            }
            Ok(Poll::Ready(())) | Err(_) => Poll::Ready(()),
        }
    }

    fn poll_alarm(
        &self,
        mut alarm: Pin<&mut Sleep>,
        budget_ends: Instant,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let due = match self.slot.lock().phase {
            Phase::Claiming { since, .. } | Phase::Settling { since } => {
                budget_ends.min(since + STORE_CALL)
            }
            Phase::Waiting { .. } | Phase::Handling => budget_ends,
        };
        if alarm.deadline() != due {
            alarm.as_mut().reset(due);
        }
        alarm.poll(context)
    }

    /// The answer can't wait for the run any longer. Dropping `self` detaches what must go on.
    fn answer_is_due(self) -> Ended<R, E> {
        let mut meeting = self.slot.lock();
        if let Some(ended) = meeting.ended.take() {
            return ended;
        }
        match meeting.phase {
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
}

impl<R, E> Drop for Attached<R, E> {
    fn drop(&mut self) {
        let Some(run) = self.run.take() else { return };
        let mut meeting = self.slot.lock();
        meeting.alone = true;
        meeting.place = None;
        let holds_nothing = matches!(meeting.phase, Phase::Waiting { .. });
        drop(meeting);
        if holds_nothing {
            return;
        }
        // Without a runtime there is nothing left to run on; the lease covers what is lost.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(in_this_span(run));
        }
    }
}

async fn run<S, R>(work: Work<S>, slot: Arc<Slot<R, S::Error>>)
where
    S: Service<Request<VerifiedBody>, Response = Response<R>>,
{
    let Work {
        receiver,
        delivery,
        mut inner,
        request,
    } = work;
    let claimed = claim(&receiver, &delivery, &slot).await;
    slot.leave_queue();
    let claim = match claimed {
        Ok(claim) => claim,
        Err(ended) => return slot.end(ended),
    };
    if slot.alone() {
        // Nobody waits for this copy, and the sender will send another. Late claims are not worth a run.
        let _ = timeout(LATE_STORE_CALL, claim.release()).await;
        return;
    }
    slot.enter(Phase::Handling);
    let watch = Watch::new(&receiver, &claim, &slot);
    let handled = match caught(|| inner.call(request)) {
        Ok(future) => supervise(future, &watch).await,
        Err(_) => Handled::Panicked,
    };
    drop(inner);
    let settling = Settling::of(handled, &delivery, &watch).await;
    settle(settling, &receiver, delivery, claim, &slot).await;
}

/// Claims the event, waiting for another copy's run if there is one.
async fn claim<R, E>(
    receiver: &Receiver,
    delivery: &Delivery,
    slot: &Slot<R, E>,
) -> Result<Claim, Ended<R, E>> {
    let mut wait = FIRST_WAIT;
    loop {
        let lease_left = match admit(receiver, delivery).await.map_err(Ended::refused)? {
            Admission::Fresh(claim) => return Ok(claim),
            Admission::Replayed { same_body } => {
                return Err(Ended::own(Own::Replayed, Outcome::Replayed { same_body }));
            }
            Admission::Running { retry_after } => retry_after,
        };
        let still_running = |kind| Ended::refused(Refusal::new(kind).retry_after_lease(lease_left));
        if slot.alone() {
            return Err(still_running(RefusalKind::StillRunning));
        }
        slot.queue(&receiver.shared.layer.waiting, *delivery.key())
            .map_err(still_running)?;
        slot.enter(Phase::Waiting { lease_left });
        sleep(wait.min(lease_left.max(Duration::from_millis(1)))).await;
        wait = (wait * 2).min(LONGEST_WAIT);
        slot.enter(Phase::Claiming {
            since: Instant::now(),
            lease_left: Some(lease_left),
        });
    }
}

async fn admit(receiver: &Receiver, delivery: &Delivery) -> Result<Admission, Refusal> {
    timeout(LATE_STORE_CALL, receiver.admit(delivery))
        .await
        .unwrap_or_else(|_| Err(Refusal::new(RefusalKind::StoreTooSlow)))
}
