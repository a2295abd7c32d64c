//! The service's log of recent deliveries.

use std::fmt;

use bytes::Bytes;
use hookgate::clock::UnixSeconds;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::iso8601;

/// A line of the log of recent deliveries that the service's settings show: one for each attempt. `Debug` shows no payload.
///
/// It has no signature and no headers: a delivery that is replayed from it has to be signed again.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct RecentDelivery {
    /// The event's id.
    pub event_id: String,
    /// The event's type.
    pub event_type: String,
    /// The time of the request.
    pub request_time: UnixSeconds,
    /// The answer's status; `None` where there was no answer.
    pub response_status: Option<u16>,
    /// The number of earlier attempts.
    pub retry_count: u32,
    /// The body.
    pub payload: Bytes,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    event_id: &'a str,
    event_type: &'a str,
    request_time: String,
    response_status: Option<u16>,
    retry_count: u32,
    payload: Payload<'a>,
}

/// JSON where the payload is JSON on one line, whose text is kept; a string otherwise.
#[derive(Serialize)]
#[serde(untagged)]
enum Payload<'a> {
    Json(&'a RawValue),
    Text(std::borrow::Cow<'a, str>),
}

impl RecentDelivery {
    /// One line of JSON, without a line break: `eventId`, `eventType`, `requestTime` in ISO 8601, `responseStatus` or null,
    /// `retryCount`, `payload`. A payload that is JSON on one line keeps its text; any other is a string.
    #[must_use]
    pub fn to_line(&self) -> String {
        let text = std::str::from_utf8(&self.payload).ok();
        let one_line = text.filter(|text| !text.contains(['\n', '\r']));
        let json = one_line.and_then(|text| {
            let json: &RawValue = serde_json::from_str(text).ok()?;
            // White space around the JSON would be lost.
            (json.get() == text).then_some(json)
        });
        let line = Line {
            event_id: &self.event_id,
            event_type: &self.event_type,
            request_time: iso8601(self.request_time),
            response_status: self.response_status,
            retry_count: self.retry_count,
            payload: match json {
                Some(json) => Payload::Json(json),
                None => Payload::Text(String::from_utf8_lossy(&self.payload)),
            },
        };
        // This holds texts and numbers only, so serialization can't fail.
        serde_json::to_string(&line).unwrap_or_default()
    }
}

impl fmt::Debug for RecentDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecentDelivery")
            .field("event_id", &self.event_id)
            .field("event_type", &self.event_type)
            .field("request_time", &self.request_time)
            .field("response_status", &self.response_status)
            .field("retry_count", &self.retry_count)
            .field("payload_bytes", &self.payload.len())
            .finish()
    }
}
