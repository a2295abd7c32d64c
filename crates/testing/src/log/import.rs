//! Imports payloads without headers, as the service's own log of recent deliveries shows them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use hookgate::{clock::UnixSeconds, event::Date};
use hookgate_record::{LoggedAnswer, LoggedDelivery};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::file::DeliveryLog;
use super::json_error::json_error;
use super::{LogError, LogErrorKind};

/// The outcome of an imported delivery: only its status is known.
const IMPORTED: &str = "imported";

/// The names that a field may have, reduced to letters in lower case.
const EVENT_ID: &[&str] = &["eventid", "id"];
const EVENT_TYPE: &[&str] = &["eventtype", "event", "type"];
const TIME: &[&str] = &[
    "requesttime",
    "requestedat",
    "sentat",
    "deliveredat",
    "time",
    "timestamp",
    "createdat",
];
const STATUS: &[&str] = &["responsestatus", "responsecode", "statuscode", "status"];
const RETRIES: &[&str] = &["retrycount", "retries", "retry"];
const PAYLOAD: &[&str] = &["payload", "requestbody", "body"];
/// The fields that may hold the list, where the top level is an object.
const LISTS: &[&str] = &["deliveries", "recentdeliveries", "data", "items", "results"];

impl DeliveryLog {
    /// Imports payloads without their headers, as in the service's log of recent deliveries in the developer settings: event
    /// id, event type, request time, response status, retry count, payload (service specification, *Delivery and retry*, rule
    /// 2). Events without this frame are accepted too.
    ///
    /// The specification does not show the form of that list, so several forms are accepted: a JSON array, an object with an
    /// array in `deliveries`, `data`, `items` or `results`, or JSON Lines. Names of fields may be in any case and with `_` or
    /// `-` between words: `eventId`, `request_time`, `Response Status`. A time is ISO 8601, or a number of seconds or
    /// milliseconds since 1970. Where it is missing, the event's own `createdAt` is used. A payload may be a JSON object,
    /// whose bytes are kept unchanged, or a text.
    ///
    /// An imported delivery has no timestamp and no signature, so it is [unverifiable](LoggedDelivery::unverifiable): sign it
    /// [again](super::LoggedDeliveryExt::resigned). Its only headers are the event's id and type, where the list has them. Its
    /// bytes may differ from the bytes that were sent, because the program that showed them may have formatted them.
    ///
    /// ```
    /// use hookgate::Secret;
    /// use hookgate_testing::{DeliveryLog, LoggedDeliveryExt, Signer};
    ///
    /// let log = DeliveryLog::import(r#"[
    ///     {"eventId": "evt_1", "eventType": "row.deleted", "requestTime": "2026-11-21T09:30:00Z", "responseStatus": 503,
    ///      "retryCount": 1, "payload": {"id": "evt_1", "type": "row.deleted", "data": {}}}
    /// ]"#)?;
    /// let delivery = &log.deliveries()[0];
    /// let answer = delivery.answer.as_ref().expect("a status");
    /// assert_eq!((answer.status, answer.attempt), (503, Some(2)));
    /// assert!(!delivery.is_verifiable());
    ///
    /// let signer = Signer::new(Secret::new("whsec_made_up_for_this_example")?);
    /// assert!(delivery.resigned(&signer).expect("it has a body").is_verifiable());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `BadImport`: the text is no such list, or the delivery with the given number has no payload or no time.
    pub fn import(text: impl AsRef<[u8]>) -> Result<Self, LogError> {
        let text = text.as_ref();
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        let entries = entries(text)?;
        let numbered = (1..).zip(entries);
        let deliveries = numbered.map(|(number, entry)| {
            delivery(entry).map_err(|missing| LogError::bad_import(missing).at_line(number))
        });
        deliveries.collect()
    }
}

/// A record of the list. Fields keep their original bytes.
type Record<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

fn entries(text: &[u8]) -> Result<Vec<&RawValue>, LogError> {
    let bad = |error: &serde_json::Error| json_error(LogErrorKind::BadImport, error);
    // One value, or several in sequence: usually one per line.
    let values = serde_json::Deserializer::from_slice(text).into_iter::<&RawValue>();
    let values: Vec<_> = values
        .collect::<Result<_, _>>()
        .map_err(|error| bad(&error))?;
    if let [only] = values[..] {
        if only.get().starts_with('[') {
            return serde_json::from_str(only.get()).map_err(|error| bad(&error));
        }
        let record = record(only).unwrap_or_default();
        if field(&record, PAYLOAD).is_none()
            && let Some(list) = field(&record, LISTS).filter(|list| list.get().starts_with('['))
        {
            return serde_json::from_str(list.get()).map_err(|error| bad(&error));
        }
    }
    Ok(values)
}

