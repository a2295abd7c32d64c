//! The answers to deliveries: a fixed answer, or the answer of a server behind this one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hookgate::{Delivery, HandlerError};
use http::{HeaderMap, Response, StatusCode};

use super::forward::{Forward, empty};

#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) status: StatusCode,
    pub(crate) delay: Duration,
    /// The number of runs that are still to fail.
    pub(crate) fail_first: AtomicU64,
    pub(crate) forward: Option<Forward>,
}

impl Answers {
    /// Only deliveries that are authentic, fresh and not done come here.
    pub(crate) async fn answer(&self, headers: HeaderMap, delivery: Delivery) -> Response<Bytes> {
        tokio::time::sleep(self.delay).await;
        let one_less = |left: u64| left.checked_sub(1);
        if self
            .fail_first
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .is_ok()
        {
            let reason = HandlerError::from("told to fail by --fail-first");
            return reason.mark(empty(StatusCode::INTERNAL_SERVER_ERROR));
        }
        if let Some(forward) = &self.forward {
            return forward.pass_on(&headers, delivery.body().clone()).await;
        }
        let response = empty(self.status);
        if self.status.is_success() {
            return response;
        }
        let reason = format!("told to answer so by --status {}", self.status.as_u16());
        HandlerError::from(reason).mark(response)
    }
}
