//! Makes events and deliveries from JSON, for unit tests of the code that receives them.

use bytes::Bytes;
use hookgate::{
    Delivery, Event, Receiver, Refusal, Verified, Verifier,
    clock::{ManualClock, UnixSeconds},
    event::{EventError, EventHead},
    receiver::RequestHead,
    verify::DeliveryHeaders,
};
use serde::de::DeserializeOwned;

use crate::signer::{Signer, made_up};

/// The time at which these deliveries were signed and received: 2025-11-21T01:53:20Z.
const MOMENT: UnixSeconds = UnixSeconds::new(1_763_690_000);

/// Returns a typed event, made by the real verifier.
///
/// A handler takes an [`Event`], and only verified bytes become an event. This function signs the
/// JSON with a made-up secret and lets the real verifier check it, so that the handler's unit test
/// needs no server. The result is the same as for a real request, errors included.
///
/// # Errors
/// The reason for which a handler's [`Event<R>`] argument would be refused: no well-formed event,
/// or one that does not fit `R`.
///
/// ```
/// use hookgate::{Event, EventData};
/// use hookgate_testing::event;
///
/// #[derive(serde::Deserialize)]
/// struct Order {
///     #[serde(rename = "Total")]
///     total: f64,
/// }
///
/// /// What is tested.
/// fn is_large(event: &Event<Order>) -> bool {
///     matches!(&event.data, EventData::RowCreated(row) if row.properties.total > 1_000.0)
/// }
///
/// let event = event::<Order>(
///     r#"{"id":"evt_1","type":"row.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1",
///         "data":{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","properties":{"Total":1250},
///         "createdBy":{"id":"usr_1","name":"Bo","email":"bo@example.com"}}}"#,
/// )?;
/// assert!(is_large(&event));
/// # Ok::<(), hookgate::event::EventError>(())
/// ```
///
/// Where the JSON is not an event, the test gets the same error as the operator would:
///
/// ```
/// use hookgate::event::EventErrorKind;
/// use hookgate_testing::event;
///
/// let error = event::<hookgate::Properties>(r#"{"id":"evt_1"}"#).unwrap_err();
/// assert_eq!(error.kind(), EventErrorKind::Missing);
/// ```
pub fn event<R: DeserializeOwned>(json: impl AsRef<[u8]>) -> Result<Event<R>, EventError> {
    Event::from_verified(&verified(json.as_ref()))
}

/// Returns a recognised delivery, made by the real verifier, for code that takes a [`Delivery`] or
/// its raw bytes.
///
/// # Errors
/// The reason for which the layer would answer 400: no usable id and type at the head of a JSON
/// object.
///
/// ```
/// use hookgate_testing::delivery;
///
/// let delivery = delivery(r#"{"id":"evt_1","type":"page.created"}"#)?;
/// assert_eq!((delivery.event_id(), delivery.event_type()), ("evt_1", "page.created"));
/// assert_eq!(delivery.verified().scope(), "default");
/// # Ok::<(), hookgate::event::EventError>(())
/// ```
pub fn delivery(json: impl AsRef<[u8]>) -> Result<Delivery, EventError> {
    let json = json.as_ref();
    EventHead::from_verified(&verified(json))?;
    let (signer, secret) = made_up();
    let receiver = Receiver::builder()
        .secret(secret)
        .without_deduplication()
        .clock(ManualClock::at(MOMENT))
        .max_body(json.len().max(1))
        .body_budget(2 * json.len().max(1))
        .build();
    let receiver = receiver.ok();
    let delivery = receiver.and_then(|it| delivery_by(&it, &signer.at(MOMENT), json).ok());
    #[allow(clippy::expect_used)]
    // the settings are valid, and signature and head were checked above
    Ok(delivery.expect("a receiver recognises what the signer signs"))
}

/// Signs the body, and has the receiver verify it.
pub(crate) fn delivery_by(
    receiver: &Receiver,
    signer: &Signer,
    body: &[u8],
) -> Result<Delivery, Refusal> {
    let headers = signer.headers(body);
    let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
    let head = RequestHead::new("POST", headers);
    let mut received = receiver.check_head(&head)?;
    received.push(Bytes::copy_from_slice(body))?;
    receiver.verify(received, &head)
}

fn verified(json: &[u8]) -> Verified {
    let (signer, secret) = made_up();
    let headers = signer.at(MOMENT).headers(json);
    #[allow(clippy::expect_used)]
    // signed above with the key and for the time with which the verifier checks it
    DeliveryHeaders::from_pairs(headers.iter().map(|(name, value)| (*name, value.as_str())))
        .ok()
        .and_then(|headers| {
            let body = Bytes::copy_from_slice(json);
            Verifier::new(secret).verify(&headers, body, MOMENT).ok()
        })
        .expect("the signer signs what the verifier takes")
}
