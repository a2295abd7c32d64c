//! Reads a body under a limit, a deadline and the budget of all bodies under way, or reads on and keeps no bytes.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Buf;
use http::{HeaderMap, header};
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep, sleep_until};

use super::budget::{BodyBudget, BodyShare, BudgetSpent};
use crate::outcome::{Refusal, RefusalKind};
use crate::verify::Intake;

/// The most bytes that are read of a body after its refusal is known.
const MOST_DISCARDED: u64 = 16 << 20;

/// Reads a body to its end. The deadline applies to the whole body, not to a chunk, so a body that arrives very slowly ends
/// too. Trailers are skipped: the headers that count for the signature cannot be hidden in them.
pub(super) async fn read<B: Body>(
    mut body: Pin<&mut B>,
    intake: &mut Intake,
    budget: &BodyBudget,
    deadline: Instant,
) -> Result<(), Refusal> {
    let mut deadline = pin!(sleep_until(deadline));
    let mut share = budget.share();
    loop {
        let waits = |context: &mut Context<'_>| waits(intake, &mut share, context);
        let Some(frame) = next(body.as_mut(), deadline.as_mut(), waits).await? else {
            return share.finish().map_err(Refusal::from);
        };
        if let Ok(mut data) = frame.into_data() {
            let more = data.remaining();
            // Checked first: a body that is too large is refused as such, and no other body gives way for it.
            intake.admits(more)?;
            if intake.taken() > 0 {
                gather(intake, &mut share, more)?;
            }
            intake.push(data.copy_to_bytes(more))?;
        }
        goes_on(&deadline).await?;
    }
}

/// Reads on and drops the bytes, so that a sender that writes its whole body before it reads gets the refusal: if the
/// connection were closed at once, it would be reset while the sender writes. Ends with the body, at the deadline, or if the
/// sender has too much to send.
pub(super) async fn discard<B: Body>(mut body: Pin<&mut B>, deadline: Instant) {
    if body.size_hint().lower() > MOST_DISCARDED {
        return;
    }
    let mut deadline = pin!(sleep_until(deadline));
    let mut discarded = 0_u64;
    while discarded <= MOST_DISCARDED {
        match next(body.as_mut(), deadline.as_mut(), |_| Ok(())).await {
            Ok(Some(frame)) => {
                let data = frame.into_data();
                let bytes = data.map_or(0, |data| data.remaining() as u64);
                discarded = discarded.saturating_add(bytes);
            }
            Ok(None) | Err(_) => return,
        }
        if goes_on(&deadline).await.is_err() {
            return;
        }
    }
}

/// Returns whether the sender may still be writing when it gets this refusal, so that its body has to be read on.
pub(super) fn is_read_on(refusal: &Refusal) -> bool {
    matches!(
        refusal.kind(),
        RefusalKind::BodyTooLarge | RefusalKind::BodyBudgetSpent
    )
}

/// Returns whether the sender waits for `100 Continue` before it sends the body: it reads the answer first.
pub(super) fn awaits_leave(headers: &HeaderMap) -> bool {
    let mut expected = headers.get_all(header::EXPECT).iter();
    expected.any(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// Returns the next frame, or a refusal at the deadline. `waits` runs before each wait.
async fn next<B: Body>(
    mut body: Pin<&mut B>,
    mut deadline: Pin<&mut Sleep>,
    mut waits: impl FnMut(&mut Context<'_>) -> Result<(), Refusal>,
) -> Result<Option<Frame<B::Data>>, Refusal> {
    poll_fn(|context| {
        if let Poll::Ready(frame) = body.as_mut().poll_frame(context) {
            let frame = frame.transpose();
            return Poll::Ready(frame.map_err(|_| Refusal::new(RefusalKind::BodyIncomplete)));
        }
        if let Err(refusal) = waits(context) {
            return Poll::Ready(Err(refusal));
        }
        let over = deadline.as_mut().poll(context);
        over.map(|()| Err(Refusal::new(RefusalKind::BodyTooSlow)))
    })
    .await
}

/// Ends a body that is always ready, such as a flood of empty frames, at its deadline, and lets other tasks of the thread run.
async fn goes_on(deadline: &Sleep) -> Result<(), Refusal> {
    if deadline.is_elapsed() || Instant::now() >= deadline.deadline() {
        return Err(Refusal::new(RefusalKind::BodyTooSlow));
    }
    tokio::task::consume_budget().await;
    Ok(())
}

/// Counts the bytes that are held while the receiver waits for the sender; they can be freed.
fn waits(
    intake: &mut Intake,
    share: &mut BodyShare<'_>,
    context: &Context<'_>,
) -> Result<(), Refusal> {
    if intake.taken() == 0 {
        return Ok(());
    }
    gather(intake, share, 0)?;
    match share.poll_spent(context) {
        Poll::Ready(spent) => Err(spent.into()),
        Poll::Pending => Ok(()),
    }
}

/// Gathers the body in a counted buffer, with room for `more` bytes. The first piece then no longer holds the buffer into which
/// the server has read it, which may be much larger than the piece.
fn gather(intake: &mut Intake, share: &mut BodyShare<'_>, more: usize) -> Result<(), Refusal> {
    let buffer = share.hold(intake.room_with(more))?;
    intake.gather_in(buffer);
    Ok(())
}

impl From<BudgetSpent> for Refusal {
    fn from(_: BudgetSpent) -> Self {
        Self::new(RefusalKind::BodyBudgetSpent)
    }
}
