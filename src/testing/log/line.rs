//! A delivery as a line of JSON, and back.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::entry::{LoggedAnswer, LoggedDelivery};
use crate::clock::UnixSeconds;
use crate::error::LogError;

/// As it stands in the file. Fields are only ever added.
#[derive(Serialize, Deserialize)]
struct Line {
    received_at: i64,
    method: String,
    target: String,
    headers: Vec<(String, Text)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cut_off_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<AnswerLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hung_up_us: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unverifiable: bool,
}

/// Text where it is UTF-8, base64 where it is not.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Text {
    Utf8(String),
    Base64 { base64: String },
}

#[derive(Serialize, Deserialize)]
struct AnswerLine {
    status: u16,
    outcome: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    elapsed_us: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
}

impl Text {
    fn of(bytes: &Bytes) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Utf8(text.to_owned()),
            Err(_) => Self::Base64 {
                base64: STANDARD.encode(bytes),
            },
        }
    }

    fn into_bytes(self) -> Result<Bytes, base64::DecodeError> {
        match self {
            Self::Utf8(text) => Ok(text.into()),
            Self::Base64 { base64 } => STANDARD.decode(base64).map(Bytes::from),
        }
    }
}

impl LoggedDelivery {
    /// One line of JSON, without a line break at its end.
    #[must_use]
    pub fn to_line(&self) -> String {
        let text = |(name, value): &(String, Bytes)| (name.clone(), Text::of(value));
        let line = Line {
            received_at: self.received_at.as_i64(),
            method: self.method.clone(),
            target: self.target.clone(),
            headers: self.headers.iter().map(text).collect(),
            body: self.body.as_ref().map(Text::of),
            cut_off_at: self.cut_off_at,
            answer: self.answer.as_ref().map(AnswerLine::of),
            hung_up_us: self.hung_up_after.map(micros),
            unverifiable: self.unverifiable,
        };
        // Texts and numbers alone: nothing of it can fail.
        serde_json::to_string(&line).unwrap_or_default()
    }

    /// Reads one line.
    ///
    /// # Errors
    /// `BadLine` where it is no such JSON, or bytes are no base64.
    pub fn from_line(line: impl AsRef<[u8]>) -> Result<Self, LogError> {
        let line: Line = serde_json::from_slice(line.as_ref()).map_err(LogError::bad_line)?;
        let mut headers = Vec::with_capacity(line.headers.len());
        for (name, value) in line.headers {
            headers.push((name, value.into_bytes().map_err(LogError::bad_line)?));
        }
        let body = line.body.map(Text::into_bytes).transpose();
        Ok(Self {
            received_at: UnixSeconds::new(line.received_at),
            method: line.method,
            target: line.target,
            headers,
            body: body.map_err(LogError::bad_line)?,
            cut_off_at: line.cut_off_at,
            answer: line.answer.map(AnswerLine::into_answer),
            hung_up_after: line.hung_up_us.map(Duration::from_micros),
            unverifiable: line.unverifiable,
        })
    }
}

impl AnswerLine {
    fn of(answer: &LoggedAnswer) -> Self {
        Self {
            status: answer.status,
            outcome: answer.outcome.clone(),
            reason: answer.reason.clone(),
            elapsed_us: micros(answer.elapsed),
            key: answer.key.clone(),
            scope: answer.scope.clone(),
            attempt: answer.attempt,
        }
    }

    fn into_answer(self) -> LoggedAnswer {
        LoggedAnswer {
            status: self.status,
            outcome: self.outcome,
            reason: self.reason,
            elapsed: Duration::from_micros(self.elapsed_us),
            key: self.key,
            scope: self.scope,
            attempt: self.attempt,
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
