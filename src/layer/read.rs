//! Reads a body under a limit, a deadline and the budget of all bodies under way, or reads on and keeps no bytes.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http_body::Body;
use tokio::task::consume_budget;
use tokio::time::Instant;

use super::budget::{BodyBudget, BodyShare, BudgetSpent};
use super::timer::Timer;
use crate::outcome::{Refusal, RefusalKind};
use crate::verify::BodyVerifier;

/// The most bytes that are read of a body after its refusal is known.
const MAX_DISCARDED: u64 = 16 << 20;

/// A body that is being read. The deadline applies to the whole body, not to a chunk, so a body that arrives very slowly ends
/// too. Trailers are skipped: the headers that count for the signature cannot be hidden in them.
pub(super) struct Reading<'b> {
    share: BodyShare<'b>,
    deadline: Instant,
    timer: Timer,
}

impl<'b> Reading<'b> {
    pub(super) fn until(deadline: Instant, budget: &'b BodyBudget) -> Self {
        Self {
            share: budget.share(),
            deadline,
            timer: Timer::default(),
        }
    }

    /// Reads on. Returns the time of the body's end, or the refusal that ends it.
    pub(super) fn poll<B: Body>(
        &mut self,
        mut body: Pin<&mut B>,
        received: &mut BodyVerifier,
        context: &mut Context<'_>,
    ) -> Poll<Result<Instant, Refusal>> {
        loop {
            let Poll::Ready(frame) = body.as_mut().poll_frame(context) else {
                return self.poll_end(received, context).map(Err);
            };
            let Some(frame) = frame else {
                return Poll::Ready(Ok(Instant::now()));
            };
            let Ok(frame) = frame else {
                return refused(RefusalKind::BodyIncomplete);
            };
            if let Ok(data) = frame.into_data() {
                self.take(data, received)?;
            }
            let now = Instant::now();
            if now >= self.deadline {
                return refused(RefusalKind::BodyTooSlow);
            }
            if body.is_end_stream() {
                return Poll::Ready(Ok(now));
            }
            // A body that is always ready, such as a flood of empty frames, lets other tasks of the thread run.
            ready!(pin!(consume_budget()).poll(context));
        }
    }

    fn take(&mut self, mut data: impl Buf, received: &mut BodyVerifier) -> Result<(), Refusal> {
        let more = data.remaining();
        // Checked first: a body that is too large is refused as such.
        received.check_room(more)?;
        if received.length() > 0 {
            self.share.grow_to(received.buffer_size_with(more))?;
        }
        received.push(data.copy_to_bytes(more))?;
        Ok(())
    }

    /// Waits for the sender. The bytes that are held meanwhile are counted, in a buffer of their own: that of the server
    /// may be much larger than the first piece.
    fn poll_end(
        &mut self,
        received: &mut BodyVerifier,
        context: &mut Context<'_>,
    ) -> Poll<Refusal> {
        if received.length() > 0 {
            if let Err(spent) = self.share.grow_to(received.buffer_size_with(0)) {
                return Poll::Ready(spent.into());
            }
            received.detach();
        }
        let over = self.timer.poll(self.deadline, context);
        over.map(|()| Refusal::new(RefusalKind::BodyTooSlow))
    }
}

fn refused<T>(kind: RefusalKind) -> Poll<Result<T, Refusal>> {
    Poll::Ready(Err(Refusal::new(kind)))
}

/// Reads on and drops the bytes, so that a sender that writes its whole body before it reads gets the refusal: if the
/// connection were closed at once, it would be reset while the sender writes. Ends with the body, at the deadline, or if the
/// sender has too much to send.
pub(super) async fn discard<B: Body>(mut body: Pin<&mut B>, deadline: Instant) {
    if body.size_hint().lower() > MAX_DISCARDED {
        return;
    }
    let mut timer = Timer::default();
    let mut discarded = 0_u64;
    while discarded <= MAX_DISCARDED && Instant::now() < deadline {
        let frame = poll_fn(|context| match body.as_mut().poll_frame(context) {
            Poll::Pending => timer.poll(deadline, context).map(|()| None),
            frame => frame,
        });
        let Some(Ok(frame)) = frame.await else { return };
        let bytes = frame.into_data().map_or(0, |data| data.remaining() as u64);
        discarded = discarded.saturating_add(bytes);
        consume_budget().await;
    }
}

/// Returns whether the sender may still be writing when it gets this refusal, so that the rest of its body has to be read first.
pub(super) fn is_read_on(refusal: &Refusal) -> bool {
    matches!(
        refusal.kind(),
        RefusalKind::BodyTooLarge | RefusalKind::BodyBudgetSpent
    )
}

impl From<BudgetSpent> for Refusal {
    fn from(_: BudgetSpent) -> Self {
        Self::new(RefusalKind::BodyBudgetSpent)
    }
}
