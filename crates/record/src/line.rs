//! The form of values in a line of the log.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hookgate::clock::UnixSeconds;
use serde::{Serialize, Serializer};

/// The line that a recorder writes after a line that is incomplete. A line of deliveries that are missing is
/// `{"dropped":2}`. Readers ignore both as deliveries.
pub const TORN_LINE: &str = r#"{"torn":true}"#;

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

pub(crate) fn seconds<S: Serializer>(at: &UnixSeconds, json: S) -> Result<S::Ok, S::Error> {
    json.serialize_i64(at.as_i64())
}

pub(crate) fn headers<S: Serializer>(
    headers: &[(String, Bytes)],
    json: S,
) -> Result<S::Ok, S::Error> {
    json.collect_seq(headers.iter().map(|(name, value)| (name, Text::of(value))))
}

pub(crate) fn body<S: Serializer>(body: &Option<Bytes>, json: S) -> Result<S::Ok, S::Error> {
    body.as_ref().map(Text::of).serialize(json)
}

pub(crate) fn micros<S: Serializer>(time: &Duration, json: S) -> Result<S::Ok, S::Error> {
    json.serialize_u64(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

pub(crate) fn some_micros<S: Serializer>(
    time: &Option<Duration>,
    json: S,
) -> Result<S::Ok, S::Error> {
    micros(&time.unwrap_or_default(), json) // an absent time is left out
}
