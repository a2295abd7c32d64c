//! How a sender signs: what its headers are called, how they are written, which bytes are signed,
//! and where the event's id and type are. All of it is plain data, a [`Scheme`]: no code of yours
//! runs before a delivery is authentic.
//!
//! Four rows are here. Any other sender that signs with HMAC-SHA256 is a row of your own; read it
//! beside the sender's page:
//!
//! ```
//! use std::time::Duration;
//!
//! use hookgate::scheme::{Encoding, Form, Part, Place, Scheme};
//! use hookgate::{MemoryStore, Receiver, Secret};
//!
//! /// https://acme.example/docs/webhooks#signatures
//! const ACME: Scheme = Scheme::new("acme")
//!     .signature("x-acme-signature", Form::One("sha256="), Encoding::Hex)
//!     .timestamp(Place::Header("x-acme-timestamp"))
//!     .signs(&[Part::Timestamp, Part::Text("."), Part::Body])
//!     .event_id(Place::Json("id"))
//!     .event_type(Place::Json("type"))
//!     .retries(&[Duration::from_secs(60), Duration::from_secs(3_600)]);
//!
//! let receiver = Receiver::builder()
//!     .scheme(ACME)
//!     .secret(Secret::unprefixed("made-up-for-this-example")?)
//!     .store(MemoryStore::default())
//!     .build()?; // refuses a row by which an unsigned value would decide
//! assert_eq!(receiver.runs(), 0);
//! assert!(ACME.signs_type() && ACME.reads("x-acme-timestamp"));
//! # Ok::<(), hookgate::ConfigError>(())
//! ```
//!
//! [The page about other senders](crate::guide::other_senders) has the rules, and how to check a
//! row with one real delivery.

use std::time::Duration;

mod check;
mod headers;
mod timestamp;
mod verify_error;
mod written;

pub(crate) use check::unusable;
pub use headers::DeliveryHeaders;
pub(crate) use headers::HeaderSlots;
pub(crate) use timestamp::{SignedHead, signed_id};
pub use timestamp::{Timestamp, Window};
pub use verify_error::{Malformed, StaleTimes, VerifyError, VerifyErrorKind};
pub(crate) use written::{Signatures, parse_stored, to_stored};

/// `X-Service-Signature`.
pub const SIGNATURE: &str = "x-service-signature";
/// `X-Service-Timestamp`.
pub const TIMESTAMP: &str = "x-service-timestamp";
/// `X-Service-Webhook-Id`. Not signed.
pub const WEBHOOK_ID: &str = "x-service-webhook-id";
/// `X-Service-Event-Id`. Not signed.
pub const EVENT_ID: &str = "x-service-event-id";
/// `X-Service-Event-Type`. Not signed.
pub const EVENT_TYPE: &str = "x-service-event-type";

/// How a stored delivery names its timestamp, signature, subscription, id and type.
pub(crate) const ATTRIBUTES: [&str; 5] = [TIMESTAMP, SIGNATURE, WEBHOOK_ID, EVENT_ID, EVENT_TYPE];

/// How one sender signs its deliveries: a row of plain data.
///
/// A `const` names headers in lower case.
/// [`ReceiverBuilder::scheme`](crate::ReceiverBuilder::scheme) and
/// [`Verifier::for_scheme`](crate::Verifier::for_scheme) check it, and refuse a row that can't be
/// safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Scheme {
    name: &'static str,
    signature: &'static str,
    form: Form,
    encoding: Encoding,
    timestamp: Option<Place>,
    signed: &'static [Part],
    id: Option<Place>,
    kind: Option<Place>,
    id_hint: Option<&'static str>,
    kind_hint: Option<&'static str>,
    subscription: Option<&'static str>,
    key: Key,
    waits: &'static [Duration],
    fewest_attempts: u32,
    attempt_timeout: Duration,
}

/// What the value of the signature's header looks like. One form, and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// One signature behind this prefix, which may be empty: `sha256=…`.
    One(&'static str),
    /// Up to eight elements beside the timestamp, separated by one character. An element that
    /// begins with `version` is a signature; any other begins with another name and the last
    /// character of `version`, and is skipped: `v1,… v1,… v1a,…` or `t=…,v1=…,v0=…`.
    List {
        /// Stands between two elements.
        separator: char,
        /// How a signature of this scheme begins.
        version: &'static str,
    },
}

/// How the 32 bytes of a signature are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// 64 hex digits, in lower case.
    Hex,
    /// 44 characters of base64: the standard alphabet, padded.
    Base64,
}

