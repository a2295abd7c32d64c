//! The reasons why a delivery was answered without running the handler.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::dedupe::{StoreError, StoreErrorKind};
use crate::event::{EventError, EventErrorKind};
use crate::lookup::{LookupError, SubscriptionId};
use crate::readable::Chain;
use crate::verify::{BodyTooLarge, Verified};
use crate::verify::{VerifyError, VerifyErrorKind};

/// The reason why a delivery was answered without running the handler.
///
/// | for | write | a delivery with a wrong signature |
/// |---|---|---|
/// | the operator's log | `{refusal:#}`, the cause in one line | `delivery refused: not authentic or not fresh: the signature is not …` |
/// | the sender | [`RefusalKind::status`], [`code`](RefusalKind::code), [`message`](RefusalKind::message) | `the delivery could not be authenticated` |
///
/// `{refusal}` alone is the same text for every delivery that is not authentic, so it is useless in
/// a log. The cause is also the chain of sources, and [`kind`](Self::kind).
///
/// ```
/// use hookgate::{MemoryStore, Receiver, Secret, receiver::RequestHead};
///
/// let receiver = Receiver::builder()
///     .secret(Secret::new("whsec_made_up_for_this_example")?)
///     .store(MemoryStore::default())
///     .build()?;
/// let refusal = receiver.check_head(&RequestHead::new("POST", [("x-service-timestamp", "1763690000")])).unwrap_err();
/// // To the log:
/// assert_eq!(
///     format!("{refusal:#}"),
///     "delivery refused: not authentic or not fresh: header x-service-signature is missing"
/// );
/// // To the sender:
/// let kind = refusal.kind();
/// assert_eq!((kind.status(), kind.message()), (401, "the delivery could not be authenticated"));
/// # Ok::<(), hookgate::ConfigError>(())
/// ```
///
/// # Security
/// No text of a refusal holds a secret, a MAC or a body. Never send the cause to the sender: it
/// tells a forger which check failed.
#[derive(Clone, Debug)]
pub struct Refusal {
    kind: RefusalKind,
    retry_after: Option<Duration>,
    source: Option<Arc<dyn Error + Send + Sync>>,
    authentic: Option<Box<Verified>>,
    claimed: Option<SubscriptionId>,
}

/// The kinds of refusal, in the order of the outcomes table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// A method other than POST: 405.
    MethodNotAllowed,
    /// A `Content-Encoding` other than identity, or a `Content-Type` that is neither
    /// `application/json` nor `+json`: 415. The source says which.
    MediaNotSupported,
    /// The announced or actual size of the body is over the limit: 413. The layer first reads the
    /// rest of the body, up to 16 MiB and until the body's deadline.
    BodyTooLarge,
    /// Not authentic or not fresh: 401. The source, a [`VerifyError`], gives the exact reason.
    NotAuthentic,
    /// The body did not arrive within its deadline: 408.
    BodyTooSlow,
    /// The body ended too early: 400, if the sender is still connected.
    BodyIncomplete,
    /// Authentic, but there is no usable id and type at the head of a JSON object: 400. The source
    /// is an [`EventError`].
    UnusableEvent,
    /// Authentic, but `X-Service-Event-Id` or `X-Service-Event-Type` differs from the signed
    /// body: 400.
    /// The source says which.
    HeaderDiffers,
    /// The provider of secrets failed to answer, answered too late, or found keys that are
    /// refused: 503.
    /// The chain of sources says which, and has its error.
    SecretsUnavailable,
    /// The subscription's keys have to be looked up, and this step does not wait: 503. Only
    /// [`Receiver::check_head`](crate::Receiver::check_head) refuses in this way, if rings are
    /// looked up; see [`check_head_async`](crate::Receiver::check_head_async).
    NotLookedUp,
    /// The arriving bodies held the most bytes that they may hold, and this body, which came in
    /// pieces, found no room: 503. See `ReceiverBuilder::body_budget`.
    BodyBudgetSpent,
    /// The most runs that are allowed are under way: 503.
    NoPermitFree,
    /// The receiver is draining: 503.
    ShuttingDown,
    /// The store of claims, or the sink of an `Acceptor`, failed to answer, or refuses this
    /// delivery permanently: 503, because a repaired store can still take the retry. The source is
    /// a [`StoreError`]; its kind gives the reason.
    StoreUnavailable,
    /// The store of claims did not answer within its share of the time for the answer, or not
    /// before the lease that it granted had ended:
    /// 503. Or a sink answered that it was too slow, or the call of the sink was given up.
    StoreTooSlow,
    /// The store of claims, or the sink, is full and set to refuse: 503.
    StoreFull,
    /// After the body, too little time for the answer was left to begin a run: 503.
    OutOfTime,
    /// Another copy of the event is still running: 503. The source says so where too many copies
    /// wait for it already.
    StillRunning,
}

