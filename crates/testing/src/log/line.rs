//! Reads the lines that a recorder writes.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hookgate::clock::UnixSeconds;
use hookgate_record::{LoggedAnswer, LoggedDelivery, TORN_LINE};
use serde::Deserialize;
use serde_json::error::Category;

use super::LogError;

/// A delivery, also as `hookgate listen --json` names its fields. Those that a newer version adds
/// are ignored.
#[derive(Deserialize)]
struct Line {
    #[serde(alias = "receivedAt")]
    received_at: i64,
    method: String,
    target: String,
    headers: Vec<(String, Text)>,
    body: Option<Text>,
    #[serde(alias = "cutOffAt")]
    cut_off_at: Option<u64>,
    answer: Option<AnswerLine>,
    #[serde(alias = "hungUpUs")]
    hung_up_us: Option<u64>,
    #[serde(default)]
    unverifiable: bool,
}

/// Text where it is UTF-8, base64 where it is not.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Utf8(String),
    Base64 { base64: String },
}

#[derive(Deserialize)]
struct AnswerLine {
    status: u16,
    outcome: String,
    reason: Option<String>,
    #[serde(alias = "elapsedUs")]
    elapsed_us: u64,
    key: Option<String>,
    scope: Option<String>,
    attempt: Option<u32>,
    #[serde(alias = "claimedSubscription")]
    claimed_subscription: Option<String>,
    #[serde(default)]
    headers: Vec<(String, Text)>,
    body: Option<Text>,
    #[serde(alias = "bodyBytes")]
    body_bytes: Option<u64>,
}

/// A line that is not a delivery, but a note about the lines next to it.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mark {
    /// The number of deliveries that are missing near this line.
    Dropped(u64),
    /// The line before this one is incomplete.
    Torn(#[allow(dead_code)] bool), // always true
}

impl Mark {
    #[expect(clippy::disallowed_methods, reason = "a type without a `Value`")]
    pub(super) fn from_line(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

/// Returns whether a line that was cut off can have been a recorder's: a delivery or a mark.
pub(super) fn is_beginning(line: &[u8]) -> bool {
    let beginnings = [r#"{"received_at":"#, r#"{"dropped":"#, TORN_LINE];
    let mut beginnings = beginnings.iter().map(|text| text.as_bytes());
    beginnings.any(|beginning| line.starts_with(beginning) || beginning.starts_with(line))
}

impl Text {
    fn into_bytes(self) -> Result<Bytes, LogError> {
        match self {
            Self::Utf8(text) => Ok(text.into()),
            Self::Base64 { base64 } => {
                let bytes = STANDARD.decode(base64).map_err(LogError::bad_line)?;
                Ok(bytes.into())
            }
        }
    }
}

/// See [`LoggedDeliveryExt::from_line`](super::LoggedDeliveryExt::from_line).
#[expect(clippy::disallowed_methods, reason = "a type without a `Value`")]
pub(super) fn read(line: &[u8]) -> Result<LoggedDelivery, LogError> {
    let line: Line = serde_json::from_slice(line).map_err(|error| bad_json(&error))?;
    let headers = read_headers(line.headers)?;
    let mut delivery = LoggedDelivery::new(UnixSeconds::new(line.received_at), headers, "");
    delivery.method = line.method;
    delivery.target = line.target;
    delivery.body = line.body.map(Text::into_bytes).transpose()?;
    delivery.cut_off_at = line.cut_off_at;
    delivery.answer = line.answer.map(AnswerLine::into_answer).transpose()?;
    delivery.hung_up_after = line.hung_up_us.map(Duration::from_micros);
    delivery.unverifiable = line.unverifiable;
    Ok(delivery)
}

fn read_headers(line: Vec<(String, Text)>) -> Result<Vec<(String, Bytes)>, LogError> {
    let read = |(name, value): (String, Text)| Ok((name, value.into_bytes()?));
    line.into_iter().map(read).collect()
}

/// Holds the position, and not the parser's message: that message would repeat the text of the
/// line.
fn bad_json(error: &serde_json::Error) -> LogError {
    let what = match error.classify() {
        Category::Eof => "it breaks off",
        Category::Data => "it is JSON of another shape",
        Category::Io | Category::Syntax => "it is not JSON",
    };
    LogError::bad_line(format!("{what} at column {}", error.column()))
}

impl AnswerLine {
    fn into_answer(self) -> Result<LoggedAnswer, LogError> {
        let mut answer = LoggedAnswer::new(self.status, &self.outcome);
        answer.reason = self.reason;
        answer.elapsed = Duration::from_micros(self.elapsed_us);
        answer.key = self.key;
        answer.scope = self.scope;
        answer.attempt = self.attempt;
        answer.claimed_subscription = self.claimed_subscription;
        answer.headers = read_headers(self.headers)?;
        answer.body = self.body.map(Text::into_bytes).transpose()?;
        answer.body_bytes = self.body_bytes;
        Ok(answer)
    }
}
