//! How signatures are written: parsed strictly, in one form, up to eight in a list.

use std::fmt;

use base64ct::{Base64, Encoding as _};

use super::{Encoding, Form, Place, Scheme, SignedHead, Timestamp};
use crate::verify::{Malformed, Secret, mac_of};

/// The value of `X-Service-Signature`: `sha256=` and 64 lower-case hex digits. Of another scheme, the 32 bytes that matched.
///
/// Not printable on purpose: a reader of a log with a fresh signature could replay the delivery. A sender or a test
/// calls [`to_header_value`](Self::to_header_value).
#[derive(Clone, Copy)]
pub struct Signature(pub(crate) [u8; 32]);

impl Signature {
    /// Parses the header's bytes.
    ///
    /// # Errors
    /// [`Malformed`] for anything but the one form: no other prefix, case, length or list of signatures.
    ///
    /// ```
    /// use hookgate::verify::Signature;
    ///
    /// assert!(Signature::parse(format!("sha256={}", "0a".repeat(32)).as_bytes()).is_ok());
    /// assert!(Signature::parse(format!("sha256={}", "0A".repeat(32)).as_bytes()).is_err());
    /// assert!(Signature::parse(b"sha256=").is_err());
    /// ```
    pub fn parse(header: &[u8]) -> Result<Self, Malformed> {
        let digits = header.strip_prefix(PREFIX).ok_or(Malformed)?;
        Self::decode(digits, Encoding::Hex)
    }

    /// Signs as the service does: HMAC-SHA256 with the whole secret text as key, over the timestamp's bytes, a dot
    /// and the body's bytes.
    ///
    /// ```
    /// use hookgate::{
    ///     Secret,
    ///     verify::{Signature, Timestamp},
    /// };
    ///
    /// let secret = Secret::new("whsec_made_up_for_this_example")?;
    /// let timestamp = Timestamp::parse(b"1763690000")?;
    /// let header = Signature::sign(&secret, &timestamp, b"{}").to_header_value();
    /// assert_eq!(header, "sha256=f3330d0b57c261971ee5ecc21db71965a19e2b41468c943c1d234b139fc550cc");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn sign(secret: &Secret, timestamp: &Timestamp, body: &[u8]) -> Self {
        let head = SignedHead {
            parts: Scheme::WORKSPACE.parts(),
            timestamp: Some(*timestamp),
            id: None,
        };
        Self(mac_of(secret.as_bytes(), &head, body))
    }

    /// Returns the header's value, for a sender or a test.
    ///
    /// # Security
    /// With this value a delivery is accepted. Never log it, and never answer with it.
    #[must_use]
    pub fn to_header_value(&self) -> String {
        format!("sha256={}", hex::encode(self.0))
    }

    #[inline]
    fn decode(text: &[u8], encoding: Encoding) -> Result<Self, Malformed> {
        let mut bytes = [0; 32];
        match encoding {
            Encoding::Hex => {
                // `hex` also decodes upper case. One signature has one spelling.
                if text.iter().any(u8::is_ascii_uppercase) {
                    return Err(Malformed);
                }
                hex::decode_to_slice(text, &mut bytes).map_err(|_| Malformed)?;
            }
            Encoding::Base64 => {
                let decoded = Base64::decode(text, &mut bytes).map_err(|_| Malformed)?;
                if decoded.len() != bytes.len() {
                    return Err(Malformed);
                }
            }
        }
        Ok(Self(bytes))
    }

    fn encode(&self, encoding: Encoding) -> String {
        match encoding {
            Encoding::Hex => hex::encode(self.0),
            Encoding::Base64 => {
                let mut text = [0; 44];
                // 32 bytes take these 44 characters.
                Base64::encode(&self.0, &mut text).unwrap_or_default().to_owned()
            }
        }
    }
}

const PREFIX: &[u8; 7] = b"sha256=";

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signature([redacted])")
    }
}

/// The signatures of one delivery: mostly one.
#[derive(Clone, Debug)]
pub(crate) struct Signatures {
    first: Signature,
    more: Vec<Signature>,
}

/// The most elements of a list.
const MAX_ELEMENTS: usize = 8;

