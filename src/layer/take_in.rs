//! The first three steps of a request: head with its look-up, body, signature.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::request::Parts;
use http_body::Body;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use super::exchange::{Exchange, TakenIn};
use super::read::{Reading, awaits_leave, discard, is_read_on};
use crate::clock::UnixSeconds;
use crate::lookup::{LONGEST, LookupError, LookupErrorKind, RingSearch, Waiting};
use crate::observe::{Step, in_this_span};
use crate::outcome::Refusal;
use crate::verify::Intake;
use crate::walk::{Authenticator, CheckedHead, RequestHead};

/// A request whose body is read.
struct Opened<'a> {
    head: RequestHead<'a>,
    intake: Intake,
    reading: Reading<'a>,
}

/// The thing that a request waits for.
enum Rest<'a> {
    LookUp(RequestHead<'a>, CheckedHead<'a>, Waiting),
    Body(Opened<'a>),
    /// The refusal is answered once the rest of the body was read, or at this time.
    Discard(Refusal, Instant),
}

impl<N> Exchange<N> {
    /// Takes a delivery in. Most bodies are there at once: nothing is kept for them in the future.
    pub(crate) async fn take_in<B: Body>(&self, parts: &Parts, mut body: Pin<&mut B>) -> TakenIn {
        let at_once =
            poll_fn(|context| Poll::Ready(self.take_at_once(parts, body.as_mut(), context)));
        let late = match at_once.await {
            Ok(taken_in) => return taken_in,
            Err(rest) => Box::pin(self.take_late(*rest, body)),
        };
        late.await
    }

    /// Goes on until it has to wait.
    #[inline]
    fn take_at_once<'a, B: Body>(
        &'a self,
        parts: &'a Parts,
        body: Pin<&mut B>,
        context: &mut Context<'_>,
    ) -> Result<TakenIn, Box<Rest<'a>>> {
        let auth = &self.guard().auth;
        let head = RequestHead::new(parts.method.as_str(), &parts.headers)
            .announcing(body.size_hint().lower());
        let mut now = None;
        let checked = auth.check_head(&head, |reading| {
            now = Some(reading);
            self.guard()
                .tell(Step::AgeChecked(self.observed(), reading));
        });
        match checked {
            Ok((checked, RingSearch::Found(ring))) => {
                let intake = auth.receive(&checked, ring);
                let mut opened = self.opened(head, intake, self.started());
                match opened.reading.poll(body, &mut opened.intake, context) {
                    Poll::Ready(read) => self.complete(opened, read, now),
                    Poll::Pending => Err(Box::new(Rest::Body(opened))),
                }
            }
            Ok((checked, RingSearch::Pending(waiting))) => {
                Err(Box::new(Rest::LookUp(head, checked, waiting)))
            }
            Err(refusal) if is_read_on(&refusal) && !awaits_leave(&parts.headers) => {
                let until = self.body_deadline(self.started());
                Err(Box::new(Rest::Discard(refusal, until)))
            }
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    async fn take_late<B: Body>(&self, mut rest: Rest<'_>, mut body: Pin<&mut B>) -> TakenIn {
        loop {
            let mut opened = match rest {
                Rest::LookUp(head, checked, waiting) => {
                    // The budget starts at `call`, so it may be nearly over when the future is first polled.
                    let left = self.budget_ends().saturating_duration_since(Instant::now());
                    let limit = share_of(self.guard().settings.budget).min(left);
                    let intake = look_up(limit, &self.guard().auth, checked, waiting).await?;
                    // The time of the receiver's own look-up does not count as slowness of the sender.
                    self.opened(head, intake, Instant::now())
                }
                Rest::Body(opened) => opened,
                Rest::Discard(refusal, until) => {
                    discard(body, until).await;
                    return Err(refusal);
                }
            };
            let Opened {
                intake, reading, ..
            } = &mut opened;
            let read = poll_fn(|context| reading.poll(body.as_mut(), intake, context)).await;
            rest = match self.complete(opened, read, None) {
                Ok(taken_in) => return taken_in,
                Err(rest) => *rest,
            };
        }
    }

    /// The time for the body begins at `started`.
    fn opened<'a>(&'a self, head: RequestHead<'a>, intake: Intake, started: Instant) -> Opened<'a> {
        let deadline = self.body_deadline(started);
        Opened {
            head,
            intake,
            reading: Reading::until(deadline, &self.guard().settings.bodies),
        }
    }

    fn body_deadline(&self, started: Instant) -> Instant {
        let deadline = started + self.guard().settings.body_deadline;
        self.budget_ends().min(deadline)
    }

    /// Goes on at the end of the body. `now` is a reading of the receiver's clock, unless there was a wait since.
    #[inline]
    fn complete<'a>(
        &self,
        opened: Opened<'a>,
        read: Result<Instant, Refusal>,
        now: Option<UnixSeconds>,
    ) -> Result<TakenIn, Box<Rest<'a>>> {
        let Opened {
            head,
            mut intake,
            mut reading,
        } = opened;
        match read.and_then(|at| reading.finish().map(|()| at)) {
            Ok(at) => {
                let taken = RefCell::new(&mut intake);
                let bytes = || taken.borrow_mut().bytes();
                self.guard().tell(Step::BodyRead(self.observed(), &bytes));
                let auth = &self.guard().auth;
                let now = now.unwrap_or_else(|| auth.clock.now());
                let delivery = auth.recognise_at(now, intake, &head);
                Ok(delivery.map(|delivery| (delivery, at)))
            }
            Err(refusal) => {
                self.guard()
                    .tell(Step::BodyBrokeOff(self.observed(), intake.taken()));
                let is_read_on = is_read_on(&refusal);
                // Some stale deliveries are read to check their signature. Their answer is the same.
                let stale = intake.stale().map(Refusal::from);
                let refusal = head.named_in(stale.unwrap_or(refusal));
                // The kept part of the body is freed here, before the rest arrives.
                if is_read_on {
                    Err(Box::new(Rest::Discard(refusal, reading.deadline())))
                } else {
                    Ok(Err(refusal))
                }
            }
        }
    }
}

/// The largest share of the budget for a look-up.
const MOST_TO_LOOK_UP: Duration = Duration::from_secs(1);

/// Returns the look-up's share of the budget: the same as for a call of the store, and never more than half.
fn share_of(budget: Duration) -> Duration {
    MOST_TO_LOOK_UP.min(budget / 2)
}

/// Waits for the look-up, at most for this time.
async fn look_up(
    limit: Duration,
    auth: &Authenticator,
    head: CheckedHead<'_>,
    waiting: Waiting,
) -> Result<Intake, Refusal> {
    let mut look_up = DetachedLookUp {
        waiting: Some(waiting),
        runtime: Handle::try_current().ok(),
    };
    let found = match &mut look_up.waiting {
        Some(waiting) => timeout(limit, waiting).await.ok(),
        None => None,
    };
    let too_slow = || Err(Arc::new(LookupError::new(LookupErrorKind::TimedOut)));
    auth.keys_found(&head, found.unwrap_or_else(too_slow))
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
