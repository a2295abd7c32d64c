//! The answers of a handler that say more than a status: its error among them. Each marks the
//! response that carries it.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};

use crate::event::{DataModelId, EventType, model_id};
use crate::observe::Reason;
use crate::pipeline::Delivery;
use crate::readable::Chain;

/// Marks the answer to an event that was already done.
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

pub(super) fn mark_as_replayed(headers: &mut HeaderMap) {
    headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
}

/// A handler's answer: the handler found by itself that the event is done, for example in its own
/// database transaction.
///
/// The sender gets the answer of every copy of a done event: 200, empty,
/// `Idempotent-Replayed: true`. The claim, if there is one, is committed, so that the next copy
/// does not reach the handler. The operator gets [`Outcome::Replayed`](crate::Outcome::Replayed) in
/// place of `Handled`.
///
/// An axum handler returns it, or passes it on with `?` as a [`HandlerError`](crate::HandlerError);
/// a tower service [marks](Self::mark) its response with it.
///
/// ```
/// use bytes::Bytes;
/// use hookgate::{Delivery, MemoryStore, Outcome, Receiver, Secret, layer::AlreadyHandled};
/// use http::StatusCode;
/// use http_body_util::Full;
/// # use hookgate::{
/// #     clock::{Clock, SystemClock},
/// #     layer::Answer,
/// #     verify::{Signature, Timestamp},
/// # };
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
/// let report: &Answer = answer.extensions().get().expect("each response has it");
/// assert_eq!(report.outcome, Outcome::Replayed { same_body: true });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Security
/// Give this answer only where the effects are **durable**. For the sender the event is then done,
/// and it sends no retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the handler found that the event is done already")]
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

    /// The event is done, but with another body under the same id: a fault of the sender. It is
    /// still a duplicate, and it is reported to the operator.
    pub fn with_other_body() -> Self {
        Self { same_body: false }
    }

    /// Returns whether the body is the one that was handled, as far as is known.
    #[must_use]
    pub fn same_body(&self) -> bool {
        self.same_body
    }

    /// Marks a response, whose status becomes 200. Under the layer its body and other headers are
    /// not used, because the receiver makes the answer. If later code changes the status to one
    /// outside 2xx, the mark is ignored.
    pub fn mark<B>(self, mut response: Response<B>) -> Response<B> {
        *response.status_mut() = StatusCode::OK;
        mark_as_replayed(response.headers_mut());
        response.extensions_mut().insert(self);
        response
    }
}

type HookResult = Result<(), Box<dyn Error + Send + Sync>>;

pub(crate) type DeadLetterHook =
    dyn Fn(Delivery, DeadLetter) -> Pin<Box<dyn Future<Output = HookResult> + Send>> + Send + Sync;

/// A handler's answer: this delivery can never succeed, so retries do not help.
///
/// The dead-letter hook
/// ([`ReceiverBuilder::on_dead_letter`](crate::ReceiverBuilder::on_dead_letter)) is awaited with
/// the raw delivery and this value. If it succeeds, the sender is answered 200 and the event is
/// done. If it fails, or no hook is set, the answer is 500 and the event can be retried.
///
/// An axum handler returns it, or passes it on with `?` as a [`HandlerError`](crate::HandlerError);
/// a tower service [marks](Self::mark) its response with it.
///
/// ```
/// use hookgate::DeadLetter;
///
/// let response = DeadLetter::new("no such customer").mark(http::Response::new(()));
/// assert_eq!(response.status(), 500); // what is answered where the layer is missing
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[error("this delivery can never succeed: {reason}")]
#[must_use = "a dead letter must be returned as the handler's answer"]
pub struct DeadLetter {
    reason: String,
}

impl DeadLetter {
    /// Makes a dead letter with a reason for the operator. The sender does not get the reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }

    /// Returns the reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Marks a response, whose status becomes 500.
    pub fn mark<B>(self, mut response: Response<B>) -> Response<B> {
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        response.extensions_mut().insert(self);
        response
    }
}

/// The most characters of a data model's id that are shown.
const MAX_CHARS: usize = 256;

/// A handler's answer: there is no handler for such an event.
///
/// With a 2xx the event is done, as with any 2xx, but the operator gets
/// [`Outcome::Unhandled`](crate::Outcome::Unhandled) in place of `Handled`. With any other status a
/// retry runs again, and the operator gets
/// [`Failure::Unhandled`](crate::outcome::Failure::Unhandled). In both cases this value is the
/// reason. A hook reads type and data model from it: `reason.downcast_ref::<Unhandled>()`.
///
/// The event router gives this answer where it has no arm. An axum handler returns it, which is a
/// 204; a tower service [marks](Self::mark) its response with it.
///
#[cfg_attr(feature = "axum", doc = "```")]
#[cfg_attr(not(feature = "axum"), doc = "```ignore")]
/// use axum::response::IntoResponse;
/// use hookgate::{Delivery, layer::Unhandled};
///
/// async fn on_delivery(delivery: Delivery) -> Result<(), Unhandled> {
///     match delivery.event_type() {
///         "page.created" => Ok(()),
///         _ => Err(Unhandled::new(&delivery)),
///     }
/// }
/// # fn received(body: &'static str, event_type: &str) -> Result<hookgate::Delivery, hookgate::verify::Malformed> {
/// #     let stored = hookgate::receiver::StoredDelivery::from_attributes(body, |name| match name {
/// #         "x-service-timestamp" => Some("1763690000"),
/// #         "x-service-event-id" => Some("evt_1"),
/// #         "x-service-event-type" => Some(event_type),
/// #         _ => None,
/// #     });
/// #     hookgate::dangerous::restore(&stored)
/// # }
/// # let handler: axum::routing::MethodRouter = axum::routing::post(on_delivery);
///
/// let delivery = received(r#"{"id":"evt_1","type":"row.deleted","data":{"datamodelId":"dm_1"}}"#, "row.deleted")?;
/// let unhandled = Unhandled::new(&delivery);
/// assert_eq!(unhandled.to_string(), "no handler for row.deleted of the data model dm_1");
/// assert_eq!(unhandled.into_response().status(), 204);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use = "it must be put into the handler's response"]
pub struct Unhandled {
    event_type: EventType,
    model: Option<DataModelId>,
}

