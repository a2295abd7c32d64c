//! How signatures are written: parsed strictly, in one form, up to eight in a list.

use std::fmt;

use base64ct::{Base64, Encoding as _};

use super::{Encoding, Form, Malformed, Place, Scheme, Timestamp};

/// The signatures of one delivery: mostly one.
#[derive(Clone)]
pub(crate) struct Signatures {
    first: [u8; 32],
    more: Vec<[u8; 32]>,
}

/// The most elements of a list.
const MAX_ELEMENTS: usize = 8;

impl Signatures {
    #[inline]
    pub(crate) fn one(first: [u8; 32]) -> Self {
        let more = Vec::new();
        Self { first, more }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8; 32]> {
        std::iter::once(&self.first).chain(&self.more)
    }

    pub(crate) fn get(&self, at: u8) -> Option<[u8; 32]> {
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
                Ok((Self::one(decode(text, scheme.encoding)?), None))
            }
            Form::List { separator, version } => parse_list(scheme, header, separator, version),
        }
    }
}

/// Whether an element of a list can have this name.
pub(super) fn is_name(name: &[u8]) -> bool {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
    !name.is_empty() && name.iter().all(is_of_name)
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
    let most = MAX_ELEMENTS + usize::from(time.is_some());
    for (at, element) in elements.enumerate() {
        let time = time.and_then(|name| element.strip_prefix(name));
        if at >= most {
            return Err(Malformed);
        } else if let Some(time) = time {
            if timestamp.replace(time).is_some() {
                return Err(Malformed);
            }
        } else if let Some(text) = element.strip_prefix(version) {
            let signature = decode(text, scheme.encoding)?;
            match &mut found {
                Some(signatures) => signatures.more.push(signature),
                None => found = Some(Signatures::one(signature)),
            }
        } else {
            // Of another version. White space is in no name: two headers that a proxy has joined
            // are not one list.
            let name = element.split(|byte| Some(byte) == mark).next();
            let name = name.filter(|name| name.len() < element.len());
            if !name.is_some_and(is_name) {
                return Err(Malformed);
            }
        }
    }
    Ok((found.ok_or(Malformed)?, timestamp))
}

/// The form of the default scheme, in which any signature is stored.
const STORED: &str = "sha256=";

/// Parses a signature in that form.
pub(crate) fn parse_stored(text: &[u8]) -> Result<[u8; 32], Malformed> {
    let digits = text.strip_prefix(STORED.as_bytes()).ok_or(Malformed)?;
    decode(digits, Encoding::Hex)
}

/// Writes a signature in that form.
pub(crate) fn to_stored(signature: &[u8; 32]) -> String {
    format!("{STORED}{}", hex::encode(signature))
}

#[inline]
fn decode(text: &[u8], encoding: Encoding) -> Result<[u8; 32], Malformed> {
    let mut bytes = [0; 32];
    match encoding {
        Encoding::Hex => {
            // Not by `hex`: its branch for each digit, which no processor can predict, took a
            // quarter of a verification of 300 B (bench `verify`). It also takes upper case, and
            // one signature has one spelling. Without a branch, the compiler makes vector
            // instructions of this loop.
            let digits: &[u8; 64] = text.try_into().map_err(|_| Malformed)?;
            let values = digits.map(|digit| match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                _ => u8::MAX,
            });
            if values.iter().fold(0, |all, value| all | value) > 0xf {
                return Err(Malformed);
            }
            let (pairs, _) = values.as_chunks::<2>();
            for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
                *byte = high << 4 | low;
            }
        }
        Encoding::Base64 => {
            let decoded = Base64::decode(text, &mut bytes).map_err(|_| Malformed)?;
            if decoded.len() < 32 {
                return Err(Malformed);
            }
        }
    }
    Ok(bytes)
}

fn encode(signature: &[u8; 32], encoding: Encoding) -> String {
    match encoding {
        Encoding::Hex => hex::encode(signature),
        Encoding::Base64 => {
            let mut text = [0; 44];
            // 32 bytes take these 44 characters.
            let text = Base64::encode(signature, &mut text).unwrap_or_default();
            text.to_owned()
        }
    }
}

impl Scheme {
    /// Returns the headers of a delivery that has this signature.
    pub(crate) fn headers(
        &self,
        signature: &[u8; 32],
        timestamp: &Timestamp,
        id: &str,
    ) -> Vec<(&'static str, String)> {
        let text = encode(signature, self.encoding);
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
        headers
    }

    /// Returns the headers that a request of this sender would have, but for the signature, each
    /// with its value.
    pub(crate) fn headers_of<'v>(
        &self,
        [timestamp, subscription, id, kind]: [Option<&'v str>; 4],
    ) -> impl Iterator<Item = (&'static str, &'v str)> {
        // An id that is a digest was in no header.
        let id_header = self.id_header().filter(|_| self.id.is_some());
        let pairs = [
            (self.own_timestamp_header(), timestamp),
            (self.subscription, subscription),
            (id_header, id),
            (self.kind_hint, kind),
        ];
        pairs
            .into_iter()
            .filter_map(|(name, value)| name.zip(value))
    }
}

impl fmt::Debug for Signatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signatures([redacted])")
    }
}
