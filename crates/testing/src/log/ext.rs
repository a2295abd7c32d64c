//! What readers of a log do with a delivery: read it from a line, look at it, sign it again, send
//! it.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hookgate::clock::{ManualClock, UnixSeconds};
use hookgate::internal::unverified_head;
use hookgate::lookup::Keys;
use hookgate::verify::{DeliveryHeaders, TIMESTAMP, Timestamp, Window};
use hookgate::{ConfigError, Delivery, KeyRing, Receiver, Refusal, Scheme, Verifier};
use hookgate_record::{LoggedDelivery, REDACTED};

use super::{LogError, line};
use crate::Signer;
use crate::transport::is_of_the_connection;

/// Methods of [`LoggedDelivery`] for readers of a log.
pub trait LoggedDeliveryExt: Sized {
    /// Reads one line, as [`LoggedDelivery::to_line`] writes it.
    ///
    /// ```
    /// use hookgate::clock::UnixSeconds;
    /// use hookgate_record::LoggedDelivery;
    /// use hookgate_testing::log::LoggedDeliveryExt;
    ///
    /// let logged = LoggedDelivery::new(UnixSeconds::new(1_763_690_000), [("x-a", "1")], "{}");
    /// assert_eq!(LoggedDelivery::from_line(logged.to_line())?, logged);
    /// # Ok::<(), hookgate_testing::log::LogError>(())
    /// ```
    ///
    /// # Errors
    /// `BadLine` where the line is not such JSON, or where the base64 is invalid.
    fn from_line(line: impl AsRef<[u8]>) -> Result<Self, LogError>;

    /// Returns whether the signature can still be checked: the body is present, and the headers are
    /// present as they were received.
    ///
    /// It does not say whether the signature is valid.
    #[must_use]
    fn is_verifiable(&self) -> bool;

    /// The event's id from the body, or else from the unsigned header. It is not verified.
    #[must_use]
    fn event_id(&self) -> Option<String>;

    /// The event's type from the body, or else from the unsigned header. It is not verified.
    #[must_use]
    fn event_type(&self) -> Option<String>;

    /// What an unverified delivery of this sender says about itself: [`event_id`](Self::event_id),
    /// [`event_type`](Self::event_type), [`age`](Self::age) and
    /// [`is_verifiable`](Self::is_verifiable) by its scheme.
    #[must_use]
    fn read_by(&self, scheme: Scheme) -> UnverifiedHead;

    /// The age of the delivery on arrival, in seconds: the time of receipt minus the signed
    /// timestamp. Negative where the timestamp was later than the receipt. `None` where the headers
    /// have no valid timestamp.
    #[must_use]
    fn age(&self) -> Option<i64>;

    /// Returns the same delivery, signed by this signer at its time, without an answer. `None`
    /// where there is no body to sign.
    ///
    /// Headers keep their order. The headers of the timestamp and the signature are replaced at
    /// their first position, or added. The same is true for the subscription's header, if the
    /// signer has a subscription. A delivery without headers gets those that the sender writes. By
    /// a scheme that signs its id in a header, the recorded id stays.
    ///
    /// ```
    /// use hookgate_record::LoggedDelivery;
    /// use hookgate_testing::log::LoggedDeliveryExt;
    /// use hookgate_testing::Signer;
    /// use hookgate::{Secret, Verifier, clock::UnixSeconds};
    ///
    /// let (then, now) = (UnixSeconds::new(1_763_690_000), UnixSeconds::new(1_763_999_999));
    /// let secret = Secret::new("whsec_made_up_for_this_example")?;
    /// let signer = Signer::new(secret.clone());
    /// let body = r#"{"id":"evt_1","type":"page.created"}"#;
    /// let logged = LoggedDelivery::new(then, signer.clone().at(then).headers(body), body);
    ///
    /// let again = logged.resigned(&signer.at(now)).expect("it has a body");
    /// assert_eq!(again.received_at, now);
    /// assert!(Verifier::new(secret).verify(&again.head()?, body, now).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    fn resigned(&self, signer: &Signer) -> Option<Self>;

