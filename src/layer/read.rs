//! Reads a body under a limit, a deadline and the budget of all bodies under way, or reads on and
//! keeps no bytes.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use bytes::Buf;
use http_body::{Body, Frame};
use tokio::task::consume_budget;
use tokio::time::{Instant, timeout_at};

use super::budget::{BodyBudget, BodyShare, BudgetSpent};
use crate::outcome::{Refusal, RefusalKind};
use crate::verify::BodyVerifier;

/// The most bytes that are read of a body after its refusal is known.
const MAX_DISCARDED: u64 = 16 << 20;

/// Reads a body to its end, or returns the refusal that ends it. The deadline applies to the whole
/// body, not to a chunk, so a body that arrives very slowly ends too. Trailers are skipped: the
/// headers that count for the signature cannot be hidden in them.
pub(super) async fn read<B: Body>(
    body: Pin<&mut B>,
    received: &mut BodyVerifier,
    deadline: Instant,
    budget: &BodyBudget,
) -> Result<(), Refusal> {
    let mut share = budget.share();
    let read = timeout_at(deadline, read_chunks(body, received, deadline, &mut share)).await;
    read.unwrap_or_else(|_| Err(Refusal::new(RefusalKind::BodyTooSlow)))
}

async fn read_chunks<B: Body>(
    mut body: Pin<&mut B>,
    received: &mut BodyVerifier,
    deadline: Instant,
    share: &mut BodyShare<'_>,
) -> Result<(), Refusal> {
    loop {
        let has_ended = poll_fn(|context| match body.as_mut().poll_frame(context) {
            Poll::Pending => match hold(received, share) {
                Ok(()) => Poll::Pending,
                Err(spent) => Poll::Ready(Err(spent.into())),
            },
            Poll::Ready(None) => Poll::Ready(Ok(true)),
            Poll::Ready(Some(Ok(frame))) => {
                Poll::Ready(take(frame, received, share).map(|()| false))
            }
            Poll::Ready(Some(Err(_))) => {
                Poll::Ready(Err(Refusal::new(RefusalKind::BodyIncomplete)))
            }
        });
        if has_ended.await? {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(Refusal::new(RefusalKind::BodyTooSlow));
        }
        if body.is_end_stream() {
            return Ok(());
        }
        // A body that is always ready, such as a flood of empty frames, lets other tasks of the
        // thread run.
        consume_budget().await;
    }
}

/// Takes the bytes of a frame.
fn take(
    frame: Frame<impl Buf>,
    received: &mut BodyVerifier,
    share: &mut BodyShare<'_>,
) -> Result<(), Refusal> {
    if let Ok(mut data) = frame.into_data() {
        let more = data.remaining();
        // Checked first: a body that is too large is refused as such.
        received.check_room(more)?;
        if received.length() > 0 {
            share.grow_to(received.buffer_size_with(more))?;
        }
        received.push(data.copy_to_bytes(more))?;
    }
    Ok(())
}

/// Counts the bytes that are held while the sender is waited for, in a buffer of their own: that of
/// the server may be much larger than the first piece.
fn hold(received: &mut BodyVerifier, share: &mut BodyShare<'_>) -> Result<(), BudgetSpent> {
    if received.length() > 0 {
        share.grow_to(received.buffer_size_with(0))?;
        received.detach();
    }
    Ok(())
}

/// Reads on and drops the bytes, so that a sender that writes its whole body before it reads gets
/// the refusal: if the connection were closed at once, it would be reset while the sender writes.
/// Ends with the body, at the deadline, or if the sender has too much to send.
pub(super) async fn discard<B: Body>(mut body: Pin<&mut B>, deadline: Instant) {
    if body.size_hint().lower() > MAX_DISCARDED {
        return;
    }
    let read = async {
        let mut discarded = 0_u64;
        while discarded <= MAX_DISCARDED {
            let bytes = poll_fn(|context| {
                let length = |frame: Frame<B::Data>| {
                    frame.into_data().map_or(0, |data| data.remaining() as u64)
                };
                let polled = body.as_mut().poll_frame(context);
                polled.map(|frame| frame.and_then(Result::ok).map(length))
            });
            let Some(bytes) = bytes.await else { return };
            discarded = discarded.saturating_add(bytes);
            consume_budget().await;
        }
    };
    let _ = timeout_at(deadline, read).await;
}

/// Returns whether the sender may still be writing when it gets this refusal, so that the rest of
/// its body has to be read first.
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