impl RefusalKind {
    /// Returns the HTTP status of the answer.
    #[must_use]
    pub fn status(self) -> u16 {
        self.row().0
    }

    /// Returns the code of the service's error envelope (service specification, *Errors*).
    #[must_use]
    pub fn code(self) -> &'static str {
        match self.status() {
            401 => "UNAUTHORIZED",
            503 => "INTERNAL_ERROR",
            _ => "VALIDATION_ERROR",
        }
    }

    /// Returns the message that the sender gets.
    #[must_use]
    pub fn message(self) -> &'static str {
        match self {
            Self::NotAuthentic => "the delivery could not be authenticated",
            Self::HeaderDiffers => "the headers name another event than the body",
            _ if self.status() == 503 => "not now, try again",
            _ => self.row().2,
        }
    }

    /// Returns a short name for logs and metrics, in snake case. Stable.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Returns the status, the name, and the text for the operator, which precedes the chain of
    /// sources.
    #[rustfmt::skip] // a row a kind
    fn row(self) -> (u16, &'static str, &'static str) {
        match self {
            Self::MethodNotAllowed => (405, "method_not_allowed", "deliveries are sent with POST"),
            Self::MediaNotSupported => (415, "media_not_supported", "deliveries are sent as application/json, without content encoding"),
            Self::BodyTooLarge => (413, "body_too_large", "the body is too large"),
            Self::NotAuthentic => (401, "not_authentic", "not authentic or not fresh"),
            Self::BodyTooSlow => (408, "body_too_slow", "the body took too long"),
            Self::BodyIncomplete => (400, "body_incomplete", "the body is incomplete"),
            Self::UnusableEvent => (400, "unusable_event", "the body is not an event with an id and a type"),
            Self::HeaderDiffers => (400, "header_differs", "the unsigned headers name another event than the signed body"),
            Self::SecretsUnavailable => (503, "secrets_unavailable", "the subscription's keys could not be looked up"),
            Self::NotLookedUp => (503, "not_looked_up", "the subscription's keys have to be looked up first"),
            Self::BodyBudgetSpent => (503, "body_budget_spent", "the bodies that are arriving hold the most bytes that they may"),
            Self::NoPermitFree => (503, "no_permit_free", "the most runs that are allowed are under way"),
            Self::ShuttingDown => (503, "shutting_down", "the receiver is shutting down"),
            Self::StoreUnavailable => (503, "store_unavailable", "the store could not answer"),
            Self::StoreTooSlow => (503, "store_too_slow", "the store took longer than its share of the time for the answer"),
            Self::StoreFull => (503, "store_full", "the store is full"),
            Self::OutOfTime => (503, "out_of_time", "too little time for the answer was left to begin a run"),
            Self::StillRunning => (503, "still_running", "another copy is still running"),
        }
    }
}

/// The exact reason of a refusal, where several have one kind and one remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RefusalDetail {
    #[error("content-encoding names a coding")]
    ContentEncoding,
    #[error("content-type names another type than JSON")]
    ContentType,
    /// The header of this name.
    #[error("{0} differs")]
    Differs(&'static str),
    #[cfg_attr(not(feature = "tower"), allow(dead_code))]
    #[error("too many copies of the event already wait")]
    TooManyWait,
}

/// The `Retry-After` of a 503 that has no better value.
pub(crate) const DEFAULT_RETRY: Duration = Duration::from_secs(10);

impl Refusal {
    pub(crate) fn new(kind: RefusalKind) -> Self {
        Self {
            kind,
            retry_after: (kind.status() == 503).then_some(DEFAULT_RETRY),
            source: None,
            authentic: None,
            claimed: None,
        }
    }