    /// Returns the verdict of a receiver with these keys, at the time of receipt: method, encoding,
    /// type, size, headers, age, signature, then id and type in the signed body and in the headers,
    /// in the order of a receiver's own checks. A [`Receiver`] with its default settings makes the
    /// checks. A delivery without a body is judged as one with an empty body.
    ///
    /// ```
    /// use hookgate_record::LoggedDelivery;
    /// use hookgate::{KeyRing, Secret, clock::UnixSeconds, outcome::RefusalKind, verify::Window};
    /// use hookgate_testing::Signer;
    /// use hookgate_testing::log::LoggedDeliveryExt;
    ///
    /// let now = UnixSeconds::new(1_763_690_000);
    /// let secret = Secret::new("whsec_made_up_for_this_example")?;
    /// let body = r#"{"id":"evt_1","type":"page.created"}"#;
    /// let mut logged = LoggedDelivery::new(now, Signer::new(secret.clone()).at(now).headers(body), body);
    /// let verdict = |logged: &LoggedDelivery| logged.verdict(KeyRing::new(secret.clone()), Window::default());
    /// assert_eq!(verdict(&logged)?.event_id(), "evt_1");
    ///
    /// logged.method = "GET".into();
    /// assert_eq!(verdict(&logged).unwrap_err().kind(), RefusalKind::MethodNotAllowed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Receiver::check_head`] and [`Receiver::verify`].
    fn verdict(&self, keys: KeyRing, window: Window) -> Result<Delivery, Refusal>;

    /// As [`verdict`](Self::verdict), for the deliveries of another sender.
    ///
    /// # Errors
    /// The keys do not fit the scheme; inside, those of `verdict`.
    fn verdict_by(
        &self,
        scheme: Scheme,
        keys: KeyRing,
        window: Window,
    ) -> Result<Result<Delivery, Refusal>, ConfigError>;

    /// Returns a command for sh, bash or zsh that sends the exact bytes of the body with the
    /// recorded headers to `url`. `None` where there is no body.
    ///
    /// A body of printable text is part of the command, quoted. A body with bytes that a terminal
    /// can't take or can't show goes through `base64`. The headers of the connection are left out,
    /// and so are headers whose values were not recorded.
    ///
    /// ```
    /// use hookgate::clock::UnixSeconds;
    /// use hookgate_record::LoggedDelivery;
    /// use hookgate_testing::log::LoggedDeliveryExt;
    ///
    /// let headers = [("x-service-timestamp", "1763690000"), ("content-length", "15")];
    /// let logged = LoggedDelivery::new(UnixSeconds::new(1_763_690_000), headers, r#"{"id":"it's 1"}"#);
    /// let curl = logged.to_curl("http://localhost:8080/webhooks").expect("a body");
    /// assert!(curl.starts_with("curl -i --url 'http://localhost:8080/webhooks'"));
    /// assert!(curl.contains("-H 'x-service-timestamp: 1763690000'"));
    /// assert!(curl.ends_with(r#"--data-raw '{"id":"it'\''s 1"}'"#));
    /// ```
    ///
    /// # Security
    /// The command holds the recorded signature. While the timestamp is fresh, an attacker who has
    /// the command can send the delivery.
    #[must_use]
    fn to_curl(&self, url: &str) -> Option<String>;
}

impl LoggedDeliveryExt for LoggedDelivery {
    fn from_line(line: impl AsRef<[u8]>) -> Result<Self, LogError> {
        line::read(line.as_ref())
    }

    fn is_verifiable(&self) -> bool {
        self.read_by(Scheme::WORKSPACE).is_verifiable
    }

    fn event_id(&self) -> Option<String> {
        self.read_by(Scheme::WORKSPACE).event_id
    }

