//! A delivery as a line of JSON, and the reverse.

use std::borrow::Cow;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::entry::{LoggedAnswer, LoggedDelivery};
use super::misread::misread;
use crate::clock::UnixSeconds;
use crate::error::{LogError, LogErrorKind};

/// A line of the file. New versions only ever add fields.
#[derive(Serialize, Deserialize)]
struct Line<'a> {
    received_at: i64,
    method: Cow<'a, str>,
    target: Cow<'a, str>,
    headers: Vec<(Cow<'a, str>, Text<'a>)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cut_off_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<AnswerLine<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hung_up_us: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unverifiable: bool,
}

/// Text where it is UTF-8, base64 where it is not.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Text<'a> {
    Utf8(Cow<'a, str>),
    Base64 { base64: String },
}

#[derive(Serialize, Deserialize)]
struct AnswerLine<'a> {
    status: u16,
    outcome: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
    elapsed_us: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
}

/// A line that is no delivery, but a note about the lines next to it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mark {
    /// The number of deliveries that are missing near this line.
    Dropped(u64),
    /// The line before this one is incomplete.
    Torn(bool),
}

impl Mark {
    pub(super) fn to_line(self) -> String {
        // This holds numbers and booleans only, so serialization can't fail.
        serde_json::to_string(&self).unwrap_or_default()
    }

    pub(super) fn from_line(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

impl<'a> Text<'a> {
    fn of(bytes: &'a Bytes) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Utf8(text.into()),
            Err(_) => Self::Base64 {
                base64: STANDARD.encode(bytes),
            },
        }
    }

    fn into_bytes(self) -> Result<Bytes, base64::DecodeError> {
        match self {
            Self::Utf8(text) => Ok(text.into_owned().into()),
            Self::Base64 { base64 } => STANDARD.decode(base64).map(Bytes::from),
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
        let headers = headers.map(|(name, value)| ((&**name).into(), Text::of(value)));
        let line = Line {
            received_at: self.received_at.as_i64(),
            method: (&*self.method).into(),
            target: (&*self.target).into(),
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

    /// Reads one line.
    ///
    /// # Errors
    /// `BadLine` where the line is no such JSON, or where the base64 is invalid.
    pub fn from_line(line: impl AsRef<[u8]>) -> Result<Self, LogError> {
        let line: Line<'_> = serde_json::from_slice(line.as_ref())
            .map_err(|error| misread(LogErrorKind::BadLine, &error))?;
        let mut headers = Vec::with_capacity(line.headers.len());
        for (name, value) in line.headers {
            let value = value.into_bytes().map_err(LogError::bad_line)?;
            // A line that was written by hand may have names in upper case.
            headers.push((name.to_ascii_lowercase(), value));
        }
        let body = line.body.map(Text::into_bytes).transpose();
        Ok(Self {
            received_at: UnixSeconds::new(line.received_at),
            method: line.method.into_owned(),
            target: line.target.into_owned(),
            headers,
            body: body.map_err(LogError::bad_line)?,
            cut_off_at: line.cut_off_at,
            answer: line.answer.map(AnswerLine::into_answer),
            hung_up_after: line.hung_up_us.map(Duration::from_micros),
            unverifiable: line.unverifiable,
        })
    }
}

impl<'a> AnswerLine<'a> {
    fn of(answer: &'a LoggedAnswer) -> Self {
        Self {
            status: answer.status,
            outcome: (&*answer.outcome).into(),
            reason: answer.reason.as_deref().map(Cow::from),
            elapsed_us: micros(answer.elapsed),
            key: answer.key.as_deref().map(Cow::from),
            scope: answer.scope.as_deref().map(Cow::from),
            attempt: answer.attempt,
        }
    }

    fn into_answer(self) -> LoggedAnswer {
        LoggedAnswer {
            status: self.status,
            outcome: self.outcome.into_owned(),
            reason: self.reason.map(Cow::into_owned),
            elapsed: Duration::from_micros(self.elapsed_us),
            key: self.key.map(Cow::into_owned),
            scope: self.scope.map(Cow::into_owned),
            attempt: self.attempt,
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
