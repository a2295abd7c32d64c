//! One request under way: from its head to a delivery, and from the end of its run to its answer.

use std::pin::Pin;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, Response, header};
use http_body::Body;
use tokio::time::{Instant, timeout};

use super::body::ResponseBody;
use super::read::{discard, is_read_on, read};
use super::receiver_inner::{LEAST_TO_BEGIN, ReceiverInner};
use super::reply::{RunAnswer, RunEnd, STORE_CALL};
use crate::lookup::{LookupError, RingSearch};
use crate::observe::{Answer, Observation, Reason};
use crate::outcome::{Outcome, Refusal, RefusalKind};
use crate::pipeline::{Delivery, RequestHead};
use crate::verify::BodyVerifier;

pub(crate) type Answered<R, E> = Result<Response<ResponseBody<R>>, E>;

/// One request under way.
pub(crate) struct RequestContext<N> {
    pub(crate) receiver: Arc<ReceiverInner<N>>,
    pub(crate) observation: Observation,
}

impl<N> RequestContext<N> {
    /// Begins a request. Its time for the answer counts from here.
    pub(crate) fn begin(receiver: Arc<ReceiverInner<N>>, parts: &Parts) -> Self {
        let observers = &receiver.settings.observers;
        let observation = observers.begin(parts, &*receiver.auth.clock);
        Self {
            receiver,
            observation,
        }
    }

    /// The latest time for the answer.
    pub(crate) fn answer_due(&self) -> Instant {
        self.receiver.answer_due(&self.observation)
    }

    /// Takes a delivery in: its head, the keys of its subscription, its body, its signature.
    /// Returns the response to one that is refused, or that leaves too little time for a run.
    pub(crate) async fn take_in<B: Body, R>(
        &mut self,
        parts: &Parts,
        body: Pin<&mut B>,
    ) -> Result<Delivery, Response<ResponseBody<R>>> {
        let delivery = match self.authenticate(parts, body).await {
            Ok(delivery) => delivery,
            Err(refusal) => return Err(self.refuse(refusal)),
        };
        let observers = &self.receiver.settings.observers;
        observers.verified(&mut self.observation, &delivery);
        if self.answer_due().saturating_duration_since(Instant::now()) < LEAST_TO_BEGIN {
            let refusal = Refusal::new(RefusalKind::OutOfTime);
            let (outcome, reason) = (Outcome::Refused(refusal.kind()), Arc::new(refusal.clone()));
            let verified = delivery.verified();
            self.receiver
                .report_failure(verified, Some(&delivery), outcome, Some(reason));
            return Err(self.respond_refused(refusal, Some(delivery)));
        }
        Ok(delivery)
    }

    async fn authenticate<B: Body>(
        &mut self,
        parts: &Parts,
        mut body: Pin<&mut B>,
    ) -> Result<Delivery, Refusal> {
        let receiver = Arc::clone(&self.receiver);
        let head = RequestHead::with_scheme(
            receiver.auth.scheme(),
            parts.method.as_str(),
            &parts.headers,
        )
        .announcing(body.size_hint().lower());
        let (refusal, deadline) = match self.check_head(&head).await {
            Ok((received, deadline)) => {
                match self.read_body(body.as_mut(), received, deadline).await {
                    Ok(received) => {
                        let verified = self.receiver.auth.verify(received, &head);
                        return verified.map_err(|refusal| head.named_in(refusal));
                    }
                    Err(refusal) => (refusal, Some(deadline)),
                }
            }
            // With `Expect: 100-continue` the sender has not sent the body yet: there is nothing to
            // read on.
            Err(refusal) if awaits_continue(&parts.headers) => (refusal, None),
            Err(refusal) => {
                let deadline = self.body_deadline(self.observation.started);
                (refusal, Some(deadline))
            }
        };
        if let Some(deadline) = deadline
            && is_read_on(&refusal)
        {
            discard(body, deadline).await;
        }
        Err(head.named_in(refusal))
    }

