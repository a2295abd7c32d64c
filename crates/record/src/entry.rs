//! One delivery of a log.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hookgate::{
    clock::UnixSeconds,
    verify::{DeliveryHeaders, VerifyError},
};
use http::Response;
use serde::{Serialize, Serializer};

use crate::redaction::header_as_logged;

/// The bytes of a response's body that an entry keeps.
const MOST_OF_A_RESPONSE: usize = 64 << 10;

/// A delivery as it was received, and its answer.
///
/// `Debug` does not show the body. `Serialize` writes the fields of a [line](Self::to_line) of the
/// log.
///
/// ```
/// use hookgate_record::LoggedDelivery;
/// use hookgate::{
///     Secret, Verifier,
///     clock::UnixSeconds,
///     verify::{Signature, Timestamp},
/// };
///
/// let secret = Secret::new("whsec_made_up_for_this_example")?;
/// let at = UnixSeconds::new(1_763_690_000);
/// let body = r#"{"id":"evt_1","type":"page.created"}"#;
/// let timestamp = Timestamp::at(at)?;
/// let signature = Signature::sign(&secret, &timestamp, body.as_bytes()).to_header_value();
/// let headers = [("X-Service-Timestamp", timestamp.to_string()), ("X-Service-Signature", signature)];
///
/// let logged = LoggedDelivery::new(at, headers, body);
/// assert!(Verifier::new(secret).verify(&logged.head()?, body, logged.received_at).is_ok());
/// assert!(logged.to_line().starts_with(r#"{"received_at":1763690000,"method":"POST""#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LoggedDelivery {
    /// The second of the receiver's clock when the head arrived: the time that the age was checked
    /// with.
    #[serde(serialize_with = "seconds")]
    pub received_at: UnixSeconds,
    /// The request's method.
    pub method: String,
    /// The request's target: path and query.
    pub target: String,
    /// All headers, in order. Names in lower case, values as the bytes received.
    #[serde(serialize_with = "headers")]
    pub headers: Vec<(String, Bytes)>,
    /// The whole body. `None` where the delivery was refused before the body was read, or where the
    /// body was not received to its end.
    #[serde(serialize_with = "body", skip_serializing_if = "Option::is_none")]
    pub body: Option<Bytes>,
    /// The number of bytes read, for a body that broke off or was too long. The bytes are not kept,
    /// because a part of a body can't be checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_off_at: Option<u64>,
    /// The answer; `None` where no answer was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<LoggedAnswer>,
    /// The time after which the sender hung up, or the server was stopped: no answer was sent.
    #[serde(
        rename = "hung_up_us",
        serialize_with = "some_micros",
        skip_serializing_if = "Option::is_none"
    )]
    pub hung_up_after: Option<Duration>,
    /// Values were removed from the body or from signed headers: the recorded signature can't be
    /// verified any more, and the delivery can only be signed again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unverifiable: bool,
}

/// The answer to a delivery. `Debug` shows neither its headers nor its body.
#[derive(Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LoggedAnswer {
    /// The status.
    pub status: u16,
    /// The outcome of the delivery, as in [`Outcome::name`](hookgate::Outcome::name).
    pub outcome: String,
    /// The reason, where the delivery was refused or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The time from the arrival at the receiver to the answer.
    #[serde(rename = "elapsed_us", serialize_with = "micros")]
    pub elapsed: Duration,
    /// The name of the key that signed the delivery, where it was authentic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The scope of that key ring.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The estimated number of the sender's attempt, counted from 1, where the delivery was
    /// authentic and its body says when the event was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The subscription that the request claims to come from, where it was refused: its
    /// `X-Service-Webhook-Id`, if that has the form of an id. **Unproven**: any client can send any
    /// id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_subscription: Option<String>,
    /// The headers of the answer, where the receiver keeps them: see
    /// [`keep_response`](Self::keep_response).
    #[serde(serialize_with = "headers", skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, Bytes)>,
    /// The body of the answer, or its first 64 KiB, where the receiver keeps it.
    #[serde(serialize_with = "body", skip_serializing_if = "Option::is_none")]
    pub body: Option<Bytes>,
    /// The number of bytes of the whole body, where [`body`](Self::body) is only its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<u64>,
}

impl LoggedDelivery {
    /// Makes a POST to `/` with these headers and this body, without an answer.
    pub fn new<N, V>(
        received_at: UnixSeconds,
        headers: impl IntoIterator<Item = (N, V)>,
        body: impl Into<Bytes>,
    ) -> Self
    where
        N: AsRef<str>,
        V: Into<Bytes>,
    {
        let lower = |(name, value): (N, V)| (name.as_ref().to_ascii_lowercase(), value.into());
        Self {
            received_at,
            method: "POST".into(),
            target: "/".into(),
            headers: headers.into_iter().map(lower).collect(),
            body: Some(body.into()),
            cut_off_at: None,
            answer: None,
            hung_up_after: None,
            unverifiable: false,
        }
    }