/// A part of what is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The event's id, as its header has it.
    Id,
    /// The timestamp's digits, as received.
    Timestamp,
    /// This text.
    Text(&'static str),
    /// The body's bytes, as received. It comes last, so that it is hashed as it arrives.
    Body,
}

/// Where a value stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// The header of this name, in lower case.
    Header(&'static str),
    /// The element of the signature's list that begins so: `t=`.
    Element(&'static str),
    /// The text of this field of the body, which is a JSON object. Without it the delivery is
    /// answered 400.
    Json(&'static str),
    /// The same, for a type that some bodies do not have.
    JsonIfPresent(&'static str),
}

/// How the text of a secret becomes the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Key {
    /// The whole text, with what it begins with.
    Text,
    /// The bytes that the text stands for, in base64, without this prefix where the text has it.
    Base64After(&'static str),
}

/// The type of an event whose sender names none.
pub(crate) const UNTYPED: &str = "untyped";

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// The rows that ship, each with the page that it is read from.
impl Scheme {
    /// The Workspace Data Service, and the default.
    pub const WORKSPACE: Self = Self::new("workspace")
        .signature(SIGNATURE, Form::One("sha256="), Encoding::Hex)
        .timestamp(Place::Header(TIMESTAMP))
        .signs(&[Part::Timestamp, Part::Text("."), Part::Body])
        .event_id(Place::Json("id"))
        .event_type(Place::Json("type"))
        .hints(EVENT_ID, EVENT_TYPE)
        .subscription(WEBHOOK_ID)
        .retries(&[
            Duration::from_secs(MINUTE),
            Duration::from_secs(5 * MINUTE),
            Duration::from_secs(30 * MINUTE),
            Duration::from_secs(2 * HOUR),
            Duration::from_secs(24 * HOUR),
        ])
        .fewest_attempts(5);

    /// [Standard
    /// Webhooks](https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md),
    /// as Svix and others send it. The waits and the time-out, the shorter of two, are those that
    /// the specification proposes. A body may name its type in `type`.
    pub const STANDARD_WEBHOOKS: Self = Self::new("standard-webhooks")
        .signature(
            "webhook-signature",
            Form::List {
                separator: ' ',
                version: "v1,",
            },
            Encoding::Base64,
        )
        .timestamp(Place::Header("webhook-timestamp"))
        .signs(&[
            Part::Id,
            Part::Text("."),
            Part::Timestamp,
            Part::Text("."),
            Part::Body,
        ])
        .event_id(Place::Header("webhook-id"))
        .event_type(Place::JsonIfPresent("type"))
        .key(Key::Base64After("whsec_"))
        .retries(&[
            Duration::from_secs(5),
            Duration::from_secs(5 * MINUTE),
            Duration::from_secs(30 * MINUTE),
            Duration::from_secs(2 * HOUR),
            Duration::from_secs(5 * HOUR),
            Duration::from_secs(10 * HOUR),
            Duration::from_secs(14 * HOUR),
            Duration::from_secs(20 * HOUR),
            Duration::from_secs(24 * HOUR),
        ])
        .attempt_timeout(Duration::from_secs(15));

    /// [Stripe](https://docs.stripe.com/webhooks/signature). It [tries again for up to three
    /// days](https://docs.stripe.com/webhooks#automatic-retries), with waits that it does not
    /// publish: these add up to three days. Nor does it publish how long it waits for an answer: 10
    /// s is a cautious choice.
    pub const STRIPE: Self = Self::new("stripe")
        .signature(
            "stripe-signature",
            Form::List {
                separator: ',',
                version: "v1=",
            },
            Encoding::Hex,
        )
        .timestamp(Place::Element("t="))
        .signs(&[Part::Timestamp, Part::Text("."), Part::Body])
        .event_id(Place::Json("id"))
        .event_type(Place::Json("type"))
        .retries(&[
            Duration::from_secs(5 * MINUTE),
            Duration::from_secs(30 * MINUTE),
            Duration::from_secs(2 * HOUR),
            Duration::from_secs(5 * HOUR),
            Duration::from_secs(10 * HOUR),
            Duration::from_secs(12 * HOUR),
            Duration::from_secs(12 * HOUR),
            Duration::from_secs(12 * HOUR),
            Duration::from_secs(18 * HOUR + 25 * MINUTE),
        ])
        .fewest_attempts(1)
        .attempt_timeout(Duration::from_secs(10));

    /// [GitHub](https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries).
    /// It signs the body alone: no timestamp, no id, no type. So it is built with
    /// [`without_window`](crate::ReceiverBuilder::without_window), and two equal bodies are one
    /// event. It [waits 10 s for an answer and never tries again by
    /// itself](https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries);
    /// a person, or a script, can [within three
    /// days](https://docs.github.com/en/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks).
    pub const GITHUB: Self = Self::new("github")
        .signature("x-hub-signature-256", Form::One("sha256="), Encoding::Hex)
        .signs(&[Part::Body])
        .hints("x-github-delivery", "x-github-event")
        .subscription("x-github-hook-id")
        .retries(&[Duration::from_secs(72 * HOUR)])
        .fewest_attempts(1)
        .attempt_timeout(Duration::from_secs(10));

    /// The rows that ship.
    pub const ALL: [Self; 4] = [
        Self::WORKSPACE,
        Self::STANDARD_WEBHOOKS,
        Self::STRIPE,
        Self::GITHUB,
    ];

    /// Returns the row that ships under this name: `workspace`, `standard-webhooks`, `stripe`,
    /// `github`.
    ///
    /// ```
    /// use hookgate::Scheme;
    ///
    /// assert_eq!(Scheme::named("stripe"), Some(Scheme::STRIPE));
    /// assert_eq!(Scheme::named("acme"), None);
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|row| row.name == name)
    }
}

/// A row of your own.
impl Scheme {
    /// Begins a row. Stored deliveries and logs name it, so the name stays the same: letters,
    /// digits, `-`, `_` and `.`, at most 64 of them. The names of the rows that ship are taken.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            signature: "",
            form: Form::One(""),
            encoding: Encoding::Hex,
            timestamp: None,
            signed: &[Part::Body],
            id: None,
            kind: None,
            id_hint: None,
            kind_hint: None,
            subscription: None,
            key: Key::Text,
            waits: &[],
            fewest_attempts: u32::MAX,
            attempt_timeout: Duration::from_secs(5),
        }
    }

    /// Returns the same row under another name: for a row that differs from one that ships.
    ///
    /// ```
    /// use hookgate::{Scheme, scheme::Place};
    ///
    /// const ACME: Scheme = Scheme::STRIPE.with_name("acme").event_id(Place::Json("event"));
    /// assert_eq!(ACME.name(), "acme");
    /// ```
    pub const fn with_name(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// Sets the header that has the signature, and how it is written.
    pub const fn signature(mut self, header: &'static str, form: Form, encoding: Encoding) -> Self {
        (self.signature, self.form, self.encoding) = (header, form, encoding);
        self
    }

    /// Sets where the timestamp stands: Unix seconds, in a header or an element. It must be signed.
    pub const fn timestamp(mut self, place: Place) -> Self {
        self.timestamp = Some(place);
        self
    }

    /// Sets what is signed, in this order. The body comes last.
    pub const fn signs(mut self, parts: &'static [Part]) -> Self {
        self.signed = parts;
        self
    }

    /// Sets where the event's id stands: in the body, or in a header that is signed. Without it,
    /// the id is the digest of what was signed.
    pub const fn event_id(mut self, place: Place) -> Self {
        self.id = Some(place);
        self
    }

    /// Sets where the body names the event's type. Without it, the type is the [hint](Self::hints),
    /// or `untyped`.
    pub const fn event_type(mut self, place: Place) -> Self {
        self.kind = Some(place);
        self
    }

    /// Sets the headers that name id and type and are **not signed**. They are compared with the
    /// signed id and type, where there are such. A type that nothing signs is taken from its
    /// header, as a hint: [`Signed::kind_is_signed`](crate::Signed) says so.
    pub const fn hints(mut self, id: &'static str, event_type: &'static str) -> Self {
        (self.id_hint, self.kind_hint) = (Some(id), Some(event_type));
        self
    }

    /// Sets the header that names the subscription, which selects the keys and is not signed.
    pub const fn subscription(mut self, header: &'static str) -> Self {
        self.subscription = Some(header);
        self
    }

    /// Sets how the text of a secret becomes the key. Default: [`Key::Text`].
    pub const fn key(mut self, key: Key) -> Self {
        self.key = key;
        self
    }

    /// Sets the sender's waits, each after a failed attempt. The retention covers them.
    pub const fn retries(mut self, waits: &'static [Duration]) -> Self {
        self.waits = waits;
        self
    }

    /// Sets from which attempt on each may be the last, for a sender that may stop before its last
    /// wait.
    pub const fn fewest_attempts(mut self, attempts: u32) -> Self {
        self.fewest_attempts = attempts;
        self
    }

    /// Sets how long the sender waits for an answer. Default: 5 s.
    pub const fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = timeout;
        self
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the sender's waits, how long it waits for an answer, and its least number of
    /// attempts.
    pub(crate) const fn schedule(&self) -> (&'static [Duration], Duration, u32) {
        (self.waits, self.attempt_timeout, self.fewest_attempts)
    }

    /// Returns whether the sender signs when it has signed, so that an age can be checked.
    #[must_use]
    pub const fn has_timestamp(&self) -> bool {
        self.timestamp.is_some()
    }

    /// Returns the header of the signature.
    #[must_use]
    pub const fn signature_header(&self) -> &'static str {
        self.signature
    }

    /// Returns the header in which the event's id stands, where it is signed there.
    #[must_use]
    pub const fn signed_id_header(&self) -> Option<&'static str> {
        match self.id {
            Some(Place::Header(name)) => Some(name),
            _ => None,
        }
    }

    /// Returns the headers of the [hints](Self::hints), of the id and of the type.
    #[must_use]
    pub const fn hint_headers(&self) -> [Option<&'static str>; 2] {
        [self.id_hint, self.kind_hint]
    }

    /// Returns the header that names the [subscription](Self::subscription).
    #[must_use]
    pub const fn subscription_header(&self) -> Option<&'static str> {
        self.subscription
    }

    /// Returns whether a receiver of this scheme reads the header of this name, in lower case.
    ///
    /// ```
    /// use hookgate::Scheme;
    ///
    /// assert!(Scheme::STRIPE.reads("stripe-signature"));
    /// assert!(!Scheme::STRIPE.reads("x-service-signature"));
    /// ```
    #[must_use]
    pub fn reads(&self, header: &str) -> bool {
        self.headers_read().contains(&Some(header))
    }

    /// Returns whether the type of an event is signed, and is no hint.
    #[must_use]
    pub const fn signs_type(&self) -> bool {
        self.kind.is_some()
    }
}

