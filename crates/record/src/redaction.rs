//! The values that are removed from an entry: the settings.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

/// The text in the place of a text that was removed.
pub const REDACTED: &str = "[redacted]";

/// Parts of names of headers, and of parameters in a query, that carry credentials for a proxy or
/// server in front of the receiver.
const CREDENTIALS: [&str; 11] = [
    "apikey",
    "api-key",
    "api_key",
    "auth",
    "cookie",
    "credential",
    "jwt",
    "password",
    "secret",
    "session",
    "token",
];

/// The values to remove from deliveries before they are written: values of the body by path or by
/// name, and further headers.
///
/// Except for the removed values, all bytes stay as they were received: order, white space, the
/// text of numbers, escapes. A text becomes `"[redacted]"`, a number `0`, a boolean `false`; `null`
/// stays. In an object or array, every value inside it is replaced. So the body still fits the
/// types that it fitted before, and can be signed again and replayed. The length of a removed value
/// is not visible either.
///
/// A delivery that lost a value of its body, or a header that a receiver checks, is marked as
/// [unverifiable](crate::LoggedDelivery::unverifiable): its signature is for other bytes. A
/// delivery without a removed value stays unchanged. A body that is not JSON can't be searched, so
/// the whole body is left out.
///
/// ```
/// use hookgate::clock::UnixSeconds;
/// use hookgate_record::{LoggedDelivery, Redaction};
///
/// let redaction = Redaction::people().field("data.properties.Phone").key("Iban");
///
/// let body = r#"{"id":"evt_1", "data":{"properties":{"Total":1.50,"Phone":"+44 20 7946 0000"},
///     "createdBy":{"id":"usr_1","name":"Ada","email":"ada@example.com"}}}"#;
/// let no_headers: [(&str, &str); 0] = [];
/// let logged = LoggedDelivery::new(UnixSeconds::new(1_763_690_000), no_headers, body);
/// let redacted = logged.redacted(&redaction);
/// assert!(redacted.unverifiable);
/// assert_eq!(redacted.body.as_deref(), Some(br#"{"id":"evt_1", "data":{"properties":{"Total":1.50,"Phone":"[redacted]"},
///     "createdBy":{"id":"usr_1","name":"[redacted]","email":"[redacted]"}}}"#.as_slice()));
/// ```
///
/// # Security
/// A redaction removes only the values that it names, and does not know the text that a customer
/// writes into a note. Property names differ from model to model, and a user who renames a property
/// changes whether its value is logged. Where this must be safe, use
/// [`everything`](Self::everything), or log nothing. The reason that your handler gives for a
/// failure is written unchanged, with any customers' names in it, unless [`reasons`](Self::reasons)
/// are removed. Reasons of this crate hold no value of a body.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Redaction {
    fields: Vec<Vec<String>>,
    keys: Vec<String>,
    pub(crate) headers: Vec<String>,
    pub(crate) reasons: bool,
}

impl Redaction {
    /// Removes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes the names and e-mail addresses of the people who created, updated or deleted a row.
    pub fn people() -> Self {
        let mut redaction = Self::new();
        for actor in ["createdBy", "updatedBy", "deletedBy"] {
            for field in ["name", "email"] {
                redaction = redaction.field(&format!("data.{actor}.{field}"));
            }
        }
        redaction
    }

    /// Removes every value in `data`, and [`reasons`](Self::reasons). The shape of `data` and the
    /// names of properties stay.
    pub fn everything() -> Self {
        Self::new().field("data").reasons()
    }

    /// Removes the value at this path: names with dots between them from the root on, `*` for any
    /// name. Case makes no difference. Arrays are not a step of a path: the path continues in each
    /// of their elements.
    ///
    /// The path of a changed property differs from that of a new one: `data.properties.Phone`, and
    /// `data.changes.Phone` with both values. For a name with a dot in it use [`key`](Self::key).
    pub fn field(mut self, path: &str) -> Self {
        self.fields
            .push(path.split('.').map(str::to_owned).collect());
        self
    }

    /// Removes every value with this name, at any depth. Case makes no difference.
    pub fn key(mut self, name: &str) -> Self {
        self.keys.push(name.to_owned());
        self
    }

    /// Removes the values of this header too. The values of headers that carry credentials are
    /// always removed before: see [the front page](crate#security).
    pub fn header(mut self, name: &str) -> Self {
        self.headers.push(name.to_ascii_lowercase());
        self
    }

    /// Removes the reasons of failures that your app wrote: those of the handler, of the service
    /// before it and of the dead-letter hook. The entry stays verifiable.
    pub fn reasons(mut self) -> Self {
        self.reasons = true;
        self
    }

    /// Returns whether a value is removed, from the names that lead to it. A long path takes no
    /// longer than a short one.
    pub(crate) fn covers(&self, path: &[Cow<'_, str>]) -> bool {
        let Some(last) = path.last() else {
            return false;
        };
        let same = |wanted: &str, name: &str| wanted == "*" || eq_ignore_case(wanted, name);
        self.keys.iter().any(|key| eq_ignore_case(key, last))
            || self.fields.iter().any(|field| {
                let mut steps = field.iter().zip(path);
                field.len() == path.len() && steps.all(|(step, name)| same(step, name))
            })
    }

    pub(crate) fn is_of_bodies(&self) -> bool {
        !self.fields.is_empty() || !self.keys.is_empty()
    }
}

/// Returns whether two names are equal when case is ignored, also for letters outside ASCII. It
/// reads no further than the shorter one: a sender chooses the length of a name, and the number of
/// values under it.
fn eq_ignore_case(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || folded(one).eq(folded(other))
}

/// Converts to upper case, then to lower case, so that `ß` equals `SS` (its upper case is two
/// letters), and the Kelvin sign equals `k`.
fn folded(name: &str) -> impl Iterator<Item = char> {
    let upper = name.chars().flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase)
}

/// Returns whether a header of this name, in lower case, carries credentials for another system. No
/// signed or checked header does.
pub(crate) fn is_credential(name: &str) -> bool {
    CREDENTIALS.iter().any(|word| name.contains(word))
}

/// Returns a header as it is logged with any setting.
pub(crate) fn header_as_logged(name: &HeaderName, value: &HeaderValue) -> (String, Bytes) {
    let value = if value.is_sensitive() || is_credential(name.as_str()) {
        Bytes::from_static(REDACTED.as_bytes())
    } else {
        Bytes::copy_from_slice(value.as_bytes())
    };
    (name.as_str().to_owned(), value)
}
