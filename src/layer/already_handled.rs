//! The answer for an event that the handler itself found to be done.

use http::{Response, StatusCode};

use super::response::mark_as_replayed;

/// A handler's answer: the handler found by itself that the event is done, for example in its own database transaction.
///
/// The sender gets the answer of every copy of a done event: 200, empty, `Idempotent-Replayed: true`. The claim, if there is
/// one, is committed, so that the next copy does not reach the handler. The operator gets
/// [`Outcome::Replayed`](crate::Outcome::Replayed) in place of `Handled`.
///
/// An axum handler returns it; a tower service [marks](Self::mark) its response with it.
///
/// ```
/// use bytes::Bytes;
/// use hookgate::{AlreadyHandled, Delivery, MemoryStore, Outcome, Receiver, Secret};
/// use http::StatusCode;
/// use http_body_util::Full;
/// # use hookgate::{Answer, Clock, Signature, SystemClock, Timestamp};
/// # use http::Request;
///
/// /// Stands for an insert into a table of events, in the transaction of the event's effects.
/// async fn inserted(_event_id: &str) -> bool {
///     false
/// }
///
/// async fn on_delivery(delivery: Delivery) -> Result<StatusCode, AlreadyHandled> {
///     if !inserted(delivery.event_id()).await {
///         return Err(AlreadyHandled::new());
///     }
///     Ok(StatusCode::NO_CONTENT)
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// # let secret = Secret::new("whsec_made_up_for_this_example")?;
/// # let timestamp = Timestamp::at(SystemClock.now())?;
/// # let body = r#"{"id":"evt_1","type":"page.created"}"#;
/// # let signature = Signature::sign(&secret, &timestamp, body.as_bytes()).to_header_value();
/// # let request = Request::post("/webhooks")
/// #     .header("x-service-timestamp", timestamp.as_str())
/// #     .header("x-service-signature", &signature)
/// #     .body(Full::new(Bytes::from(body)))?;
/// let receiver = Receiver::builder().secret(secret).store(MemoryStore::default()).build()?;
/// let answer = receiver.handle(request, on_delivery).await;
/// assert_eq!(answer.status(), 200);
/// assert_eq!(answer.headers()["idempotent-replayed"], "true");
/// let report: &Answer = answer.extensions().get().expect("the walk has put it there");
/// assert_eq!(report.outcome, Outcome::Replayed { same_body: true });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Security
/// Give this answer only where the effects are **durable**. For the sender the event is then done, and it sends no retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it must be returned as the handler's answer"]
pub struct AlreadyHandled {
    same_body: bool,
}

impl AlreadyHandled {
    /// The event is done and, as far as is known, with this body.
    #[allow(clippy::new_without_default)] // an answer is given on purpose, and never by default
    pub fn new() -> Self {
        Self { same_body: true }
    }

    /// The event is done, but with another body under the same id: a fault of the sender. It is still a duplicate, and it is
    /// reported to the operator.
    pub fn with_other_body() -> Self {
        Self { same_body: false }
    }

    /// Returns whether the body is the one that was handled, as far as is known.
    #[must_use]
    pub fn same_body(&self) -> bool {
        self.same_body
    }

    /// Marks a response, whose status becomes 200. Under the layer its body and other headers are not used, because the
    /// receiver makes the answer. If later code changes the status to one outside 2xx, the mark is ignored.
    pub fn mark<B>(self, mut response: Response<B>) -> Response<B> {
        *response.status_mut() = StatusCode::OK;
        mark_as_replayed(response.headers_mut());
        response.extensions_mut().insert(self);
        response
    }
}
