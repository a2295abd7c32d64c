//! Signs deliveries as the service does.

use hookgate::{
    Scheme, Secret,
    clock::{Clock, SystemClock, UnixSeconds},
    internal::body_digest,
    verify::{EVENT_ID, EVENT_TYPE, SIGNATURE, Signature, TIMESTAMP, Timestamp, WEBHOOK_ID, sign},
};

/// Signs bodies as the service does: for tests of a whole receiver, and for tools that send
/// deliveries.
///
/// It also makes the whole request, in the form that `oneshot` takes:
///
/// ```
/// use axum::{Router, body::Body, http::StatusCode, routing::post};
/// use hookgate_testing::Signer;
/// use hookgate::{Delivery, MemoryStore, Receiver, Secret};
/// use tower::ServiceExt;
///
/// async fn on_delivery(_: Delivery) -> StatusCode {
///     StatusCode::NO_CONTENT
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let secret = Secret::new("whsec_made_up_for_this_test")?;
/// let receiver = Receiver::builder().secret(secret.clone()).store(MemoryStore::default()).build()?;
/// let app: Router = Router::new().route("/webhooks", post(on_delivery).layer(receiver.layer()));
///
/// let signer = Signer::new(secret);
/// let body = r#"{"id":"evt_1","type":"page.created"}"#;
/// let first = app.clone().oneshot(signer.request("/webhooks", body).map(Body::from)).await?;
/// assert_eq!(first.status(), 204);
/// let again = app.oneshot(signer.request("/webhooks", body).map(Body::from)).await?;
/// assert_eq!(again.headers()["idempotent-replayed"], "true");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// For any other client, the headers alone:
///
/// ```
/// use hookgate_testing::Signer;
/// use hookgate::{Secret, Verifier, clock::UnixSeconds, verify::DeliveryHeaders};
///
/// let secret = Secret::new("whsec_made_up_for_this_test")?;
/// let at = UnixSeconds::new(1_763_690_000);
/// let body = r#"{"id":"evt_1","type":"row.deleted"}"#;
/// let headers = Signer::new(secret.clone()).subscription("wh_1").at(at).headers(body);
/// assert!(headers.contains(&("x-service-event-id", "evt_1".to_owned())));
///
/// let head = DeliveryHeaders::from_pairs(headers.iter().map(|(name, value)| (*name, value)))?;
/// assert!(Verifier::new(secret).verify(&head, body, at).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Signer {
    secret: Secret,
    scheme: Scheme,
    subscription: Option<String>,
    id: Option<String>,
    at: Option<UnixSeconds>,
}

impl Signer {
    /// Signs with this secret, at the time of signing, for no subscription.
    pub fn new(secret: Secret) -> Self {
        Self {
            secret,
            scheme: Scheme::WORKSPACE,
            subscription: None,
            id: None,
            at: None,
        }
    }

