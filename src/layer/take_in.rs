//! The first three steps of a request: head with its look-up, body, signature.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::request::Parts;
use http_body::Body;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use super::exchange::{Exchange, TakenIn};
use super::read::{Reading, awaits_leave, discard, is_read_on};
use crate::UnixSeconds;
use crate::lookup::{LONGEST, LookupError, LookupErrorKind, RingSearch, Waiting};
use crate::observe::{Step, in_this_span};
use crate::outcome::Refusal;
use crate::verify::Intake;
use crate::walk::{Authenticator, CheckedHead, RequestHead};

/// A request in one of these steps, and the thing that it waits for.
#[allow(clippy::large_enum_variant)] // There is one at a time, on the stack: a box would be an allocation for each delivery.
enum Next<'a> {
    LookUp(RequestHead<'a>, CheckedHead<'a>, Waiting),
    /// The refusal is answered once the rest of the body was read, or at this time.
    Rest(Refusal, Instant),
    Nothing(TakenIn),
}

/// A request whose body is waited for.
struct Opened<'a> {
    head: RequestHead<'a>,
    intake: Intake,
    reading: Reading<'a>,
}

impl<'a> Opened<'a> {
    /// Goes on with an intake that was already polled, and so must not be moved: a move would leave a copy of the keys' states
    /// behind. No copy of them stays once `begun` is dropped.
    fn keep(head: RequestHead<'a>, begun: &mut Intake, reading: Reading<'a>) -> Box<Self> {
        let mut kept = Box::new(Self {
            head,
            intake: Intake::in_place_of(begun),
            reading,
        });
        kept.intake.go_on_from(begun);
        kept
    }
}

impl<N> Exchange<N> {
    /// Takes a delivery in. Most bodies are there at once: their states are never moved to the heap.
    pub(crate) fn take_in<'a, B: Body>(
        &'a self,
        parts: &'a Parts,
        body: Pin<&'a mut B>,
    ) -> impl Future<Output = TakenIn> + use<'a, N, B> {
        let mut under_way = Some((body, None));
        let mut late = None;
        poll_fn(move |context| {
            if let Some((mut body, mut kept)) = under_way.take() {
                match self.take_at_once(parts, body.as_mut(), &mut kept, context) {
                    Poll::Ready(Next::Nothing(taken_in)) => return Poll::Ready(taken_in),
                    Poll::Ready(next) => late = Some(Box::pin(self.take_late(next, body))),
                    Poll::Pending => {
                        under_way = Some((body, kept));
                        return Poll::Pending;
                    }
                }
            }
            match &mut late {
                Some(late) => late.as_mut().poll(context),
                None => Poll::Pending, // it was ready before, and is not polled again
            }
        })
    }

    /// Ready unless the body is waited for, which is then `kept`.
    #[inline]
    fn take_at_once<'a, B: Body>(
        &'a self,
        parts: &'a Parts,
        body: Pin<&mut B>,
        kept: &mut Option<Box<Opened<'a>>>,
        context: &mut Context<'_>,
    ) -> Poll<Next<'a>> {
        if let Some(opened) = kept {
            let Opened {
                head,
                intake,
                reading,
            } = &mut **opened;
            let read = ready!(reading.poll(body, intake, context));
            return Poll::Ready(self.complete(head, intake, reading, read, None));
        }
        let head = RequestHead::new(parts.method.as_str(), &parts.headers)
            .announcing(body.size_hint().lower());
        let mut now = None;
        let checked = self.guard().auth.check_head(&head, |reading| {
            now = Some(reading);
            self.guard()
                .tell(Step::AgeChecked(self.observed(), reading));
        });
        Poll::Ready(match checked {
            Ok((ref checked, RingSearch::Found(selected))) => {
                let mut intake = self.guard().auth.receive(checked, selected);
                let mut reading = self.reading(self.started());
                match reading.poll(body, &mut intake, context) {
                    Poll::Ready(read) => self.complete(&head, &mut intake, &mut reading, read, now),
                    Poll::Pending => {
                        *kept = Some(Opened::keep(head, &mut intake, reading));
                        return Poll::Pending;
                    }
                }
            }
            Ok((checked, RingSearch::Pending(waiting))) => Next::LookUp(head, checked, waiting),
            Err(refusal) if is_read_on(&refusal) && !awaits_leave(&parts.headers) => {
                Next::Rest(refusal, self.body_deadline(self.started()))
            }
            Err(refusal) => Next::Nothing(Err(refusal)),
        })
    }

    async fn take_late<B: Body>(&self, mut next: Next<'_>, mut body: Pin<&mut B>) -> TakenIn {
        loop {
            next = match next {
                Next::LookUp(head, checked, waiting) => {
                    // The budget starts at `call`, so it may be nearly over when the future is first polled.
                    let left = self.budget_ends().saturating_duration_since(Instant::now());
                    let limit = share_of(self.guard().settings.budget).min(left);
                    let auth = &self.guard().auth;
                    let mut intake = look_up(limit, auth, checked, waiting).await?;
                    // The time of the receiver's own look-up does not count as slowness of the sender.
                    let mut reading = self.reading(Instant::now());
                    let read = poll_fn(|context| reading.poll(body.as_mut(), &mut intake, context));
                    let read = read.await;
                    self.complete(&head, &mut intake, &mut reading, read, None)
                }
                Next::Rest(refusal, until) => {
                    discard(body, until).await;
                    return Err(refusal);
                }
                Next::Nothing(taken_in) => return taken_in,
            }
        }
    }

    /// The time for the body begins now.
    fn reading(&self, now: Instant) -> Reading<'_> {
        Reading::until(self.body_deadline(now), &self.guard().settings.bodies)
    }

    fn body_deadline(&self, opened: Instant) -> Instant {
        let deadline = opened + self.guard().settings.body_deadline;
        self.budget_ends().min(deadline)
    }

    /// Goes on at the end of the body. `now` is a reading of the receiver's clock, unless there was a wait since.
    #[inline]
    fn complete<'a>(
        &self,
        head: &RequestHead<'_>,
        intake: &mut Intake,
        reading: &mut Reading<'_>,
        read: Result<Instant, Refusal>,
        now: Option<UnixSeconds>,
    ) -> Next<'a> {
        match read.and_then(|at| reading.finish().map(|()| at)) {
            Ok(at) => {
                let body = RefCell::new(&mut *intake);
                let bytes = || body.borrow_mut().bytes();
                self.guard().tell(Step::BodyRead(self.observed(), &bytes));
                let auth = &self.guard().auth;
                let now = now.unwrap_or_else(|| auth.clock.now());
                let delivery = auth.recognise_at(now, intake, head);
                Next::Nothing(delivery.map(|delivery| (delivery, at)))
            }
            Err(refusal) => {
                self.guard()
                    .tell(Step::BodyBrokeOff(self.observed(), intake.taken()));
                let is_read_on = is_read_on(&refusal);
                // Some stale deliveries are read to check their signature. Their answer is the same.
                let stale = intake.stale().map(Refusal::from);
                let refusal = head.named_in(stale.unwrap_or(refusal));
                // The kept part of the body is freed before the rest arrives.
                if is_read_on {
                    Next::Rest(refusal, reading.deadline())
                } else {
                    Next::Nothing(Err(refusal))
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
