//! Deliveries: one event for one subscription, with its attempts.

use bytes::Bytes;
use hookgate::internal::from_foreign_json;
use hookgate_testing::sender::meaning;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::body::headers;
use crate::time::{EmulatorClock, Moment, iso_millis};

/// What is kept of the body and of the headers of an answer.
pub(super) const KEPT: usize = 4 << 10;

/// The number of a delivery, in the order in which they were made.
pub(super) type Number = u64;

/// The state of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DeliveryState {
    Pending,
    Delivered,
    Discarded,
}

/// One delivery, as the engine knows it and as a snapshot has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Delivery {
    /// Set once it is added.
    #[serde(skip)]
    pub(super) number: Number,
    pub(super) id: String,
    #[serde(rename = "subscriptionId")]
    pub(super) subscription: String,
    pub(super) event_id: String,
    pub(super) event_type: String,
    #[serde(rename = "payload", with = "text")]
    pub(super) body: Bytes,
    pub(super) state: DeliveryState,
    /// When it is discarded without a failed attempt.
    pub(super) reason: Option<String>,
    /// The time of the next attempt. `None` during an attempt, and at the end.
    #[serde(skip)]
    pub(super) due: Option<Moment>,
    /// In a snapshot: milliseconds from now on; 0 for an attempt that was under way, which is made
    /// again.
    pub(super) due_in_ms: Option<u64>,
    /// A test event has one attempt, because a person waits for the result.
    pub(super) once: bool,
    /// Whether it was held back already for the attempt that comes next.
    pub(super) reordered: bool,
    /// The second at which the first attempt was signed, and the clock's offset then, in
    /// milliseconds.
    pub(super) first_signed: Option<(i64, u64)>,
    pub(super) attempts: Vec<Attempt>,
}

/// A body as text.
mod text {
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(body: &Bytes, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&String::from_utf8_lossy(body))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        String::deserialize(from).map(Bytes::from)
    }
}

/// One attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Attempt {
    /// Milliseconds of the emulator's time.
    pub(super) at: u64,
    pub(super) status: Option<u16>,
    pub(super) error: Option<String>,
    pub(super) duration_ms: u64,
    pub(super) fault: Option<String>,
    pub(super) request: Sent,
    pub(super) answer: Option<Answer>,
}

/// The request of an attempt, as it was sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Sent {
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
    /// `None` if it is the payload. A fault may have made it anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<Vec<u8>>,
    /// The second of a right clock at the receiver, which signatures are compared with.
    pub(super) received_at: i64,
}

/// The answer to an attempt, cut off where it is long.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

/// A delivery as the control API shows it: it has every field of the specification's log of recent
/// deliveries.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    /// A later delivery has a greater number.
    pub(crate) number: u64,
    pub(crate) id: String,
    pub(crate) subscription_id: String,
    pub(crate) event_id: String,
    pub(crate) event_type: String,
    /// The bytes that are signed.
    pub(crate) payload: Payload,
    pub(crate) state: DeliveryState,
    pub(crate) next_attempt_at: Option<String>,
    pub(crate) attempts: Vec<AttemptRecord>,
    pub(crate) retry_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// An attempt as the control API shows it: request time, response status or error, duration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttemptRecord {
    pub(crate) at: String,
    pub(crate) status: Option<u16>,
    pub(crate) error: Option<String>,
    /// What a status other than 2xx means, in the words of `hookgate send`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) meaning: Option<&'static str>,
    pub(crate) duration_ms: u64,
}

/// A body, written as the JSON that it is. A snapshot may bring any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payload(pub(crate) Bytes);

impl Serialize for Payload {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match from_foreign_json::<&RawValue>(&self.0) {
            Ok(json) => json.serialize(serializer),
            Err(_) => String::from_utf8_lossy(&self.0).serialize(serializer),
        }
    }
}

impl Delivery {
    pub(super) fn record(&self, clock: &EmulatorClock) -> Record {
        let attempts = self.attempts.iter().map(|attempt| AttemptRecord {
            at: iso_millis(attempt.at),
            status: attempt.status,
            error: attempt.error.clone(),
            meaning: attempt
                .status
                .filter(|status| !(200..300).contains(status))
                .map(meaning),
            duration_ms: attempt.duration_ms,
        });
        Record {
            number: self.number,
            id: self.id.clone(),
            subscription_id: self.subscription.clone(),
            event_id: self.event_id.clone(),
            event_type: self.event_type.clone(),
            payload: Payload(self.body.clone()),
            state: self.state,
            next_attempt_at: self.due.map(|due| iso_millis(clock.millis_at(due))),
            attempts: attempts.collect(),
            retry_count: self.attempts.len().saturating_sub(1),
            reason: self.reason.clone(),
        }
    }

    /// Returns the record, with request, answer and fault in each attempt.
    pub(super) fn detail(&self, clock: &EmulatorClock) -> Value {
        let mut detail = serde_json::to_value(self.record(clock)).unwrap_or_default();
        let shown = detail["attempts"].as_array_mut().into_iter().flatten();
        for (shown, attempt) in shown.zip(&self.attempts) {
            let sent = self.sent_body(attempt);
            shown["fault"] = json!(attempt.fault);
            shown["request"] = json!({
                "method": "POST",
                "url": attempt.request.url,
                "headers": attempt.request.headers,
                "body": String::from_utf8_lossy(&sent),
            });
            shown["answer"] = json!(attempt.answer);
        }
        detail
    }

    pub(super) fn sent_body(&self, attempt: &Attempt) -> Bytes {
        let body = attempt.request.body.clone();
        body.map_or_else(|| self.body.clone(), Bytes::from)
    }

    /// Whether its event is of a row of this data model.
    pub(super) fn is_of_model(&self, id: &str) -> bool {
        let event = from_foreign_json::<Value>(&self.body);
        event.is_ok_and(|event| event["data"]["datamodelId"] == id)
    }

    /// Whether each of these words, in lower case, occurs in its ids, type, results or body,
    /// whatever the case there.
    pub(super) fn contains(&self, words: &str) -> bool {
        let mut text = format!(
            "{} {} {} {} {} ",
            self.id,
            self.event_id,
            self.event_type,
            self.subscription,
            self.reason.as_deref().unwrap_or_default()
        );
        for attempt in &self.attempts {
            text.extend(attempt.status.map(|status| format!("{status} ")));
            text.extend(attempt.error.as_ref().map(|error| format!("{error} ")));
        }
        text.push_str(&String::from_utf8_lossy(&self.body));
        let text = text.to_lowercase();
        words.split_whitespace().all(|word| text.contains(word))
    }

    /// About how many bytes it keeps.
    pub(super) fn weight(&self) -> usize {
        let attempts = self.attempts.iter().map(|attempt| {
            let body = attempt.request.body.as_ref().map_or(0, Vec::len);
            let answer = attempt.answer.as_ref();
            let answer = answer.map_or(0, |answer| answer.body.len() + length(&answer.headers));
            512 + body + length(&attempt.request.headers) + answer
        });
        512 + self.body.len() + attempts.sum::<usize>()
    }
}

impl Answer {
    pub(super) fn of(answer: &http::Response<Bytes>) -> Self {
        let body = answer.body();
        Self {
            status: answer.status().as_u16(),
            headers: headers(answer.headers(), KEPT, |_| false),
            body: String::from_utf8_lossy(&body[..body.len().min(KEPT)]).into_owned(),
        }
    }
}

fn length(headers: &[(String, String)]) -> usize {
    headers
        .iter()
        .map(|(name, value)| 64 + name.len() + value.len())
        .sum()
}
