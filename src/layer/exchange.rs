//! One request under way: the steps between a request and its answer.

use std::error::Error;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use tokio::time::Instant;
use tower_service::Service;

use super::body::{ResponseBody, VerifiedBody};
use super::guard::{Guard, LEAST_TO_BEGIN};
use super::hang_up::attached;
use super::request_run::{Work, run};
use super::run_state::{End, Ended, RunState};
use crate::observe::{Answer, Observation, Reason};
use crate::outcome::{Outcome, Refusal, RefusalKind};
use crate::pipeline::{Claims, Delivery};

/// A delivery, and when its body was complete; or the reason why there is none.
pub(super) type TakenIn = Result<(Delivery, Instant), Refusal>;

pub(crate) type Answered<R, E> = Result<Response<ResponseBody<R>>, E>;

/// One request under way.
pub(crate) struct Exchange<N> {
    pub(crate) guard: Arc<Guard<N>>,
    pub(crate) observation: Observation,
}

/// Takes a delivery from its request to its answer.
///
/// Not an `async fn`, which keeps each argument twice: as passed, and as used.
#[expect(
    clippy::disallowed_methods,
    reason = "a `Delivery` is a proof, which only this crate makes"
)]
pub(super) fn deliver<S, B, R>(
    receiver: Arc<Guard<Claims>>,
    mut inner: S,
    request: Request<B>,
) -> impl Future<Output = Answered<R, S::Error>> + use<S, B, R>
where
    S: Service<Request<VerifiedBody>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    R: Send + 'static,
    B: Body,
{
    let (parts, body) = request.into_parts();
    let mut exchange = Exchange::begin(receiver, &parts);
    exchange.observation.span.clone().around(async move {
        if let Some(delivery) = parts.extensions.get::<Delivery>()
            && delivery.by() == exchange.guard.auth.gate.id
        {
            // An outer layer of the same receiver, such as `Router::layer` over a route's own layer, already holds the claim.
            // If this layer waited for that claim, the request would wait for itself.
            exchange.observation.end_is_told();
            let body = VerifiedBody::new(delivery.body().clone());
            // Boxed, because it is rare and must not enlarge the frame of the other requests.
            let answer = Box::pin(inner.call(Request::from_parts(parts, body))).await;
            return answer.map(|response| response.map(ResponseBody::inner));
        }
        let taken_in = exchange.take_in(&parts, pin!(body)).await;
        let (delivery, now) = match exchange.recognised(taken_in) {
            Ok(recognised) => recognised,
            Err((refusal, delivery)) => return Ok(exchange.refuse(refusal, delivery)),
        };
        let work = Work {
            guard: Arc::clone(&exchange.guard),
            delivery: delivery.clone(),
            inner,
            parts,
        };
        let state = Arc::new(RunState::new(now));
        let run = run(work, now, Arc::clone(&state));
        let ended = attached(state, run, exchange.answer_due()).await;
        exchange.conclude(ended, delivery)
    })
}

impl<N> Exchange<N> {
    pub(crate) fn begin(guard: Arc<Guard<N>>, parts: &Parts) -> Self {
        let observers = &guard.settings.observers;
        let observation = observers.begin(parts, &*guard.auth.clock);
        Self { guard, observation }
    }

    /// The latest time for the answer.
    pub(crate) fn answer_due(&self) -> Instant {
        self.guard.answer_due(&self.observation)
    }

    /// Goes on with a delivery; unless it was refused or too little time is left for a run.
    pub(crate) fn recognised(
        &mut self,
        taken_in: TakenIn,
    ) -> Result<(Delivery, Instant), (Refusal, Option<Delivery>)> {
        let (delivery, now) = taken_in.map_err(|refusal| (refusal, None))?;
        let observers = &self.guard.settings.observers;
        observers.recognised(&mut self.observation, &delivery);
        if self.answer_due().saturating_duration_since(now) < LEAST_TO_BEGIN {
            return Err((Refusal::new(RefusalKind::OutOfTime), Some(delivery)));
        }
        Ok((delivery, now))
    }

    pub(crate) fn refuse<R>(
        &mut self,
        refusal: Refusal,
        delivery: Option<Delivery>,
    ) -> Response<ResponseBody<R>> {
        let (now, outcome) = (Instant::now(), Outcome::Refused(refusal.kind()));
        let mut response = self.guard.own_response(outcome, refusal.retry_after());
        let refusal = Arc::new(refusal);
        let reason = Some(Arc::clone(&refusal) as Reason);
        let verified = delivery.as_ref().map(Delivery::verified);
        if let Some(verified) = verified.or(refusal.authentic()) {
            self.guard
                .report_failure(verified, delivery.as_ref(), outcome, reason.clone());
        }
        let status = response.status().as_u16();
        let answer = self.answered(outcome, status, delivery, reason, now);
        response.extensions_mut().insert(answer);
        response
    }

    pub(crate) fn conclude<R, E>(
        &mut self,
        ended: Ended<R, E>,
        delivery: Delivery,
    ) -> Answered<R, E> {
        let (outcome, reason) = (ended.outcome, ended.reason);
        let now = ended.at.unwrap_or_else(Instant::now);
        let mut response = match ended.end {
            End::Refused(refusal) => {
                // A refusal without a source means that this layer has given up the call. The steps note the store's own
                // answers.
                if refusal.kind() == RefusalKind::StoreTooSlow && refusal.source().is_none() {
                    self.guard.auth.gate.health_signs.store_failed();
                }
                return Ok(self.refuse(refusal, Some(delivery)));
            }
            End::Own(own) => self.guard.own_response(own, None),
            End::Response(response) => response.map(ResponseBody::inner),
            End::Error(error) => {
                // There is no response that could carry the answer, but the hooks still get it.
                self.answered(outcome, 500, Some(delivery), reason, now);
                return Err(error);
            }
        };
        let status = response.status().as_u16();
        let answer = self.answered(outcome, status, Some(delivery), reason, now);
        response.extensions_mut().insert(answer);
        Ok(response)
    }

    /// Tells the answer.
    fn answered(
        &mut self,
        outcome: Outcome,
        status: u16,
        delivery: Option<Delivery>,
        reason: Option<Reason>,
        now: Instant,
    ) -> Answer {
        let answer = Answer {
            outcome,
            status,
            delivery,
            reason,
            elapsed: now.saturating_duration_since(self.observation.started),
        };
        self.observation.end_is_told();
        let Guard { auth, settings, .. } = &*self.guard;
        let observers = &settings.observers;
        observers.answered(auth, &mut self.observation, &answer);
        answer
    }
}

/// Tells the end of a request that was not answered.
impl<N> Drop for Exchange<N> {
    fn drop(&mut self) {
        if !self.observation.is_end_told() {
            let Guard { auth, settings, .. } = &*self.guard;
            settings.observers.hung_up(auth, &mut self.observation);
        }
    }
}
