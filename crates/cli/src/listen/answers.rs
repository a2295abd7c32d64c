//! The answers to deliveries: a fixed answer, or the answer of a server behind this one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hookgate::internal::from_foreign_json;
use hookgate::{Delivery, HandlerError};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::de::IgnoredAny;

use super::filter::EventTypes;
use super::forward::{Forward, empty};

#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
    /// None where there is no body.
    pub(crate) content_type: Option<HeaderValue>,
    /// Events of other types are answered 204, and go nowhere.
    pub(crate) events: EventTypes,
    pub(crate) delay: Duration,
    /// The number of runs that are still to fail.
    pub(crate) fail_first: AtomicU64,
    pub(crate) forward: Option<Forward>,
}

/// The Content-Type of this body of all answers.
pub(crate) fn content_type(body: &[u8]) -> Option<HeaderValue> {
    if body.is_empty() {
        return None;
    }
    Some(HeaderValue::from_static(
        match from_foreign_json::<IgnoredAny>(body) {
            Ok(_) => "application/json",
            Err(_) => "text/plain; charset=utf-8",
        },
    ))
}

impl Answers {
    /// Only deliveries that are authentic, fresh and not done come here.
    pub(crate) async fn answer(&self, headers: HeaderMap, delivery: Delivery) -> Response<Bytes> {
        if !self.events.take(delivery.event_type()) {
            return empty(StatusCode::NO_CONTENT);
        }
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
        let mut response = Response::new(self.body.clone());
        *response.status_mut() = self.status;
        if let Some(content_type) = &self.content_type {
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, content_type.clone());
        }
        if self.status.is_success() {
            return response;
        }
        let reason = format!("told to answer so by --status {}", self.status.as_u16());
        HandlerError::from(reason).mark(response)
    }
}
