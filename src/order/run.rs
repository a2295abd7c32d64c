//! One event under a guard: judged, handled, recorded, reported.

use std::future::Future;
use std::time::Duration;

use http::{Response, StatusCode};

use super::event::RowEvent;
use super::guard::OrderGuard;
use super::judge::{GapReason, Judgement, Order, judge};
use super::last::LastHandled;
use super::report::{Gap, Ordered};
use crate::dedupe::{StoreError, StoreErrorKind};
use crate::layer::{FailureReason, IntoAnswer, call_store};
use crate::observe::call;
use crate::walk::Delivery;

/// The time limit of the call before the handler.
const TO_READ: Duration = Duration::from_secs(1);
/// The time limit of each call after the handler. Its failure costs a second run of the handler, so it gets longer.
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
    // A body that is no well-formed event is the handler's to refuse.
    let Ok(Some(event)) = RowEvent::read(delivery) else {
        return handle(Order::Unknown).await;
    };
    let found = match guard.last(&event, TO_READ).await {
        Ok(found) => found,
        Err(error) => return Ok(unavailable(error)),
    };
    let judgement = found.judge(&event, guard.expects_creations);
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
        Ok(Recorded { overlapped, gap }) => {
            // A stale event was told so, whatever was handled beside it.
            let has_overlapped = overlapped && order != Order::Stale;
            guard.report(delivery, event, order, has_overlapped, gap);
            Ok(response)
        }
        Err(error) => Ok(unavailable(error)),
    }
}

struct Recorded {
    /// Another event of the row was recorded since this one was judged.
    overlapped: bool,
    gap: Option<GapReason>,
}

/// A row's record as it was read, with its revision.
struct Found(Option<(u64, LastHandled)>);

impl Found {
    /// 0 for a row without a record.
    fn revision(&self) -> u64 {
        self.0.as_ref().map_or(0, |(revision, _)| *revision)
    }

    fn judge(&self, event: &RowEvent, expects_creations: bool) -> Judgement {
        let mut judgement = judge(self.0.as_ref().map(|(_, last)| last), event);
        if self.0.is_none() && expects_creations && event.is_update() {
            judgement.gap = Some(GapReason::NotCreated);
        }
        judgement
    }
}

impl OrderGuard {
    async fn last(&self, event: &RowEvent, limit: Duration) -> Result<Found, StoreError> {
        let last = call_store(limit, || self.store.last(&event.row_key)).await;
        last.map(Found)
    }

    /// Writes the record. If another event of the row was recorded meanwhile, this one is judged against it.
    async fn record(
        &self,
        event: &RowEvent,
        mut found: Found,
        mut judgement: Judgement,
    ) -> Result<Recorded, StoreError> {
        for attempt in 0..TRIES {
            let revision = found.revision();
            let mut recorded = Recorded {
                overlapped: attempt > 0,
                gap: judgement.gap,
            };
            let Some(next) = judgement.next else {
                // No write shows that another event was recorded since. For a stale event it is not asked.
                if !recorded.overlapped && judgement.order != Order::Stale {
                    recorded.overlapped = self.last(event, TO_WRITE).await?.revision() != revision;
                }
                return Ok(recorded);
            };
            let row = &event.row_key;
            let swap = || self.store.swap(row, revision, next, self.retention);
            if call_store(TO_WRITE, swap).await? {
                return Ok(recorded);
            }
            found = self.last(event, TO_WRITE).await?;
            judgement = found.judge(event, self.expects_creations);
        }
        Err(StoreError::new(StoreErrorKind::Conflict))
    }

    fn report(
        &self,
        delivery: &Delivery,
        event: RowEvent,
        order: Order,
        has_overlapped: bool,
        gap: Option<GapReason>,
    ) {
        let ordered = Ordered {
            delivery: delivery.clone(),
            model: event.model,
            row: event.row,
            order,
            has_overlapped,
        };
        #[cfg(feature = "metrics")]
        self.metrics.count(&ordered, gap);
        call(self.ordered.as_ref(), &ordered);
        if let Some(reason) = gap {
            let Ordered {
                delivery,
                model,
                row,
                ..
            } = ordered;
            let gap = Gap {
                delivery,
                model,
                row,
                reason,
            };
            call(self.gap.as_ref(), &gap);
        }
    }
}

/// The event is done. The reason is for the operator alone.
fn skipped<R: From<&'static str>>() -> Response<R> {
    let reason = "stale: a newer event of the row was handled, so the handler was not called";
    let answer = FailureReason::new(reason).mark(StatusCode::NO_CONTENT.into_answer());
    answer.map(|_| R::from(""))
}

/// The order is never guessed: a retry may find a store that works.
fn unavailable<R: From<&'static str>>(error: StoreError) -> Response<R> {
    error.into_answer().map(|_| R::from(""))
}
