//! The steps of a delivery that is stored and not handled: its run calls a sink in place of a store and a handler.
//!
//! Here no copy waits for another copy. Each copy calls the sink, whose answer is one indivisible step.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use tokio::time::{Instant, sleep_until};

use super::contract::{Accepted, Sink};
use crate::dedupe::{StoreError, StoreErrorKind};
use crate::layer::{
    End, Ended, Exchange, Guard, Handled, LATE_STORE_CALL, ResponseBody, RunState, attached,
    bounded,
};
use crate::observe::{Reason, Settled};
use crate::outcome::{Failure, Outcome, Refusal};
use crate::pipeline::Delivery;

/// The step of an acceptor after its guard: the sink, and the time for which it remembers an event.
#[derive(Debug)]
pub(super) struct Storing {
    pub(super) sink: Box<dyn Sink>,
    pub(super) retention: Duration,
}

/// Returns the answer to a delivery.
///
/// Not an `async fn`, which keeps each argument twice: as passed, and as used.
pub(super) fn accept<B, R>(
    acceptor: &Arc<Guard<Storing>>,
    request: Request<B>,
) -> impl Future<Output = Response<ResponseBody<R>>> + use<B, R>
where
    B: Body,
    R: Send + 'static,
{
    let (parts, body) = request.into_parts();
    let mut delivering = Exchange::begin(Arc::clone(acceptor), &parts);
    delivering.observation.span.clone().around(async move {
        let taken_in = delivering.take_in(&parts, pin!(body)).await;
        let (delivery, now) = match delivering.recognised(taken_in) {
            Ok(recognised) => recognised,
            Err((refusal, delivery)) => return delivering.refuse(refusal, delivery),
        };
        let state = Arc::new(RunState::new(now));
        let guard = Arc::clone(&delivering.guard);
        let run = run(guard, delivery.clone(), Arc::clone(&state));
        let ended = attached(state, run, delivering.answer_due()).await;
        if ended.outcome == Outcome::RunsOn {
            // The sink has used up the time for the answer, so it counts as failed. Its late answer does not show that it works again.
            delivering.guard.auth.gate.health_signs.store_failed();
        }
        match delivering.conclude::<R, Infallible>(ended, delivery) {
            Ok(response) => response,
            Err(never) => match never {},
        }
    })
}

/// Runs one acceptance. It holds a permit, so that a drain waits for it, and it reports its end like any run.
async fn run<R>(
    guard: Arc<Guard<Storing>>,
    delivery: Delivery,
    state: Arc<RunState<R, Infallible>>,
) -> Option<Ended<R, Infallible>> {
    let permit = match guard.auth.gate.enter() {
        Ok(permit) => permit,
        Err(kind) => return Some(Ended::refused(Refusal::new(kind))),
    };
    // From here it goes on without its request: the sink has begun, and its work must not be cut off half way.
    state.begins_to_handle();
    let started = Instant::now();
    let asked = request(&guard, &delivery).await;
    let ended = judged(asked, &guard, &state);
    let reason = match &ended.end {
        // The request, if there is one, gets the refusal itself.
        End::Refused(refusal) => Some(Arc::new(refusal.clone()) as Reason),
        _ => None,
    };
    let settled = Settled {
        outcome: ended.outcome,
        delivery,
        reason,
        elapsed: started.elapsed(),
        late: state.is_detached(),
    };
    guard.report_run(&settled);
    // The permit is dropped last: when a drain sees no run, every run must have been reported.
    drop(permit);
    Some(ended)
}

/// Calls the sink. The limit is the run limit, and at most the limit of a late store call. `None` if the receiver was drained
/// and the drain's time is over.
async fn request(
    guard: &Guard<Storing>,
    delivery: &Delivery,
) -> Option<Result<Accepted, StoreError>> {
    let longest = guard.settings.run_limit.min(LATE_STORE_CALL);
    let call = pin!(Some(async {
        let Storing { sink, retention } = &guard.next;
        sink.accept(delivery, *retention).await
    }));
    let limit = pin!(sleep_until(Instant::now() + longest));
    let aborted = pin!(guard.settings.shutdown.aborted());
    match bounded(call, aborted, limit).await {
        Handled::Answered(answered) => Some(answered),
        Handled::Panicked(panicked) => {
            let below = format!("the sink panicked: {panicked}");
            Some(Err(
                StoreError::new(StoreErrorKind::Unavailable).caused_by(below)
            ))
        }
        Handled::Aborted(Failure::RunLimit) => {
            let below = format!("the sink has not answered for {} ms", longest.as_millis());
            Some(Err(
                StoreError::new(StoreErrorKind::TimedOut).caused_by(below)
            ))
        }
        Handled::Aborted(_) => None,
    }
}

/// Turns the sink's answer into the end of the run, and notes it for the receiver's health.
fn judged<R>(
    asked: Option<Result<Accepted, StoreError>>,
    guard: &Guard<Storing>,
    state: &RunState<R, Infallible>,
) -> Ended<R, Infallible> {
    let Some(answered) = asked else {
        return Ended::own(Outcome::Failed(Failure::Drained));
    };
    let health_signs = &guard.auth.gate.health_signs;
    if !state.is_detached() || state.hung_up() {
        health_signs.record_store_answer(&answered);
    }
    match answered {
        Ok(accepted) => {
            health_signs.accepted();
            match accepted {
                Accepted::New => Ended::own(Outcome::Accepted),
                Accepted::Duplicate { same_body } => Ended::own(Outcome::Replayed { same_body }),
            }
        }
        Err(error) => Ended::refused(Refusal::from(error)),
    }
}