    /// Returns the first value of this header. Give the name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&Bytes> {
        let found = self.headers.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value)
    }

    /// Returns the headers that the verification needs.
    ///
    /// # Errors
    /// As [`DeliveryHeaders::from_pairs`].
    pub fn head(&self) -> Result<DeliveryHeaders<'_>, VerifyError> {
        DeliveryHeaders::from_pairs(self.headers.iter().map(|(name, value)| (name, &**value)))
    }

    /// Returns one line of JSON, without a line break at its end. New versions only ever add
    /// fields.
    ///
    /// ```text
    /// {"received_at":1763690000,"method":"POST","target":"/webhooks","headers":[["x-service-timestamp","1763690000"], …],
    ///  "body":"{\"id\":\"evt_1\", …}","answer":{"status":204,"outcome":"handled","elapsed_us":1234,"key":"current","scope":"default"}}
    /// ```
    ///
    /// `received_at` is in seconds since 1970; times whose name ends in `_us` are in microseconds.
    /// Bytes that are no UTF-8 are `{"base64":"…"}`, in the value of a header as in the body.
    /// Absent fields are left out: `body`, `cut_off_at`, `answer`, `hung_up_us`, `unverifiable`,
    /// and of an answer `reason`, `key`, `scope`, `attempt`, `claimed_subscription`, `headers`,
    /// `body`, `body_bytes`. Readers ignore unknown fields.
    #[must_use]
    pub fn to_line(&self) -> String {
        // This holds texts and numbers only, so serialization can't fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl LoggedAnswer {
    /// Makes an answer with a status and an outcome only.
    #[must_use]
    pub fn new(status: u16, outcome: &str) -> Self {
        Self {
            status,
            outcome: outcome.to_owned(),
            reason: None,
            elapsed: Duration::ZERO,
            key: None,
            scope: None,
            attempt: None,
            claimed_subscription: None,
            headers: Vec::new(),
            body: None,
            body_bytes: None,
        }
    }

    /// Keeps the headers of the response that the handler gave, and the first 64 KiB of its body. A
    /// recorder keeps neither by itself: the body of an answer can be long, and belongs to the app.
    ///
    /// ```
    /// use hookgate_record::LoggedAnswer;
    ///
    /// let response = http::Response::builder().header("set-cookie", "a=1").body("x".repeat(70_000).into())?;
    /// let mut answer = LoggedAnswer::new(500, "handler_status");
    /// answer.keep_response(&response);
    /// assert_eq!(answer.headers, [("set-cookie".to_owned(), "[redacted]".into())]);
    /// assert_eq!(answer.body.map(|body| body.len()), Some(65_536));
    /// assert_eq!(answer.body_bytes, Some(70_000));
    /// # Ok::<(), http::Error>(())
    /// ```
    pub fn keep_response(&mut self, response: &Response<Bytes>) {
        let headers = response.headers().iter();
        let headers = headers.map(|(name, value)| header_as_logged(name, value));
        self.headers = headers.collect();
        let body = response.body();
        let kept = body.len().min(MOST_OF_A_RESPONSE);
        self.body = Some(Bytes::copy_from_slice(&body[..kept]));
        self.body_bytes = (kept < body.len()).then_some(body.len() as u64);
    }
}

impl fmt::Debug for LoggedDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoggedDelivery")
            .field("received_at", &self.received_at)
            .field("headers", &self.headers.len())
            .field("body_bytes", &self.body.as_ref().map(Bytes::len))
            .field("answer", &self.answer)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for LoggedAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoggedAnswer")
            .field("status", &self.status)
            .field("outcome", &self.outcome)
            .field("reason", &self.reason)
            .field("elapsed", &self.elapsed)
            .field("key", &self.key)
            .field("scope", &self.scope)
            .field("attempt", &self.attempt)
            .field("claimed_subscription", &self.claimed_subscription)
            .field("body_bytes", &self.body.as_ref().map(Bytes::len))
            .finish_non_exhaustive()
    }
}

/// Text where it is UTF-8, base64 where it is not.
#[derive(Serialize)]
#[serde(untagged)]
enum Text<'a> {
    Utf8(&'a str),
    Base64 { base64: String },
}

impl<'a> Text<'a> {
    fn of(bytes: &'a Bytes) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Utf8(text),
            Err(_) => Self::Base64 {
                base64: STANDARD.encode(bytes),
            },
        }
    }
}

fn seconds<S: Serializer>(at: &UnixSeconds, json: S) -> Result<S::Ok, S::Error> {
    json.serialize_i64(at.as_i64())
}

fn headers<S: Serializer>(headers: &[(String, Bytes)], json: S) -> Result<S::Ok, S::Error> {
    json.collect_seq(headers.iter().map(|(name, value)| (name, Text::of(value))))
}

fn body<S: Serializer>(body: &Option<Bytes>, json: S) -> Result<S::Ok, S::Error> {
    body.as_ref().map(Text::of).serialize(json)
}

fn micros<S: Serializer>(time: &Duration, json: S) -> Result<S::Ok, S::Error> {
    json.serialize_u64(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

fn some_micros<S: Serializer>(time: &Option<Duration>, json: S) -> Result<S::Ok, S::Error> {
    micros(&time.unwrap_or_default(), json) // an absent time is left out
}
