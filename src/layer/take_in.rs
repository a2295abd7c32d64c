//! The first steps of a request: its head, the keys of its subscription, its body, its signature.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, header};
use http_body::Body;
use tokio::time::{Instant, timeout};

use super::exchange::{Exchange, TakenIn};
use super::guard::Guard;
use super::read::{Reading, discard, is_read_on};
use crate::lookup::{LookUp, LookupError, LookupResult, RingSearch};
use crate::observe::Observation;
use crate::outcome::Refusal;
use crate::verify::Intake;
use crate::walk::{CheckedHead, RequestHead};

/// The thing that a request waits for.
enum Wait<'a> {
    LookUp(RequestHead<'a>, CheckedHead<'a>, LookUp),
    Body(RequestHead<'a>, Intake, Reading<'a>),
    /// The refusal is answered once the rest of the body was read, or at this time.
    Discard(Refusal, Instant),
}

impl<N> Exchange<N> {
    /// Takes a delivery in. Most bodies are there at once: nothing is kept for them in this future, which each request allocates.
    #[allow(clippy::manual_async_fn)] // an `async fn` keeps each argument twice: as passed, and as used
    pub(crate) fn take_in<'a, B: Body>(
        &'a mut self,
        parts: &'a Parts,
        mut body: Pin<&'a mut B>,
    ) -> impl Future<Output = TakenIn> + use<'a, B, N> {
        async move {
            let at_once = poll_fn(|context| {
                let (guard, observation) = (&*self.guard, &mut self.observation);
                let polled = take_in_at_once(guard, observation, parts, body.as_mut(), context);
                Poll::Ready(polled)
            });
            let late = match at_once.await {
                Ok(taken_in) => return taken_in,
                Err(wait) => {
                    let (guard, observation) = (&*self.guard, &mut self.observation);
                    Box::pin(take_in_late(guard, observation, wait, body))
                }
            };
            late.await
        }
    }
}

/// Goes on until it has to wait.
#[inline]
fn take_in_at_once<'a, N, B: Body>(
    guard: &'a Guard<N>,
    observation: &mut Observation,
    parts: &'a Parts,
    body: Pin<&mut B>,
    context: &mut Context<'_>,
) -> Result<TakenIn, Box<Wait<'a>>> {
    let auth = &guard.auth;
    let head = RequestHead::new(parts.method.as_str(), &parts.headers)
        .announcing(body.size_hint().lower());
    let checked = head.read(auth.max_body).and_then(|headers| {
        let now = auth.clock.now();
        observation.age_checked(now);
        auth.check_age(headers, now)
    });
    let opened = checked.and_then(|checked| match auth.keys().find(checked.subscription()) {
        Ok(RingSearch::Pending(waiting)) => Ok(Err((checked, waiting))),
        Ok(RingSearch::Found(ring)) => auth.receive::<Refusal>(&checked, Ok(ring)).map(Ok),
        Err(error) => auth.receive(&checked, Err(error)).map(Ok),
    });
    let deadline = guard.body_deadline(observation, observation.started);
    match opened {
        Ok(Ok(mut intake)) => {
            let mut reading = Reading::until(deadline, &guard.settings.bodies);
            match reading.poll(body, &mut intake, context) {
                Poll::Ready(read) => complete(guard, observation, (head, intake, reading), read),
                Poll::Pending => Err(Box::new(Wait::Body(head, intake, reading))),
            }
        }
        Ok(Err((checked, waiting))) => Err(Box::new(Wait::LookUp(head, checked, waiting))),
        Err(refusal) => {
            let is_read_on = is_read_on(&refusal) && !awaits_continue(&parts.headers);
            let refusal = head.named_in(refusal);
            if is_read_on {
                return Err(Box::new(Wait::Discard(refusal, deadline)));
            }
            Ok(Err(refusal))
        }
    }
}

async fn take_in_late<'a, N, B: Body>(
    guard: &'a Guard<N>,
    observation: &mut Observation,
    mut wait: Box<Wait<'a>>,
    mut body: Pin<&mut B>,
) -> TakenIn {
    loop {
        let (head, mut intake, mut reading) = match *wait {
            Wait::LookUp(head, checked, waiting) => {
                // The time for the answer starts at `call`, so it may be nearly over when the future is first polled.
                let due = guard.answer_due(observation);
                let left = due.saturating_duration_since(Instant::now());
                let longest = LONGEST_LOOK_UP.min(guard.settings.answer_within / 2);
                let found = look_up(longest.min(left), waiting).await;
                let opened = guard.auth.receive(&checked, found);
                let intake = opened.map_err(|refusal| head.named_in(refusal))?;
                // The time of the receiver's own look-up does not count as slowness of the sender.
                let deadline = guard.body_deadline(observation, Instant::now());
                let reading = Reading::until(deadline, &guard.settings.bodies);
                (head, intake, reading)
            }
            Wait::Body(head, intake, reading) => (head, intake, reading),
            Wait::Discard(refusal, until) => {
                discard(body, until).await;
                return Err(refusal);
            }
        };
        let read = poll_fn(|context| reading.poll(body.as_mut(), &mut intake, context)).await;
        match complete(guard, observation, (head, intake, reading), read) {
            Ok(taken_in) => return taken_in,
            Err(discard) => wait = discard,
        }
    }
}

/// Goes on at the end of the body. What was kept of a refused body is freed here, before the rest arrives.
#[inline]
fn complete<'a, N>(
    guard: &Guard<N>,
    observation: &mut Observation,
    (head, mut intake, reading): (RequestHead<'_>, Intake, Reading<'_>),
    read: Result<Instant, Refusal>,
) -> Result<TakenIn, Box<Wait<'a>>> {
    let refusal = match read {
        Ok(at) => {
            observation.body_read(|| intake.bytes());
            match guard.auth.recognise(intake, &head) {
                Ok(delivery) => return Ok(Ok((delivery, at))),
                Err(refusal) => refusal,
            }
        }
        Err(refusal) => {
            observation.body_broke_off(intake.taken());
            let is_read_on = is_read_on(&refusal);
            // Some stale deliveries are read to check their signature. Their answer is the same.
            let refusal = intake.stale().map_or(refusal, Refusal::from);
            if is_read_on {
                let refusal = head.named_in(refusal);
                return Err(Box::new(Wait::Discard(refusal, reading.deadline())));
            }
            refusal
        }
    };
    Ok(Err(head.named_in(refusal)))
}

/// Returns whether the sender waits for `100 Continue` before it sends the body: it reads the answer first.
fn awaits_continue(headers: &HeaderMap) -> bool {
    let mut expected = headers.get_all(header::EXPECT).iter();
    expected.any(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// The most time for a look-up, as for a call of the store. It is also never more than half of the time for the answer.
const LONGEST_LOOK_UP: Duration = Duration::from_secs(1);

/// Waits for the look-up, at most for this time.
async fn look_up(limit: Duration, look_up: LookUp) -> LookupResult {
    let late = |_| Err(Arc::new(LookupError::TimedOut));
    timeout(limit, look_up).await.unwrap_or_else(late)
}