/// The default row, at one address: comparing addresses tells it from others.
static WORKSPACE: Scheme = Scheme::WORKSPACE;

impl Scheme {
    pub(crate) fn workspace() -> &'static Self {
        &WORKSPACE
    }

    pub(crate) fn is_workspace(&self) -> bool {
        self.is_same(&WORKSPACE)
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.without_times() == other.without_times()
    }

    /// Returns the row without the sender's times, which say nothing about a signature.
    fn without_times(self) -> Self {
        Self {
            waits: &[],
            fewest_attempts: 0,
            attempt_timeout: Duration::ZERO,
            ..self
        }
    }

    pub(crate) fn key_form(&self) -> Key {
        self.key
    }

    pub(crate) fn parts(&self) -> &'static [Part] {
        self.signed
    }

    /// The header of the timestamp. An element of the signature's list has none.
    pub(crate) fn own_timestamp_header(&self) -> Option<&'static str> {
        match self.timestamp {
            Some(Place::Header(name)) => Some(name),
            _ => None,
        }
    }

    /// The header in which the timestamp stands.
    pub(crate) fn timestamp_header(&self) -> &'static str {
        self.own_timestamp_header().unwrap_or(self.signature)
    }

    /// The header of the id, signed or as a hint.
    pub(crate) fn id_header(&self) -> Option<&'static str> {
        self.signed_id_header().or(self.id_hint)
    }

    /// The headers of signature, timestamp, subscription, id and type.
    pub(crate) fn headers_read(&self) -> [Option<&'static str>; 5] {
        [
            Some(self.signature),
            self.own_timestamp_header(),
            self.subscription,
            self.id_header(),
            self.kind_hint,
        ]
    }

    /// The field of the body that has the id.
    pub(crate) fn id_field(&self) -> Option<&'static str> {
        match self.id {
            Some(Place::Json(name)) => Some(name),
            _ => None,
        }
    }

    /// The field of the body that has the type, and whether each body has it.
    pub(crate) fn kind_field(&self) -> Option<(&'static str, bool)> {
        match self.kind {
            Some(Place::Json(name)) => Some((name, true)),
            Some(Place::JsonIfPresent(name)) => Some((name, false)),
            _ => None,
        }
    }
}
