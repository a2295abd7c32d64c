//! The run: claim, handler and commit in one future that no cancellation can cut off half way.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use http::request::Parts;
use http::{Request, Response};
use tokio::time::Instant;
use tower_service::Service;

use super::body::VerifiedBody;
use super::bounded::{ClaimedRun, Handled, supervise};
use super::claim::claim;
use super::guard::Guard;
use super::run_state::{End, Ended, RunState};
use super::settle::{dead_letter, judge, settle};
use super::timer::in_time;
use crate::body_limit::lift_body_limit;
use crate::caught::caught;
use crate::observe::Reason;
use crate::outcome::{Refusal, RefusalKind};
use crate::pipeline::{Claims, Delivery, ForHealth, Settlement};

/// The parts of a run.
pub(super) struct Work<S> {
    pub(super) guard: Arc<Guard<Claims>>,
    pub(super) delivery: Delivery,
    pub(super) inner: S,
    pub(super) parts: Parts,
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
        let claim = match claim(guard, delivery, &state, &mut has_waited).await {
            Ok(claim) => claim,
            Err(ended) => {
                report_if_hung_up(&ended, guard, delivery, &state);
                return Some(ended);
            }
        };
        if !state.begins_to_handle() {
            // No request waits for this copy, and the sender will send another. A late claim is not worth a run.
            let too_late = Refusal::new(RefusalKind::StoreTooSlow);
            report_if_hung_up(&Ended::refused(too_late), guard, delivery, &state);
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
        let handled = 'handled: {
            let mut handler = pin!(None);
            let call = || inner.call(request(work.parts, delivery));
            if let Err(panicked) = caught(|| handler.set(Some(call()))) {
                break 'handled Handled::Panicked(panicked);
            }
            supervise(handler, &run).await
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

/// Returns the request for the handler, behind a route and behind a queue. Made once the event is claimed: a copy needs none.
pub(crate) fn request(parts: Parts, delivery: &Delivery) -> Request<VerifiedBody> {
    let body = VerifiedBody::new(delivery.body().clone());
    let mut request = Request::from_parts(parts, body);
    request.extensions_mut().insert(delivery.clone());
    lift_body_limit(&mut request, delivery.body().len());
    request
}

/// Reports a refusal if the sender hung up while the store was asked for the claim: no request does it then. It may have been
/// the last attempt.
fn report_if_hung_up<R, E>(
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
