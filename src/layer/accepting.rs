//! The steps of a delivery that is stored and not handled: its run calls a sink in place of a store and a handler.
//!
//! Here no copy waits for another copy. Each copy calls the sink, whose answer is one indivisible step.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::task::unconstrained;
use tokio::time::{Instant, sleep_until};

use super::body::{ResponseBody, VerifiedBody};
use super::catch::CatchUnwind;
use super::hooks::{Reason, Settled};
use super::meeting::{End, Ended, Meeting, Phase};
use super::response::Own;
use super::run::{Attached, LATE_STORE_CALL};
use super::service::{Delivering, ResponseFuture};
use super::supervise::{Handled, bounded};
use super::{metrics, trace};
use crate::dedupe::{StoreError, StoreErrorKind};
use crate::delivery::Delivery;
use crate::inbox::{Accepted, Sink};
use crate::outcome::{Failure, Outcome, Refusal};
use crate::receiver::Receiver;

/// Returns the answer to a delivery, for a tower service.
pub(crate) fn accept_as_service<B>(
    receiver: &Receiver,
    sink: &Arc<dyn Sink>,
    request: Request<B>,
) -> ResponseFuture<VerifiedBody, Infallible>
where
    B: Body + Send + 'static,
    B::Data: Send,
{
    let delivering = Delivering::begin(receiver.clone(), request.method());
    let trace = delivering.trace.clone();
    let answer = delivering.accept(Arc::clone(sink), request);
    ResponseFuture(Box::pin(trace.within(async { Ok(answer.await) })))
}

/// Does the same, with the answer's body in one piece, and for a request body that need not be `Send`.
pub(crate) fn accept<B: Body>(
    receiver: &Receiver,
    sink: &Arc<dyn Sink>,
    request: Request<B>,
) -> impl Future<Output = Response<Bytes>> + use<B> {
    let delivering = Delivering::begin(receiver.clone(), request.method());
    let trace = delivering.trace.clone();
    let answer = trace.within(delivering.accept(Arc::clone(sink), request));
    async move { answer.await.map(ResponseBody::into_bytes) }
}

impl Delivering {
    /// Not an `async fn`, for the same reason as `answer`.
    fn accept<B, R>(
        self,
        sink: Arc<dyn Sink>,
        request: Request<B>,
    ) -> impl Future<Output = Response<ResponseBody<R>>> + use<B, R>
    where
        B: Body,
        R: Send + 'static,
    {
        let (parts, body) = request.into_parts();
        self.head(&parts);
        async move {
            let delivery = match self.take_in(&parts, body).await {
                Ok(delivery) => delivery,
                Err(refusal) => return self.refuse(refusal, None),
            };
            let budget_ends = match self.recognised(&delivery) {
                Ok(budget_ends) => budget_ends,
                Err(refusal) => return self.refuse(refusal, Some(delivery)),
            };
            let meeting = Arc::new(Meeting::new());
            let receiver = self.receiver().clone();
            let run = run(receiver, delivery.clone(), sink, Arc::clone(&meeting));
            let ended = Attached::to(meeting, run).until(budget_ends).await;
            if ended.outcome == Outcome::RunsOn {
                // The sink has used up the budget, so it counts as failed. Its late answer does not show that it works again.
                self.receiver().shared.gate.vitals.store_failed();
            }
            match self.conclude::<R, Infallible>(ended, delivery) {
                Ok(response) => response,
                Err(never) => match never {},
            }
        }
    }
}

/// Runs one acceptance. It holds a permit, so that a drain waits for it, and it reports its end like any run.
async fn run<R>(
    receiver: Receiver,
    delivery: Delivery,
    sink: Arc<dyn Sink>,
    meeting: Arc<Meeting<R, Infallible>>,
) {
    let permit = match receiver.enter() {
        Ok(permit) => permit,
        Err(refusal) => return meeting.end(Ended::refused(refusal)),
    };
    // From here it goes on without its request: the sink has begun, and its work must not be cut off half way.
    meeting.enter(Phase::Handling);
    let started = Instant::now();
    let asked = ask(&receiver, &delivery, &*sink).await;
    let ended = judged(asked, &receiver, &meeting);
    let (outcome, reason) = match &ended.end {
        End::Refused(refusal) => (
            ended.outcome,
            Some(Arc::new(refusal.clone()) as Reason), // its request, if there is one, gets the refusal itself
        ),
        _ => (ended.outcome, None),
    };
    let late = meeting.alone();
    meeting.end(ended);
    let settled = Settled {
        outcome,
        delivery,
        reason,
        elapsed: started.elapsed(),
        late,
    };
    trace::ended(&settled);
    metrics::settled(&receiver, &settled);
    receiver.shared.layer.hooks.settled(&settled);
    // A refusal that is sent as an answer is reported together with that answer.
    let unheard = late && matches!(outcome, Outcome::Refused(_));
    if unheard || matches!(outcome, Outcome::Failed(_)) {
        let (delivery, reason) = (&settled.delivery, settled.reason);
        receiver.report_failure(delivery.verified(), Some(delivery), outcome, reason);
    }
    // The permit is dropped last: when a drain sees no run, every run must have been reported.
    drop(permit);
}

/// Calls the sink. The limit is the run limit, and at most the limit of a late store call. `None` if the receiver was drained
/// and the drain's time is over.
async fn ask(
    receiver: &Receiver,
    delivery: &Delivery,
    sink: &dyn Sink,
) -> Option<Result<Accepted, StoreError>> {
    let longest = receiver.shared.layer.run_limit.min(LATE_STORE_CALL);
    let retain = receiver.retains_for();
    let call = pin!(Some(CatchUnwind::new(async {
        sink.accept(delivery, retain).await
    })));
    // Not bound to the task's budget of polls: a sink that uses it up each time would stop the timer.
    let mut limit = pin!(unconstrained(sleep_until(Instant::now() + longest)));
    let aborted = pin!(receiver.shared.gate.bell.aborted());
    match bounded(call, aborted, |context| limit.as_mut().poll(context)).await {
        Handled::Answered(answered) => Some(answered),
        Handled::Panicked => {
            let panicked = StoreError::new(StoreErrorKind::Unavailable);
            Some(Err(panicked.caused_by("the sink panicked")))
        }
        Handled::Aborted(Failure::RunLimit) => Some(Err(gave_up_after(longest))),
        Handled::Aborted(_) => None,
    }
}

fn gave_up_after(limit: Duration) -> StoreError {
    let below = format!("the sink has not answered for {} ms", limit.as_millis());
    StoreError::new(StoreErrorKind::TimedOut).caused_by(below)
}

/// Turns the sink's answer into the end of the run, and notes it for the receiver's health.
fn judged<R>(
    asked: Option<Result<Accepted, StoreError>>,
    receiver: &Receiver,
    meeting: &Meeting<R, Infallible>,
) -> Ended<R, Infallible> {
    let Some(answered) = asked else {
        return Ended::own(Own::Aborted, Outcome::Failed(Failure::Drained));
    };
    let vitals = &receiver.shared.gate.vitals;
    if !meeting.alone() || meeting.hung_up() {
        vitals.store_said(&answered);
    }
    match answered {
        Ok(accepted) => {
            vitals.accepted();
            match accepted {
                Accepted::New => Ended::own(Own::Accepted, Outcome::Accepted),
                Accepted::Duplicate { same_body } => {
                    Ended::own(Own::Replayed, Outcome::Replayed { same_body })
                }
            }
        }
        Err(error) => Ended::refused(Refusal::from(error)),
    }
}