    fn event_type(&self) -> Option<String> {
        self.read_by(Scheme::WORKSPACE).event_type
    }

    fn read_by(&self, scheme: Scheme) -> UnverifiedHead {
        let head = DeliveryHeaders::with_scheme(&scheme, pairs(self)).ok();
        let signed = head.as_ref().and_then(|head| head.timestamp());
        let age = signed.map(|signed| age_at(self, signed.seconds()));
        let body = self.body.as_deref().unwrap_or_default();
        let known = head.as_ref().filter(|_| self.body.is_some());
        let [id, event_type] = unverified_head(&scheme, known, body);
        let text = |header: Option<&str>| text_of(self, header?);
        let [id_hint, type_hint] = scheme.hint_headers();
        let id = id.or_else(|| text(scheme.signed_id_header()));
        UnverifiedHead {
            event_id: id.or_else(|| text(id_hint)),
            event_type: event_type.or_else(|| text(type_hint)),
            // A timestamp beside a signature that can't be read.
            age: age.or_else(|| self.age()),
            is_verifiable: !self.unverifiable && self.body.is_some() && head.is_some(),
        }
    }

    fn age(&self) -> Option<i64> {
        let signed = Timestamp::parse(self.header(TIMESTAMP)?).ok()?;
        Some(age_at(self, signed.seconds()))
    }

    fn resigned(&self, signer: &Signer) -> Option<Self> {
        let body = self.body.clone()?;
        let id = signer.of_scheme().signed_id_header();
        let id = id.and_then(|name| text_of(self, name));
        let (received_at, signed) = signer.signed(&body, id.as_deref());
        let mut headers = self.headers.clone();
        for (name, value) in signed {
            if Signer::decides(&signer.of_scheme(), name) || self.headers.is_empty() {
                replace(&mut headers, name, value);
            }
        }
        let mut again = Self::new(received_at, headers, body);
        again.method.clone_from(&self.method);
        again.target.clone_from(&self.target);
        Some(again)
    }

    fn verdict(&self, keys: KeyRing, window: Window) -> Result<Delivery, Refusal> {
        #[allow(clippy::expect_used)] // the default scheme takes every ring
        self.verdict_by(Scheme::WORKSPACE, keys, window)
            .expect("a receiver of one ring")
    }

    fn verdict_by(
        &self,
        scheme: Scheme,
        keys: KeyRing,
        window: Window,
    ) -> Result<Result<Delivery, Refusal>, ConfigError> {
        let builder = Receiver::builder().scheme(scheme).key_ring(keys);
        let builder = match scheme.has_timestamp() {
            true => builder.window(window),
            false => builder.without_window(),
        };
        let clock = ManualClock::at(self.received_at);
        let receiver = builder.without_deduplication().clock(clock).build()?;
        let verdict = || {
            let head = receiver.request_head(&self.method, pairs(self));
            let mut received = receiver.check_head(&head)?;
            received.push(self.body.clone().unwrap_or_default())?;
            receiver.verify(received, &head)
        };
        Ok(verdict())
    }

    fn to_curl(&self, url: &str) -> Option<String> {
        to_curl(self, url)
    }
}

/// What a delivery says about itself, **unverified**.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnverifiedHead {
    /// The event's id.
    pub event_id: Option<String>,
    /// The event's type.
    pub event_type: Option<String>,
    /// The age on arrival, in seconds.
    pub age: Option<i64>,
    /// Whether the signature can still be checked.
    pub is_verifiable: bool,
}

/// Returns a verifier of this sender. A sender that signs no timestamp has no window.
pub(crate) fn verifier_of(
    scheme: Scheme,
    keys: impl Into<Keys>,
    window: Window,
) -> Result<Verifier, ConfigError> {
    let verifier = match scheme.has_timestamp() {
        true => Verifier::for_scheme(scheme, keys)?,
        false => Verifier::without_window(scheme, keys)?,
    };
    Ok(verifier.with_window(window))
}