    /// Signs as this sender does. A scheme whose id stands in a header gets there [this
    /// one](Self::event_id), or the `id` of the body where it can stand there, or one that is made
    /// of the body's digest.
    ///
    /// ```
    /// use hookgate::{Scheme, Secret, Verifier};
    /// use hookgate_testing::Signer;
    ///
    /// let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
    /// let headers = Signer::new(secret.clone()).scheme(Scheme::STANDARD_WEBHOOKS).headers("{}");
    /// let verifier = Verifier::for_scheme(Scheme::STANDARD_WEBHOOKS, secret)?;
    /// assert!(verifier.verify_now(headers.iter().map(|(name, value)| (*name, value)), "{}").is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = scheme;
        self
    }

    /// Sends `X-Service-Webhook-Id`, or the header that another scheme has in its place. A scheme
    /// without such a header sends none.
    pub fn subscription(mut self, id: &str) -> Self {
        self.subscription = Some(id.to_owned());
        self
    }

    /// Signs this id of the event, by a scheme that has it in a header.
    pub fn event_id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    /// Signs as of this time, in place of now.
    pub fn at(mut self, time: UnixSeconds) -> Self {
        self.at = Some(time);
        self
    }

    /// The headers of a delivery of this body, in lower case. Those of the event's id and type are
    /// there where the body is a JSON object with such texts.
    ///
    /// # Panics
    /// On a time that the service can't write: before 1970-01-01T00:00:01Z, or of more than 16
    /// digits. On a [scheme](Self::scheme) or an [id](Self::event_id) that a receiver would refuse,
    /// and a secret that is not of the scheme's form.
    #[must_use]
    pub fn headers(&self, body: impl AsRef<[u8]>) -> Vec<(&'static str, String)> {
        self.signed(body.as_ref(), None).1
    }

    pub(crate) fn of_scheme(&self) -> Scheme {
        self.scheme
    }

    /// Whether a header is one that a receiver decides by, and no hint.
    pub(crate) fn decides(scheme: &Scheme, header: &str) -> bool {
        scheme.reads(header) && !scheme.hint_headers().contains(&Some(header))
    }

    /// As [`headers`](Self::headers), with the time that they are signed for. A scheme that signs
    /// its id in a header signs this one.
    pub(crate) fn signed(
        &self,
        body: &[u8],
        id: Option<&str>,
    ) -> (UnixSeconds, Vec<(&'static str, String)>) {
        let at = self.at.unwrap_or_else(|| SystemClock.now());
        #[allow(clippy::expect_used)] // documented, and a fault of the test itself
        let timestamp = Timestamp::at(at).expect("a time that the service can write");
        let headers = match self.scheme == Scheme::WORKSPACE {
            true => self.headers_of_service(&timestamp, body),
            false => self.headers_of_scheme(&timestamp, id, body),
        };
        (at, headers)
    }

    fn headers_of_service(
        &self,
        timestamp: &Timestamp,
        body: &[u8],
    ) -> Vec<(&'static str, String)> {
        let signature = Signature::sign(&self.secret, timestamp, body).to_header_value();
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("user-agent", "Service-Webhook/1.0".to_owned()),
            (TIMESTAMP, timestamp.as_str().to_owned()),
            (SIGNATURE, signature),
        ];
        let subscription = self.subscription.clone();
        headers.extend(subscription.map(|id| (WEBHOOK_ID, id)));
        let hint = Hint::of(body);
        headers.extend(hint.id.map(|id| (EVENT_ID, id)));
        headers.extend(hint.event_type.map(|name| (EVENT_TYPE, name)));
        headers
    }

    fn headers_of_scheme(
        &self,
        timestamp: &Timestamp,
        id: Option<&str>,
        body: &[u8],
    ) -> Vec<(&'static str, String)> {
        let sign = |id: &str| sign(&self.scheme, &self.secret, timestamp, id, body);
        let signed = match self.id.as_deref().or(id) {
            Some(id) => sign(id),
            None => {
                let of_body = sign(&Hint::of(body).id.unwrap_or_default());
                of_body.or_else(|_| sign(&format!("msg_{:016x}", body_digest(body))))
            }
        };
        #[allow(clippy::expect_used)] // documented, and a fault of the test itself
        let signed = signed.expect("a scheme and an id that can be used, and a secret of its form");
        let mut headers = vec![("content-type", "application/json".to_owned())];
        headers.extend(signed);
        let subscription = self.scheme.subscription_header();
        headers.extend(subscription.zip(self.subscription.clone()));
        headers
    }

    /// A whole delivery: POST to this path or URI. Map its body to the one that your service takes.
    ///
    /// # Panics
    /// As [`headers`](Self::headers) does, and where `uri` is not a URI or a value can't stand in a
    /// header.
    pub fn request(&self, uri: &str, body: impl Into<bytes::Bytes>) -> http::Request<bytes::Bytes> {
        let body = body.into();
        let mut request = http::Request::post(uri);
        for (name, value) in self.headers(&body) {
            request = request.header(name, value);
        }
        #[allow(clippy::expect_used)] // documented, and a fault of the test itself
        request.body(body).expect("a URI and values for headers")
    }
}

/// Id and type as the body says, for the unsigned headers. Texts that no header can carry are left
/// out.
#[derive(Default, serde::Deserialize)]
struct Hint {
    #[serde(default)]
    id: Option<String>,
    #[serde(default, rename = "type")]
    event_type: Option<String>,
}

impl Hint {
    #[expect(clippy::disallowed_methods, reason = "two texts are read of it")]
    fn of(body: &[u8]) -> Self {
        let hint: Self = serde_json::from_slice(body).unwrap_or_default();
        let sendable = |text: &String| !text.chars().any(char::is_control) && text.trim() == text;
        Self {
            id: hint.id.filter(sendable),
            event_type: hint.event_type.filter(sendable),
        }
    }
}

/// A signer with a made-up secret, and the secret: in a form that each scheme takes.
pub(super) fn made_up() -> (Signer, Secret) {
    #[allow(clippy::expect_used)] // a constant of the right form
    let secret =
        Secret::new("whsec_bWFkZSB1cCBieSBob29rZ2F0ZS10ZXN0aW5n").expect("a usable secret");
    (Signer::new(secret.clone()), secret)
}