    /// Checks the head and finds the keys. Returns what receives the body, and the latest time for
    /// it.
    async fn check_head(
        &mut self,
        head: &RequestHead<'_>,
    ) -> Result<(BodyVerifier, Instant), Refusal> {
        let auth = &self.receiver.auth;
        let headers = head.read(auth.max_body, auth.scheme())?;
        let now = auth.clock.now();
        self.observation.age_checked(now);
        let checked = auth.check_age(headers, now)?;
        let look_up = match auth.keys().find(checked.subscription())? {
            RingSearch::Found(ring) => {
                let received = auth.begin_body(checked, ring);
                return Ok((received, self.body_deadline(self.observation.started)));
            }
            RingSearch::Pending(look_up) => look_up,
        };
        // At most half of the time for the answer, and what is left of it: a queue in front may
        // have polled this request late.
        let longest = STORE_CALL.min(self.receiver.settings.answer_within / 2);
        let left = self.answer_due().saturating_duration_since(Instant::now());
        let found = timeout(longest.min(left), look_up).await;
        let ring = found.unwrap_or_else(|_| Err(Arc::new(LookupError::TimedOut)))?;
        let received = auth.begin_body(checked, ring);
        // The time of the receiver's own look-up does not count as slowness of the sender.
        Ok((received, self.body_deadline(Instant::now())))
    }

    /// Reads the body to its end. On a refusal `received` is dropped here, so its buffer is free
    /// before the rest is read and dropped.
    async fn read_body<B: Body>(
        &mut self,
        body: Pin<&mut B>,
        mut received: BodyVerifier,
        deadline: Instant,
    ) -> Result<BodyVerifier, Refusal> {
        match read(
            body,
            &mut received,
            deadline,
            &self.receiver.settings.bodies,
        )
        .await
        {
            Ok(()) => {
                self.observation.body_read(|| received.unverified());
                Ok(received)
            }
            Err(refusal) => {
                self.observation.body_broke_off(received.length());
                Err(refusal)
            }
        }
    }

    /// Returns when the whole body is due: `body_deadline` after `since`, and never after the
    /// answer.
    fn body_deadline(&self, since: Instant) -> Instant {
        let deadline = since + self.receiver.settings.body_deadline;
        self.answer_due().min(deadline)
    }

    /// Refuses a request before its run. Reports it if it is authentic.
    fn refuse<R>(&mut self, refusal: Refusal) -> Response<ResponseBody<R>> {
        if let Some(verified) = refusal.authentic() {
            let (outcome, reason) = (Outcome::Refused(refusal.kind()), Arc::new(refusal.clone()));
            self.receiver
                .report_failure(verified, None, outcome, Some(reason));
        }
        self.respond_refused(refusal, None)
    }

    fn respond_refused<R>(
        &mut self,
        refusal: Refusal,
        delivery: Option<Delivery>,
    ) -> Response<ResponseBody<R>> {
        let outcome = Outcome::Refused(refusal.kind());
        let mut response = self.receiver.own_response(outcome, refusal.retry_after());
        let status = response.status().as_u16();
        let answer = self.tell_answer(outcome, status, delivery, Some(Arc::new(refusal)));
        response.extensions_mut().insert(answer);
        response
    }

    /// Makes the response of a run.
    pub(crate) fn respond<R, E>(
        &mut self,
        end: RunEnd<R, E>,
        delivery: Delivery,
    ) -> Answered<R, E> {
        let (outcome, reason) = (end.outcome, end.reason);
        let mut response = match end.answer {
            RunAnswer::Refused(refusal) => {
                return Ok(self.respond_refused(refusal, Some(delivery)));
            }
            RunAnswer::Own(own) => self.receiver.own_response(own, None),
            RunAnswer::Response(response) => response.map(ResponseBody::inner),
            RunAnswer::Error(error) => {
                // There is no response that could carry the answer, but the hooks still get it.
                self.tell_answer(outcome, 500, Some(delivery), reason);
                return Err(error);
            }
        };
        let status = response.status().as_u16();
        let answer = self.tell_answer(outcome, status, Some(delivery), reason);
        response.extensions_mut().insert(answer);
        Ok(response)
    }

    /// Tells the observers the answer.
    fn tell_answer(
        &mut self,
        outcome: Outcome,
        status: u16,
        delivery: Option<Delivery>,
        reason: Option<Reason>,
    ) -> Answer {
        let answer = Answer {
            outcome,
            status,
            delivery,
            reason,
            elapsed: self.observation.started.elapsed(),
        };
        self.observation.silence();
        let ReceiverInner { auth, settings, .. } = &*self.receiver;
        let observers = &settings.observers;
        observers.answered(auth, &mut self.observation, &answer);
        answer
    }
}

/// Tells the observers the end of a request that was not answered.
impl<N> Drop for RequestContext<N> {
    fn drop(&mut self) {
        if !self.observation.is_reported() {
            let ReceiverInner { auth, settings, .. } = &*self.receiver;
            settings.observers.hung_up(auth, &mut self.observation);
        }
    }
}

/// Returns whether the sender waits for `100 Continue` before it sends the body.
fn awaits_continue(headers: &HeaderMap) -> bool {
    let mut expected = headers.get_all(header::EXPECT).iter();
    expected.any(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}
