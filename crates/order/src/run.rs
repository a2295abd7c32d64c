//! One event under a guard: judged, handled, recorded, reported.

use std::future::Future;
use std::time::Duration;

use hookgate::layer::IntoAnswer;
use hookgate::{
    Delivery, HandlerError,
    dedupe::{StoreError, StoreErrorKind, StoreFuture},
    internal::{catch_panic, catch_store_panic},
};
use http::{Response, StatusCode};
use tokio::time::timeout;

use super::event::RowEvent;
use super::guard::{Hook, OrderGuard};
use super::judge::{GapReason, Judgement, Order, Ordered, judge};
use super::store::LastHandled;

/// The time limit of the call before the handler.
const TO_READ: Duration = Duration::from_secs(1);
/// The time limit of each call after the handler. Its failure costs a second run of the handler, so
/// it gets longer.
const TO_WRITE: Duration = Duration::from_secs(10);
/// Each time another writer was faster.
const TRIES: u32 = 16;

/// Judges the event, has it handled, and records it once the handler has succeeded.
pub(super) async fn run<R, E, F>(
    guard: &OrderGuard,
    delivery: &Delivery,
    handle: impl FnOnce(Order) -> F,
) -> Result<Response<R>, E>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: From<&'static str>,
{
    // A body that is not a well-formed event is the handler's to refuse.
    let Ok(Some(event)) = RowEvent::read(delivery) else {
        return handle(Order::Unknown).await;
    };
    // Until the record is written: the next event of the row is judged against it.
    let _turn = match guard.turns.enter(event.row_key).await {
        Ok(turn) => turn,
        Err(error) => return Ok(unavailable(error)),
    };
    let found = match guard.last(&event, TO_READ).await {
        Ok(found) => found,
        Err(error) => return Ok(unavailable(error)),
    };
    let judgement = guard.judge(&found, &event);
    let order = judgement.order;
    let response = if order == Order::Stale && guard.skips_stale {
        skipped()
    } else {
        handle(order).await?
    };
    if !response.status().is_success() {
        return Ok(response);
    }
    match guard.record(&event, found, judgement).await {
        Ok((overlapped, gap)) => {
            let ordered = Ordered {
                delivery: delivery.clone(),
                model: event.model,
                row: event.row,
                order,
                // A stale event was told so, whatever was handled beside it.
                has_overlapped: overlapped && order != Order::Stale,
                gap,
            };
            #[cfg(feature = "metrics")]
            guard.metrics.count(&ordered);
            call_hook(guard.ordered.as_ref(), &ordered);
            Ok(response)
        }
        Err(error) => Ok(unavailable(error)),
    }
}

/// A row's record as it was read, with its revision.
type Found = Option<(u64, LastHandled)>;

/// 0 for a row without a record.
fn revision(found: &Found) -> u64 {
    found.as_ref().map_or(0, |(revision, _)| *revision)
}

impl OrderGuard {
    async fn last(&self, event: &RowEvent, limit: Duration) -> Result<Found, StoreError> {
        call_store(limit, || self.store.last(&event.row_key)).await
    }

    fn judge(&self, found: &Found, event: &RowEvent) -> Judgement {
        let mut judgement = judge(found.as_ref().map(|(_, last)| last), event);
        if found.is_none() && self.expects_creations && event.is_update() {
            judgement.gap = Some(GapReason::NotCreated);
        }
        judgement
    }

    /// Writes the record. If another event of the row was recorded since this one was judged, which
    /// is returned with the gap, this one is judged against it.
    async fn record(
        &self,
        event: &RowEvent,
        mut found: Found,
        mut judgement: Judgement,
    ) -> Result<(bool, Option<GapReason>), StoreError> {
        for attempt in 0..TRIES {
            let present = revision(&found);
            let (mut overlapped, gap) = (attempt > 0, judgement.gap);
            let Some(next) = judgement.next else {
                // No write shows that another event was recorded since. For a stale event it is not
                // asked.
                if !overlapped && judgement.order != Order::Stale {
                    overlapped = revision(&self.last(event, TO_WRITE).await?) != present;
                }
                return Ok((overlapped, gap));
            };
            let row = &event.row_key;
            let swap = || self.store.swap(row, present, next, self.retention);
            if call_store(TO_WRITE, swap).await? {
                return Ok((overlapped, gap));
            }
            found = self.last(event, TO_WRITE).await?;
            judgement = self.judge(&found, event);
        }
        Err(StoreError::new(StoreErrorKind::Conflict))
    }
}

/// The event is done. The reason is for the operator alone.
fn skipped<R: From<&'static str>>() -> Response<R> {
    let reason = "stale: a newer event of the row was handled, so the handler was not called";
    let answer = HandlerError::from(reason).mark(StatusCode::NO_CONTENT.into_answer());
    answer.map(|_| R::from(""))
}

/// The order is never guessed: a retry may find a store that works.
fn unavailable<R: From<&'static str>>(error: StoreError) -> Response<R> {
    error.into_answer().map(|_| R::from(""))
}

/// Calls a hook, if it is set.
fn call_hook<T>(hook: Option<&Hook<T>>, report: &T) {
    if let Some(hook) = hook {
        let _ = catch_panic(|| hook(report));
    }
}

/// Calls a store, and waits for its answer for at most `limit`. The call may hang, fail or panic:
/// each is an error.
async fn call_store<'a, T>(
    limit: Duration,
    call: impl FnOnce() -> StoreFuture<'a, T>,
) -> Result<T, StoreError> {
    let answered = timeout(limit, catch_store_panic(call)).await;
    answered.unwrap_or_else(|_| Err(StoreError::new(StoreErrorKind::TimedOut)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_panic_of_a_store_or_a_hook_is_caught() {
        let limit = Duration::from_secs(1);
        for panics in [
            || panic!("made-up panic of the call"),
            || StoreFuture::boxed(async { panic!("made-up panic of the future") }),
        ] {
            let error = call_store::<()>(limit, panics).await.unwrap_err();
            let below = std::error::Error::source(&error).map(ToString::to_string);
            assert_eq!(error.kind(), StoreErrorKind::Unavailable);
            assert_eq!(below.as_deref(), Some("the store panicked"));
        }
        let hook: Hook<()> = Arc::new(|()| panic!("made-up panic of the hook"));
        call_hook(Some(&hook), &());
    }
}
