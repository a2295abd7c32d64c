//! A delivery as a line of JSON.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Serialize;

use super::entry::{LoggedAnswer, LoggedDelivery};

/// A line of the file. New versions only ever add fields.
#[derive(Serialize)]
struct Line<'a> {
    received_at: i64,
    method: &'a str,
    target: &'a str,
    headers: Vec<(&'a str, Text<'a>)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_off_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<AnswerLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hung_up_us: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unverifiable: bool,
}

/// Text where it is UTF-8, base64 where it is not.
#[derive(Serialize)]
#[serde(untagged)]
enum Text<'a> {
    Utf8(&'a str),
    Base64 { base64: String },
}

#[derive(Serialize)]
struct AnswerLine<'a> {
    status: u16,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    elapsed_us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
}

/// The line that a recorder writes after a line that is incomplete. A line of deliveries that are missing is
/// `{"dropped":2}`. Readers ignore both as deliveries.
pub const TORN_LINE: &str = r#"{"torn":true}"#;

/// Returns the line that says how many deliveries are missing near it.
pub(super) fn dropped_line(number: u64) -> String {
    format!(r#"{{"dropped":{number}}}"#)
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

impl LoggedDelivery {
    /// Returns one line of JSON, without a line break at its end.
    ///
    /// ```text
    /// {"received_at":1763690000,"method":"POST","target":"/webhooks","headers":[["x-service-timestamp","1763690000"], …],
    ///  "body":"{\"id\":\"evt_1\", …}","answer":{"status":204,"outcome":"handled","elapsed_us":1234,"key":"current","scope":"default"}}
    /// ```
    ///
    /// `received_at` is in seconds since 1970; times whose name ends in `_us` are in microseconds. Bytes that are no UTF-8
    /// are `{"base64":"…"}`, in the value of a header as in the body. Absent fields are left out: `body`, `cut_off_at`,
    /// `answer`, `hung_up_us`, `unverifiable`, and of an answer `reason`, `key`, `scope`, `attempt`. Readers ignore unknown
    /// fields.
    #[must_use]
    pub fn to_line(&self) -> String {
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| (&**name, Text::of(value)));
        let line = Line {
            received_at: self.received_at.as_i64(),
            method: &self.method,
            target: &self.target,
            headers: headers.collect(),
            body: self.body.as_ref().map(Text::of),
            cut_off_at: self.cut_off_at,
            answer: self.answer.as_ref().map(AnswerLine::of),
            hung_up_us: self.hung_up_after.map(micros),
            unverifiable: self.unverifiable,
        };
        // This holds texts and numbers only, so serialization can't fail.
        serde_json::to_string(&line).unwrap_or_default()
    }
}

impl<'a> AnswerLine<'a> {
    fn of(answer: &'a LoggedAnswer) -> Self {
        Self {
            status: answer.status,
            outcome: &answer.outcome,
            reason: answer.reason.as_deref(),
            elapsed_us: micros(answer.elapsed),
            key: answer.key.as_deref(),
            scope: answer.scope.as_deref(),
            attempt: answer.attempt,
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
