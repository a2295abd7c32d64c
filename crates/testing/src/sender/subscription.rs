//! A subscription: its URL, its secret, and the events that it takes.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use hookgate::verify::{EVENT_ID, EVENT_TYPE};
use hookgate::{Secret, clock::UnixSeconds};
use http::{HeaderValue, Request, Response, Uri};
use tokio::sync::Semaphore;

use crate::{Signer, Transport, TransportError};

/// The default number of requests of one subscription at the same time.
const AT_ONCE: usize = 16;

/// A subscription as in the service's settings: its URL, its event types, its data model and its
/// secret.
///
/// ```
/// use hookgate_testing::InProcess;
/// use hookgate_testing::sender::Subscription;
/// # use std::convert::Infallible;
/// # let app = tower::service_fn(|_: http::Request<http_body_util::Full<bytes::Bytes>>| async {
/// #     Ok::<_, Infallible>(http::Response::new(String::new()))
/// # });
///
/// let secret = hookgate::Secret::new("whsec_made_up_for_this_example")?;
/// let orders = Subscription::new("wh_1", "/webhooks", secret, InProcess::new(app))?
///     .events(["row.created", "row.deleted"])
///     .data_model("dm_orders");
/// assert!(orders.takes("row.created", Some("dm_orders")));
/// assert!(!orders.takes("row.updated", Some("dm_orders")));
/// assert!(!orders.takes("row.created", Some("dm_invoices")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Subscription {
    id: Arc<str>,
    url: Uri,
    signer: Signer,
    way: Arc<dyn DynTransport>,
    types: Option<BTreeSet<String>>,
    model: Option<String>,
    pub(super) places: Arc<Semaphore>,
}

impl Subscription {
    /// A subscription for this URL over this transport: it takes every event, and has at most 16
    /// requests at once. The service's ids begin with `wh_`.
    ///
    /// # Errors
    /// `BadUrl`, or `BadSubscriptionId` for an id that can't be a header's value.
    pub fn new(
        id: &str,
        url: &str,
        secret: Secret,
        transport: impl Transport,
    ) -> Result<Self, SenderError> {
        let fault = SenderError::new;
        let url = url.parse().map_err(|_| fault(SenderErrorKind::BadUrl))?;
        if id.is_empty() || HeaderValue::from_str(id).is_err() {
            return Err(fault(SenderErrorKind::BadSubscriptionId));
        }
        Ok(Self {
            id: id.into(),
            url,
            signer: Signer::new(secret).subscription(id),
            way: Arc::new(transport),
            types: None,
            model: None,
            places: Arc::new(Semaphore::new(AT_ONCE)),
        })
    }

    /// Limits the subscription to events of these types.
    pub fn events<'a>(mut self, types: impl IntoIterator<Item = &'a str>) -> Self {
        self.types = Some(types.into_iter().map(str::to_owned).collect());
        self
    }

    /// Limits the subscription to events of this data model's rows. Events that are about no row,
    /// such as `page.created`, name no data model and are not sent. The specification does not
    /// define this case.
    pub fn data_model(mut self, id: &str) -> Self {
        self.model = Some(id.to_owned());
        self
    }

    /// Sets the maximum number of requests at once; 0 counts as 1. An event that waits for its next
    /// attempt does not count.
    pub fn at_once(mut self, requests: usize) -> Self {
        self.places = Arc::new(Semaphore::new(requests.clamp(1, Semaphore::MAX_PERMITS)));
        self
    }

    /// The subscription's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns whether the subscription takes events of this type, about rows of this data model.
    #[must_use]
    pub fn takes(&self, event_type: &str, data_model: Option<&str>) -> bool {
        let of_type = |types: &BTreeSet<String>| types.contains(event_type);
        self.types.as_ref().is_none_or(of_type)
            && (self.model.is_none() || self.model.as_deref() == data_model)
    }

    /// Makes the delivery of an event of this id and type, signed at this time. The service sends
    /// no time before 1970, so the time is at least 1.
    #[must_use]
    pub fn signed(
        &self,
        at: UnixSeconds,
        event_id: &str,
        event_type: &str,
        body: &Bytes,
    ) -> Request<Bytes> {
        let signer = self.signer.clone().at(at.max(UnixSeconds::new(1)));
        let mut request = signer.request("/", body.clone());
        *request.uri_mut() = self.url.clone();
        // The signer reads both from the whole body, which may be malformed behind its head. So
        // they are set here.
        for (name, value) in [(EVENT_ID, event_id), (EVENT_TYPE, event_type)] {
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                request.headers_mut().insert(name, value);
            }
        }
        request
    }

    pub(super) fn deliver(&self, request: Request<Bytes>) -> DeliverFuture<'_> {
        self.way.deliver_boxed(request)
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("id", &self.id)
            .field("types", &self.types)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

pub(super) type DeliverFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Response<Bytes>, TransportError>> + Send + 'a>>;

/// A transport behind a trait object, so that the subscriptions of one sender can have different
/// transports.
trait DynTransport: Send + Sync {
    fn deliver_boxed(&self, request: Request<Bytes>) -> DeliverFuture<'_>;
}

impl<T: Transport> DynTransport for T {
    fn deliver_boxed(&self, request: Request<Bytes>) -> DeliverFuture<'_> {
        Box::pin(self.deliver(request))
    }
}

/// The part of an event that names its data model: only an event about a row has it.
#[derive(serde::Deserialize)]
struct OfRow {
    data: OfModel,
}

#[derive(serde::Deserialize)]
struct OfModel {
    #[serde(rename = "datamodelId")]
    id: String,
}

/// Returns the id of the data model that an event's body names.
#[expect(clippy::disallowed_methods, reason = "a text is read of it")]
pub(super) fn data_model(body: &[u8]) -> Option<String> {
    let of_row = serde_json::from_slice::<OfRow>(body).ok();
    of_row.map(|row| row.data.id)
}

/// The reason why a subscription can't be made, or why a sender knows no such subscription.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct SenderError {
    kind: SenderErrorKind,
}

/// The kind of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum SenderErrorKind {
    /// The text is neither a URL nor a path.
    #[error("expected a URL, or a path for a service in this process")]
    BadUrl,
    /// The subscription's id can't be a header's value: it is empty, or has control characters.
    #[error("the subscription's id fits no header: expected text without control characters")]
    BadSubscriptionId,
    /// The sender has no subscription of this id.
    #[error("the sender has no subscription of this id")]
    UnknownSubscription,
}

impl SenderError {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> SenderErrorKind {
        self.kind
    }

    pub(crate) fn new(kind: SenderErrorKind) -> Self {
        Self { kind }
    }
}