impl Unhandled {
    /// Takes the delivery's event type and, for a row event, the data model, if the body names it
    /// readably.
    pub fn new(delivery: &Delivery) -> Self {
        let event_type = delivery.head().event_type.clone();
        let model = if event_type.names_datamodel() {
            model_id(delivery.verified()).ok()
        } else {
            None
        };
        Self {
            event_type,
            model: model.map(|id| DataModelId::from(&*id)),
        }
    }

    /// Returns the event's type.
    #[must_use]
    pub fn event_type(&self) -> &EventType {
        &self.event_type
    }

    /// Returns the row's data model.
    #[must_use]
    pub fn model(&self) -> Option<&DataModelId> {
        self.model.as_ref()
    }

    /// Marks a response; its status stays. A 422 becomes the receiver's own, with the shape of its
    /// other answers.
    pub fn mark<B>(self, response: Response<B>) -> Response<B> {
        HandlerError::from(self).mark(response)
    }
}

/// Both come from the body, so they are escaped. A type has at most 256 bytes, and at most 256
/// characters of an id are shown.
impl fmt::Display for Unhandled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no handler for {}",
            self.event_type.as_str().escape_debug()
        )?;
        if let Some(model) = &self.model {
            f.write_str(" of the data model ")?;
            let mut shown = model.as_str().escape_debug();
            for char in shown.by_ref().take(MAX_CHARS) {
                write!(f, "{char}")?;
            }
            if shown.next().is_some() {
                f.write_str("…")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Unhandled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unhandled({self})")
    }
}

impl Error for Unhandled {}

/// The reason why a handler failed: the error of a handler that passes on any error with `?`.
///
/// The answer is 500 with an empty body, so the claim is released and the sender tries again. If
/// one of the reasons is an error of this crate, at any depth below an error of yours or of another
/// crate, the answer is the one of that error: 422 for an [`EventError`](crate::event::EventError),
/// 503 for a [`StoreError`](crate::dedupe::StoreError), and for `NotFresh`, as
/// `claim_in(…)?.fresh()?` passes it on, 200 for a duplicate and 503 for an event that another
/// transaction holds. [`AlreadyHandled`](crate::layer::AlreadyHandled),
/// [`DeadLetter`](crate::DeadLetter) and [`Unhandled`](crate::layer::Unhandled) keep their answers
/// as well. **The sender never gets a word of the error.** The operator gets it with its chain of
/// sources: in the hooks and [`Answer`](crate::layer::Answer), in the span and the log, in the
/// delivery log, and in `hookgate inbox list`. These show at most 2 KiB of it, the inbox 512 bytes.
///
/// It works in axum handlers, in [`Receiver::handle`](crate::Receiver::handle), in the arms of the
/// event router, and in the workers of an inbox. It is made from each type that converts to
/// `Box<dyn Error + Send + Sync>`: all errors, `anyhow::Error`, and texts. Therefore it is not
/// itself an [`Error`].
///
/// For another status, [`mark`](Self::mark) a response.
///
/// ```
/// use hookgate::layer::IntoAnswer;
/// use hookgate::{Delivery, HandlerError};
/// use http::StatusCode;
///
/// async fn on_delivery(delivery: Delivery) -> Result<StatusCode, HandlerError> {
///     std::fs::write("/no/such/folder/event", delivery.body())?; // 500, and the operator reads why
///     Ok(StatusCode::NO_CONTENT)
/// }
/// # let _ = |delivery| on_delivery(delivery);
///
/// fn total(text: &str) -> Result<u32, HandlerError> {
///     if text.is_empty() {
///         return Err("the order has no total".into());
///     }
///     Ok(text.parse()?)
/// }
///
/// assert_eq!(total("12").unwrap(), 12);
/// assert_eq!(format!("{:?}", total("").unwrap_err()), "HandlerError(the order has no total)");
/// let answer = total("twelve").unwrap_err().into_answer();
/// assert_eq!((answer.status().as_u16(), &answer.body()[..]), (500, &b""[..]));
/// ```
///
/// # Security
/// Text that an error contains, such as a row that a database refused, is in the operator's log. It
/// is not redacted.
#[derive(Clone)]
#[must_use = "an error must be returned as the handler's answer, or put into its response"]
pub struct HandlerError(pub(super) Reason);

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self(Arc::from(error.into()))
    }
}

impl HandlerError {
    /// Puts the reason into a response, whose status and body stay. The layer takes it out of the
    /// response's extensions.
    ///
    /// ```
    /// use hookgate::HandlerError;
    ///
    /// let unavailable = http::Response::builder().status(503).body(())?;
    /// let response = HandlerError::from("the database is down").mark(unavailable);
    /// assert_eq!(response.status(), 503);
    /// # Ok::<(), http::Error>(())
    /// ```
    pub fn mark<B>(self, mut response: Response<B>) -> Response<B> {
        response.extensions_mut().insert(self);
        response
    }

    pub(crate) fn into_reason(self) -> Reason {
        self.0
    }
}

/// Shows the reason with its sources, for the tests of a handler.
impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HandlerError({})", Chain(&*self.0))
    }
}