/// Returns the headers as a verifier takes them.
pub(crate) fn pairs(delivery: &LoggedDelivery) -> impl Iterator<Item = (&String, &Bytes)> {
    delivery.headers.iter().map(|(name, value)| (name, value))
}

fn text_of(delivery: &LoggedDelivery, header: &str) -> Option<String> {
    let value = delivery.header(header)?;
    String::from_utf8(value.to_vec()).ok()
}

fn age_at(delivery: &LoggedDelivery, signed: UnixSeconds) -> i64 {
    let received = delivery.received_at.as_i64();
    received.saturating_sub(signed.as_i64())
}

/// Sets a header at its first position, and removes its other occurrences.
fn replace(headers: &mut Vec<(String, Bytes)>, name: &str, value: String) {
    let at = headers.iter().position(|(other, _)| other == name);
    headers.retain(|(other, _)| other != name);
    let at = at.unwrap_or(headers.len());
    headers.insert(at, (name.to_owned(), value.into()));
}

/// Headers that curl sends unless an option removes them.
const OF_CURL: [&str; 4] = ["accept", "content-type", "expect", "user-agent"];
/// A longer body goes through a pipe: the longest argument that Linux takes is 128 KiB.
const LONGEST_ARGUMENT: usize = 64 << 10;

/// See [`LoggedDeliveryExt::to_curl`](super::LoggedDeliveryExt::to_curl).
pub(super) fn to_curl(delivery: &LoggedDelivery, url: &str) -> Option<String> {
    let body = delivery.body.as_deref()?;
    let pasted = std::str::from_utf8(body).ok().filter(|text| {
        text.len() <= LONGEST_ARGUMENT && !text.chars().any(|char| char != '\n' && is_hidden(char))
    });
    let mut command = String::new();
    if pasted.is_none() {
        let _ = write!(
            command,
            "printf %s '{}' | base64 -d | \\\n  ",
            STANDARD.encode(body)
        );
    }
    let _ = write!(command, "curl -i --url {}", quoted(url.as_bytes()));
    if url.contains(['[', ']', '{', '}']) {
        command.push_str(" --globoff");
    }
    if delivery.method != "POST" {
        let _ = write!(command, " -X {}", quoted(delivery.method.as_bytes()));
    }
    for (name, value) in &delivery.headers {
        if is_of_the_connection(name) || **value == *REDACTED.as_bytes() {
            continue;
        }
        // curl removes a header without a value, unless the header ends in a semicolon.
        let header = match value.is_empty() {
            true => format!("{name};").into_bytes(),
            false => [format!("{name}: ").as_bytes(), value].concat(),
        };
        let _ = write!(command, " \\\n  -H {}", quoted(&header));
    }
    for name in OF_CURL {
        if name == "expect" || delivery.header(name).is_none() {
            let _ = write!(command, " \\\n  -H '{name}:'");
        }
    }
    match pasted {
        Some(text) => {
            let _ = write!(command, " \\\n  --data-raw {}", quoted(text.as_bytes()));
        }
        None => command.push_str(" \\\n  --data-binary @-"),
    }
    Some(command)
}

/// One argument for a shell. Bytes that are not text, or can't be seen, are written in a form that
/// bash and zsh know.
fn quoted(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.chars().any(|char| char != '\n' && is_hidden(char))
    {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut word = String::from("$'");
    for byte in bytes {
        match byte {
            b'\'' | b'\\' => {
                word.push('\\');
                word.push(char::from(*byte));
            }
            b' '..=b'~' => word.push(char::from(*byte)),
            _ => {
                let _ = write!(word, "\\x{byte:02x}");
            }
        }
    }
    word.push('\'');
    word
}

/// Control characters, and invisible characters that change how a text looks: a terminal or an
/// editor may change them.
fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