impl Signatures {
    #[inline]
    pub(crate) fn one(first: Signature) -> Self {
        let more = Vec::new();
        Self { first, more }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Signature> {
        std::iter::once(&self.first).chain(&self.more)
    }

    pub(crate) fn get(&self, at: u8) -> Option<Signature> {
        self.iter().nth(usize::from(at)).copied()
    }

    /// Parses the header of this scheme. A list may have the timestamp too.
    #[inline]
    pub(super) fn parse<'h>(
        scheme: &Scheme,
        header: &'h [u8],
    ) -> Result<(Self, Option<&'h [u8]>), Malformed> {
        match scheme.form {
            Form::One(prefix) => {
                let text = header.strip_prefix(prefix.as_bytes()).ok_or(Malformed)?;
                Ok((Self::one(Signature::decode(text, scheme.encoding)?), None))
            }
            Form::List { separator, version } => parse_list(scheme, header, separator, version),
        }
    }
}

fn parse_list<'h>(
    scheme: &Scheme,
    header: &'h [u8],
    separator: char,
    version: &str,
) -> Result<(Signatures, Option<&'h [u8]>), Malformed> {
    let (version, mark) = (version.as_bytes(), version.as_bytes().last());
    let time = match scheme.timestamp {
        Some(Place::Element(name)) => Some(name.as_bytes()),
        _ => None,
    };
    let (mut found, mut timestamp): (Option<Signatures>, _) = (None, None);
    let elements = header.split(|byte| char::from(*byte) == separator);
    // The timestamp is no signature.
    for (at, element) in elements.enumerate() {
        let time = time.and_then(|name| element.strip_prefix(name));
        if at >= MAX_ELEMENTS + usize::from(scheme.timestamp_header() == scheme.signature) {
            return Err(Malformed);
        } else if let Some(time) = time {
            if timestamp.replace(time).is_some() {
                return Err(Malformed);
            }
        } else if let Some(text) = element.strip_prefix(version) {
            let signature = Signature::decode(text, scheme.encoding)?;
            match &mut found {
                Some(signatures) => signatures.more.push(signature),
                None => found = Some(Signatures::one(signature)),
            }
        } else if !element.iter().skip(1).any(|byte| Some(byte) == mark) {
            return Err(Malformed);
        }
    }
    Ok((found.ok_or(Malformed)?, timestamp))
}

impl Scheme {
    /// Signs a body as this sender does, and returns the headers to send: for tests, and for tools that send deliveries. `id` is the
    /// event's, for a scheme that has it in a header.
    ///
    /// ```
    /// use hookgate::{Scheme, Secret, Verifier, verify::Timestamp};
    ///
    /// let secret = Secret::new("whsec_made_up_for_this_example")?;
    /// let body = br#"{"id":"evt_1","type":"invoice.paid"}"#;
    /// let now = Timestamp::parse(b"1763690000")?;
    /// let headers = Scheme::STRIPE.sign(&secret, &now, "", body)?;
    /// assert_eq!(headers[0].0, "stripe-signature");
    ///
    /// let verifier = Verifier::for_scheme(Scheme::STRIPE, secret)?;
    /// let head = verifier.headers(headers.iter().map(|(name, value)| (*name, value)))?;
    /// assert!(verifier.verify(&head, body, now.seconds()).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The row is unusable, or the secret is not of its form.
    ///
    /// # Security
    /// With these headers a delivery is accepted. Never log them.
    pub fn sign(
        &self,
        secret: &Secret,
        timestamp: &Timestamp,
        id: &str,
        body: &[u8],
    ) -> Result<Vec<(&'static str, String)>, crate::ConfigError> {
        self.check()?;
        let head = SignedHead {
            parts: self.signed,
            timestamp: self.timestamp.map(|_| *timestamp),
            id: self.id_in_header().then(|| id.into()),
        };
        let key = secret.to_key(self.key)?;
        let text = Signature(mac_of(&key, &head, body)).encode(self.encoding);
        let value = match (self.form, self.timestamp) {
            (Form::One(prefix), _) => format!("{prefix}{text}"),
            (Form::List { separator, version }, Some(Place::Element(name))) => {
                format!("{name}{timestamp}{separator}{version}{text}")
            }
            (Form::List { version, .. }, _) => format!("{version}{text}"),
        };
        let mut headers = vec![(self.signature, value)];
        if let Some(Place::Header(name)) = self.timestamp {
            headers.push((name, timestamp.to_string()));
        }
        if let Some(Place::Header(name)) = self.id {
            headers.push((name, id.to_owned()));
        }
        Ok(headers)
    }
}