    /// Keeps the bytes of an authentic delivery for the operator.
    pub(crate) fn with_authentic(mut self, verified: Verified) -> Self {
        self.authentic = Some(Box::new(verified));
        self
    }

    /// Notes the value of `X-Service-Webhook-Id`, if it has the form of an id.
    pub(crate) fn claiming(mut self, subscription: Option<&[u8]>) -> Self {
        let text = subscription.and_then(|id| std::str::from_utf8(id).ok());
        self.claimed = text.and_then(|id| SubscriptionId::parse(id).ok());
        self
    }

    /// Makes the refusal for an event head that is not usable. A workspace to which the ring is not
    /// pinned makes the delivery not authentic.
    pub(crate) fn from_event_head(error: EventError, verified: Verified) -> Self {
        if error.kind() == EventErrorKind::WorkspaceMismatch {
            return VerifyError::new(VerifyErrorKind::WorkspaceMismatch).into();
        }
        Self::new(RefusalKind::UnusableEvent)
            .caused_by(error)
            .with_authentic(verified)
    }

    pub(crate) fn caused_by(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    #[cfg(feature = "tower")]
    pub(crate) fn retry_after_lease(mut self, left: Duration) -> Self {
        self.retry_after = Some(left.clamp(Duration::from_secs(1), Duration::from_secs(60)));
        self
    }

    /// Returns the kind of the refusal.
    #[must_use]
    pub fn kind(&self) -> RefusalKind {
        self.kind
    }

    /// Returns the time after which the sender may try again, for the `Retry-After` of a 503.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns the delivery's bytes, if the delivery was authentic and was refused because of its
    /// content.
    #[must_use]
    pub fn authentic(&self) -> Option<&Verified> {
        self.authentic.as_deref()
    }

    /// Returns the subscription that the request claims to come from: its `X-Service-Webhook-Id`,
    /// if the request has that header once, and with the form of a [`SubscriptionId`]. `None` for
    /// refusals after the delivery was recognised.
    ///
    /// # Security
    /// **Unproven.** The header is not signed, and a refused request was not authenticated: any
    /// client can send any id of this form. Show it to an operator, marked as unproven. Do not
    /// select or count by it: a client can send any number of ids.
    #[must_use]
    pub fn claimed_subscription(&self) -> Option<&SubscriptionId> {
        self.claimed.as_ref()
    }

    /// Returns the reason why the delivery was not authentic, or `NotLookedUp`; `None` for other
    /// refusals.
    #[must_use]
    pub fn verify_error(&self) -> Option<&VerifyError> {
        self.source.as_ref()?.downcast_ref()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return Chain(self).fmt(f); // which writes the refusal itself without `#`
        }
        write!(f, "delivery refused: {}", self.kind.row().2)
    }
}

impl Error for Refusal {
    /// Returns a [`VerifyError`], [`EventError`] or [`StoreError`], which can be downcast, or the
    /// error of a look-up, whose source is the provider's own error.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source = self.source.as_deref()?;
        Some(source)
    }
}

impl From<VerifyError> for Refusal {
    fn from(error: VerifyError) -> Self {
        let kind = match error.kind() {
            VerifyErrorKind::NotLookedUp => RefusalKind::NotLookedUp,
            _ => RefusalKind::NotAuthentic,
        };
        Self::new(kind).caused_by(error)
    }
}

/// All deliveries that waited for the look-up share the error.
impl From<Arc<LookupError>> for Refusal {
    fn from(error: Arc<LookupError>) -> Self {
        Self {
            source: Some(error),
            ..Self::new(RefusalKind::SecretsUnavailable)
        }
    }
}

impl From<BodyTooLarge> for Refusal {
    fn from(error: BodyTooLarge) -> Self {
        Self::new(RefusalKind::BodyTooLarge).caused_by(error)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let kind = match error.kind() {
            StoreErrorKind::Full => RefusalKind::StoreFull,
            StoreErrorKind::TimedOut => RefusalKind::StoreTooSlow,
            _ => RefusalKind::StoreUnavailable,
        };
        Self::new(kind).caused_by(error)
    }
}