fn record(entry: &RawValue) -> Option<Record<'_>> {
    #[derive(Deserialize)]
    struct Fields<'a>(#[serde(borrow)] BTreeMap<Cow<'a, str>, &'a RawValue>);

    let Fields(fields) = serde_json::from_str(entry.get()).ok()?;
    let plain = |name: Cow<'_, str>| -> String {
        let letters = name.chars().filter(char::is_ascii_alphabetic);
        letters.map(|letter| letter.to_ascii_lowercase()).collect()
    };
    let fields = fields.into_iter();
    Some(
        fields
            .map(|(name, value)| (plain(name).into(), value))
            .collect(),
    )
}

/// Returns the first of these fields that is present and not null.
fn field<'a>(record: &Record<'a>, names: &[&str]) -> Option<&'a RawValue> {
    let found = names.iter().filter_map(|name| record.get(*name).copied());
    found.into_iter().find(|value| value.get() != "null")
}

fn text(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

fn number(value: &RawValue) -> Option<i64> {
    let quoted = text(value);
    quoted.as_deref().unwrap_or(value.get()).trim().parse().ok()
}

fn seconds(value: &RawValue) -> Option<UnixSeconds> {
    /// A time in seconds never reaches this number: it is the year 5138.
    const MILLISECONDS: u64 = 100_000_000_000;
    if let Some(number) = number(value) {
        let in_millis = number.unsigned_abs() >= MILLISECONDS;
        let seconds = if in_millis {
            number.div_euclid(1_000)
        } else {
            number
        };
        return Some(UnixSeconds::new(seconds));
    }
    // A blank in place of the `T` is a common way to write a time.
    let date = Date::parse(&text(value)?.trim().replacen(' ', "T", 1)).ok()?;
    Some(date.unix_seconds())
}

fn delivery(entry: &RawValue) -> Result<LoggedDelivery, &'static str> {
    let shown = record(entry).ok_or("it is no JSON object")?;
    let is_event = field(&shown, PAYLOAD).is_none() && shown.contains_key("data");
    let payload = match field(&shown, PAYLOAD) {
        Some(payload) => text(payload).map_or_else(|| copy(payload), Bytes::from),
        None if is_event => copy(entry),
        None => return Err("it has no payload"),
    };
    let event = serde_json::from_slice::<&RawValue>(&payload)
        .ok()
        .and_then(record);
    let time = field(&shown, TIME).map(|time| seconds(time).ok_or("its time can't be read"));
    let created = || {
        event
            .as_ref()
            .and_then(|event| seconds(field(event, TIME)?))
    };
    let received_at = match time {
        Some(time) => time?,
        None => created().ok_or("it has no time, and its payload no createdAt")?,
    };
    let no_headers: [(&str, &str); 0] = [];
    let mut delivery = LoggedDelivery::new(received_at, no_headers, payload.clone());
    delivery.unverifiable = true;
    if is_event {
        return Ok(delivery);
    }
    // Unsigned hints, as in the sender's headers: they help to find a delivery whose payload has no id and no type.
    for (header, names) in [
        (hookgate::verify::EVENT_ID, EVENT_ID),
        (hookgate::verify::EVENT_TYPE, EVENT_TYPE),
    ] {
        let hint = field(&shown, names).and_then(text);
        delivery
            .headers
            .extend(hint.map(|hint| (header.to_owned(), hint.into())));
    }
    let status = field(&shown, STATUS).and_then(number);
    if let Some(status) = status.and_then(|status| u16::try_from(status).ok()) {
        let mut answer = LoggedAnswer::new(status, IMPORTED);
        let retries = field(&shown, RETRIES).and_then(number);
        let attempt = retries.and_then(|retries| u32::try_from(retries).ok());
        answer.attempt = attempt.map(|retries| retries.saturating_add(1));
        delivery.answer = Some(answer);
    }
    Ok(delivery)
}

fn copy(value: &RawValue) -> Bytes {
    Bytes::copy_from_slice(value.get().as_bytes())
}
