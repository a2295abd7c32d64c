//! The run: claim, handler and commit in one future that no cancellation can cut off half way.
//!
//! A run is polled inside its request's own task, which is cheaper than a separate task. When the budget ends, or the request's
//! future is dropped because the sender hung up, the run moves to its own task and goes on there. Its result for the request is
//! in a [`RunState`] that both hold.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::request::Parts;
use http::{Request, Response};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};
use tower_service::Service;

use super::body::VerifiedBody;
use super::catch::{CatchUnwind, caught};
use super::guard::Guard;
use super::run_state::{End, Ended, RunState};
use super::settle::{dead_letter, judge, settle};
use super::supervise::{ClaimedRun, supervise};
use super::timer::{Timer, in_time};
use crate::observe::{Reason, in_this_span};
use crate::outcome::{Outcome, Refusal, RefusalKind};
use crate::walk::{Admission, Claim, Claims, Delivery, ForHealth, Settlement};

/// The waits of a copy between its checks whether another copy is done: 25 ms, doubled each time.
const FIRST_WAIT: Duration = Duration::from_millis(25);
const LONGEST_WAIT: Duration = Duration::from_millis(400);

/// The parts of a run.
pub(super) struct Work<S> {
    pub(super) guard: Arc<Guard<Claims>>,
    pub(super) delivery: Delivery,
    pub(super) inner: S,
    pub(super) parts: Parts,
}

/// A run's future. It returns its end, for the request; `None` if no request waits for it, or has taken it from the state.
type Run<R, E> = Pin<Box<dyn Future<Output = Option<Ended<R, E>>> + Send>>;

/// A run that is attached to its request. If it is dropped before its end, it goes on in its own task.
pub(crate) struct Attached<R: 'static, E: 'static> {
    run: Option<Run<R, E>>,
    /// Taken once the run waits, because the request's future may be dropped on a thread without a runtime.
    runtime: Option<Handle>,
    timer: Timer,
    state: Arc<RunState<R, E>>,
}

impl<R: 'static, E: 'static> Attached<R, E> {
    /// Attaches a run that has this state.
    pub(crate) fn to(
        state: Arc<RunState<R, E>>,
        run: impl Future<Output = Option<Ended<R, E>>> + Send + 'static,
    ) -> Self {
        Self {
            run: Some(Box::pin(run)),
            runtime: None,
            timer: Timer::default(),
            state,
        }
    }

    /// Polls the run until it has ended or its answer is due.
    pub(crate) fn until(
        mut self,
        budget_ends: Instant,
    ) -> impl Future<Output = Ended<R, E>> + use<R, E> {
        poll_fn(move |context| {
            // Taken out while it is polled: a run that has panicked must not be polled again, and not in its own task either.
            let Some(mut run) = self.run.take() else {
                return Poll::Ready(self.state.take_end());
            };
            match caught(|| run.as_mut().poll(context)) {
                Ok(Poll::Ready(Some(ended))) => Poll::Ready(ended),
                Ok(Poll::Ready(None)) | Err(_) => Poll::Ready(self.state.take_end()),
                Ok(Poll::Pending) => {
                    self.run = Some(run);
                    if self.runtime.is_none() {
                        self.runtime = Handle::try_current().ok();
                    }
                    // If the answer is due, the run is dropped after this, and so detached if it must go on.
                    let due = self.timer.poll(self.state.due(budget_ends), context);
                    due.map(|()| self.state.answer_due())
                }
            }
        })
    }
}

impl<R: 'static, E: 'static> Drop for Attached<R, E> {
    fn drop(&mut self) {
        let Some(run) = self.run.take() else { return };
        let goes_on = self.state.detach();
        match self.runtime.take() {
            Some(runtime) if goes_on => {
                runtime.spawn(in_this_span(async move { drop(run.await) }));
            }
            // Without a runtime there is no task to run on; the lease ends the lost claim. A panic of the inner service while
            // it is dropped must not cost the request its answer.
            _ => {
                let _ = caught(|| drop(run));
            }
        }
    }
}

