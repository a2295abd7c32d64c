//! The first steps of a request: its head, the keys of its subscription, its body, its signature.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, header};
use http_body::Body;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use super::exchange::{Exchange, TakenIn};
use super::guard::Guard;
use super::read::{Reading, discard, is_read_on};
use crate::lookup::{LONGEST, LookupError, RingSearch, Waiting};
use crate::observe::{Observation, in_this_span};
use crate::outcome::Refusal;
use crate::pipeline::{CheckedHead, RequestHead};
use crate::verify::{BodyVerifier, KeyRing};

/// The thing that a request waits for.
enum Wait<'a> {
    LookUp(RequestHead<'a>, CheckedHead<'a>, Waiting),
    Body(RequestHead<'a>, BodyVerifier, Reading<'a>),
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
        Ok(Ok(mut received)) => {
            let mut reading = Reading::until(deadline, &guard.settings.bodies);
            match reading.poll(body, &mut received, context) {
                Poll::Ready(read) => complete(guard, observation, (head, received, reading), read),
                Poll::Pending => Err(Box::new(Wait::Body(head, received, reading))),
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
        let (head, mut received, mut reading) = match *wait {
            Wait::LookUp(head, checked, waiting) => {
                // The time for the answer starts at `call`, so it may be nearly over when the future is first polled.
                let due = guard.answer_due(observation);
                let left = due.saturating_duration_since(Instant::now());
                let longest = LONGEST_LOOK_UP.min(guard.settings.answer_within / 2);
                let found = look_up(longest.min(left), waiting).await;
                let opened = guard.auth.receive(&checked, found);
                let received = opened.map_err(|refusal| head.named_in(refusal))?;
                // The time of the receiver's own look-up does not count as slowness of the sender.
                let deadline = guard.body_deadline(observation, Instant::now());
                let reading = Reading::until(deadline, &guard.settings.bodies);
                (head, received, reading)
            }
            Wait::Body(head, received, reading) => (head, received, reading),
            Wait::Discard(refusal, until) => {
                discard(body, until).await;
                return Err(refusal);
            }
        };
        let read = poll_fn(|context| reading.poll(body.as_mut(), &mut received, context)).await;
        match complete(guard, observation, (head, received, reading), read) {
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
    (head, received, reading): (RequestHead<'_>, BodyVerifier, Reading<'_>),
    read: Result<Instant, Refusal>,
) -> Result<TakenIn, Box<Wait<'a>>> {
    let refusal = match read {
        Ok(at) => {
            observation.body_read(|| received.unverified());
            match guard.auth.verify(received, &head) {
                Ok(delivery) => return Ok(Ok((delivery, at))),
                Err(refusal) => refusal,
            }
        }
        Err(refusal) => {
            observation.body_broke_off(received.length());
            let is_read_on = is_read_on(&refusal);
            // Some stale deliveries are read to check their signature. Their answer is the same.
            let refusal = received.stale().map_or(refusal, Refusal::from);
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
async fn look_up(limit: Duration, waiting: Waiting) -> Result<Arc<KeyRing>, Arc<LookupError>> {
    let mut look_up = DetachedLookUp {
        waiting: Some(waiting),
        runtime: Handle::try_current().ok(),
    };
    let found = match &mut look_up.waiting {
        Some(waiting) => timeout(limit, waiting).await.ok(),
        None => None,
    };
    found.unwrap_or_else(|| Err(Arc::new(LookupError::TimedOut)))
}

/// Leaves the look-up when it is dropped, at its end or before. If no other request waits for the look-up, it goes on for a
/// while: the answer of a slow database then serves the retry. Otherwise each retry would meet the same slow database again.
struct DetachedLookUp {
    /// Taken out by `drop` alone.
    waiting: Option<Waiting>,
    /// Taken here, because the request's future may be dropped on a thread without a runtime.
    runtime: Option<Handle>,
}

impl Drop for DetachedLookUp {
    fn drop(&mut self) {
        if let Some(mut waiting) = self.waiting.take()
            && let Some(runtime) = self.runtime.take()
            && waiting.detach_if_last()
        {
            runtime.spawn(in_this_span(async move {
                let _ = timeout(LONGEST, waiting).await;
            }));
        }
    }
}