/// Claims the event, calls the handler, and settles the run. `now` is the time at which the body was complete.
#[allow(clippy::manual_async_fn)] // an `async fn` keeps each argument twice: as passed, and as used
pub(super) fn run<S, R>(
    work: Work<S>,
    now: Instant,
    state: Arc<RunState<R, S::Error>>,
) -> impl Future<Output = Option<Ended<R, S::Error>>> + use<S, R>
where
    S: Service<Request<VerifiedBody>, Response = Response<R>>,
{
    async move {
        let (guard, delivery) = (&*work.guard, &work.delivery);
        let mut has_waited = false;
        // Matched at once: a variable for the result would be in the frame until the end.
        let claim = match claim_in_turn(guard, delivery, &state, &mut has_waited).await {
            Ok(claim) => claim,
            Err(ended) => {
                report_unheard(&ended, guard, delivery, &state);
                return Some(ended);
            }
        };
        if !state.begins_to_handle() {
            // No request waits for this copy, and the sender will send another. A late claim is not worth a run.
            let too_late = Refusal::new(RefusalKind::StoreTooSlow);
            report_unheard(&Ended::refused(too_late), guard, delivery, &state);
            let _ = in_time(
                pin!(claim.settle(Settlement::Release, ForHealth::Ignored)),
                || (),
            )
            .await;
            return None;
        }
        let run = ClaimedRun {
            guard,
            claim,
            state: &state,
            started: if has_waited { Instant::now() } else { now },
        };
        let mut inner = work.inner;
        let handled = {
            let mut future = pin!(CatchUnwind::ended(None));
            future
                .as_mut()
                .begin(|| inner.call(request(work.parts, guard, delivery)));
            supervise(future.as_mut(), &run).await
        };
        let _ = caught(|| drop(inner));
        let ended = match judge(handled) {
            Ok(ended) => ended,
            // Boxed, because dead letters are rare and their future must not enlarge the frame of the other runs.
            Err(letter) => Box::pin(dead_letter(letter, &work.delivery, &run)).await,
        };
        let ended = settle(ended, work.delivery, &run).await;
        // The permit is dropped last: when a drain sees no run, every run must have been reported.
        drop(run);
        ended
    }
}

/// Returns the request for the handler. Made once the event is claimed: a copy needs none.
fn request(parts: Parts, guard: &Guard<Claims>, delivery: &Delivery) -> Request<VerifiedBody> {
    let body = VerifiedBody::new(delivery.body().clone());
    let mut request = Request::from_parts(parts, body);
    request.extensions_mut().insert(delivery.clone());
    if let Some(prepare) = guard.settings.prepare {
        prepare(&mut request, delivery);
    }
    request
}

/// Reports a refusal if the sender hung up while the store was asked for the claim: no request does it then. It may have been
/// the last attempt.
fn report_unheard<R, E>(
    ended: &Ended<R, E>,
    guard: &Guard<Claims>,
    delivery: &Delivery,
    state: &RunState<R, E>,
) {
    if let End::Refused(refusal) = &ended.end
        && state.hung_up()
    {
        let (verified, reason) = (delivery.verified(), Arc::new(refusal.clone()) as Reason);
        guard.report_failure(verified, Some(delivery), ended.outcome, Some(reason));
    }
}

/// Claims the event, and waits for another copy's run if there is one.
async fn claim_in_turn<R, E>(
    guard: &Guard<Claims>,
    delivery: &Delivery,
    state: &RunState<R, E>,
    has_waited: &mut bool,
) -> Result<Claim, Ended<R, E>> {
    let mut wait = FIRST_WAIT;
    loop {
        // Once the request has given up the call, and counted it as failed, a late answer does not show that the store works.
        let heard = || !state.is_detached();
        let admitted = pin!(guard.next.admit_while(&guard.auth, delivery, heard));
        let too_slow = || Err(Refusal::new(RefusalKind::StoreTooSlow));
        let admitted = in_time(admitted, || *has_waited = true).await;
        let admitted = admitted.unwrap_or_else(too_slow);
        let lease_left = match admitted.map_err(Ended::refused)? {
            Admission::Fresh(claim) => return Ok(claim),
            Admission::Replayed { same_body } => {
                return Err(Ended::own(Outcome::Replayed { same_body }));
            }
            Admission::Running { retry_after } => retry_after,
        };
        state
            .wait(&guard.settings.waiting, *delivery.key(), lease_left)
            .map_err(Ended::refused)?;
        *has_waited = true;
        // Boxed, as it is rare and must not enlarge the frame of the other runs.
        Box::pin(sleep(wait.min(lease_left.max(Duration::from_millis(1))))).await;
        wait = (wait * 2).min(LONGEST_WAIT);
        state.claims_again();
    }
}
