//! Typed events: from verified bytes to an [`Event`].
//!
//! ```
//! use hookgate::clock::UnixSeconds;
//! use hookgate::verify::{DeliveryHeaders, Signature, Timestamp};
//! use hookgate::{Event, EventData, Secret, Verifier};
//!
//! /// The rows of one data model.
//! #[derive(serde::Deserialize)]
//! struct Order {
//!     #[serde(rename = "Total")]
//!     total: f64,
//! }
//!
//! // Signed as the service does it. Under the layer, `Event<Order>` is an argument of the handler.
//! let (secret, timestamp) = (Secret::new("whsec_made_up_for_this_example")?, Timestamp::parse(b"1763690000")?);
//! let body = r#"{"id":"evt_1","type":"row.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1",
//!     "data":{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","properties":{"Total":12.50},
//!     "createdBy":{"id":"usr_1","name":"Bo"}}}"#;
//! let signature = Signature::sign(&secret, &timestamp, body.as_bytes()).to_header_value();
//! let pairs = [("x-service-timestamp", "1763690000"), ("x-service-signature", &signature)];
//! let headers = DeliveryHeaders::from_pairs(pairs)?;
//! let verified = Verifier::new(secret).verify(&headers, body, UnixSeconds::new(1_763_690_000))?;
//!
//! let event = Event::<Order>::from_verified(&verified)?;
//! assert!(matches!(event.data, EventData::RowCreated(row) if row.properties.total == 12.5));
//!
//! // Rows of any data model, property by property. A number keeps its digits.
//! let event: Event = Event::from_verified(&verified)?;
//! assert_eq!(serde_json::to_value(&event)?["data"]["rowId"], "row_1");
//! if let EventData::RowCreated(row) = event.data {
//!     assert_eq!(row.properties.required().currency("Total")?.as_str(), "12.50");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An event can only be made from a [`Verified`]: there is no other constructor and no
//! `Deserialize`. So an `Event` in a function's signature says that its bytes were signed. `R` is
//! the type of a new row's properties. A struct of your own fits a subscription that is limited to
//! one data model; the default, [`Properties`](crate::Properties), takes any row.
//!
//! The **whole body** is checked, also the parts that `R` does not use: UTF-8, grammar, repeated
//! fields in the envelope and in `data`, half surrogate pairs, nesting beyond 127 levels, numbers
//! beyond a 64-bit float, keys that serde_json reserves for itself. So the body alone decides
//! whether it is accepted or refused, and not the type `R`. [`EventHead`] reads no further than id
//! and type.
//!
//! Nothing is lost: numbers keep their text, and fields that the specification does not name are
//! kept in `extra` at every level. An `Event<Properties>` that is serialised again is the signed
//! JSON, except for the order of fields. With another `R` that depends on `R`. `page.*`, `member.*`
//! and types unknown to this crate keep `data` as raw JSON.
//!
//! # As a `serde_json::Value`
//!
//! It is safe to read a parsed event as a
//! [`serde_json::Value`](https://docs.rs/serde_json/latest/serde_json/enum.Value.html): a part of
//! it, as a row's type, or as a whole. It is **not** safe to do so with the unchecked bytes of a
//! delivery: do not give [`Delivery::body`](crate::Delivery::body) to
//! `serde_json::from_slice::<Value>`, and do not take axum's `Json<Value>` of a delivery. Keys that
//! begin with `$serde_json::private::` can overflow the stack there, and any user who can name a
//! property can send such a key. Here they are refused as
//! [`ReservedKey`](crate::event::EventErrorKind::ReservedKey), and the answer is 422.
//!
//! No `Debug` of an event or a part of it prints a value: only ids, names of properties and
//! lengths. The `Debug` of a [`Number`] or [`Date`] that you have read does print it. Look-ups by
//! name stay cheap for rows with many properties: reading all of them by name costs no more than an
//! index of the names.

#![expect(
    clippy::disallowed_methods,
    reason = "JSON is parsed here, after verification"
)]

pub(crate) mod content;
mod date;
#[cfg(any(feature = "chrono", feature = "jiff", feature = "time"))]
mod date_as;
mod deserialize;
mod event_error;
mod fields;
pub(crate) mod head;
mod ids;
mod json;
mod outline;
mod parse;
pub(crate) mod properties;
pub(crate) mod scan;
mod signed;
mod similar_name;
mod value;

pub(crate) use content::Event;
pub use content::{Actor, Other};
pub use date::{Date, DateText};
#[cfg(any(feature = "chrono", feature = "jiff", feature = "time"))]
pub use date_as::DateAs;
pub use event_error::{EventError, EventErrorKind};
pub use fields::Fields;
pub use head::EventHead;
pub(crate) use head::created_at;
pub use ids::{ActorId, DataModelId, EventId, EventType, RowId, WorkspaceId};
pub use json::{Json, Number};
pub(crate) use outline::model_id;
pub(crate) use outline::row_of;
pub use properties::{Change, Changes, Required};
pub use signed::Signed;
pub use value::{Field, File, Value, or_default};

use serde::de::DeserializeOwned;

use crate::scheme::Scheme;
use crate::verify::{SignedBytes, Verified};

impl<R: DeserializeOwned> Event<R> {
    /// Reads an event from a body that was verified as authentic.
    ///
    /// # Errors
    /// See [`EventErrorKind`]. `WorkspaceMismatch` means that the delivery is not authentic for
    /// these keys. All others mean that the body is not a well-formed event or does not fit `R`.
    /// The place of the mismatch is in [`path()`](EventError::path), and the row's data model in
    /// [`model()`](EventError::model).
    pub fn from_verified<B: SignedBytes>(verified: &Verified<B>) -> Result<Self, EventError> {
        if !verified.scheme().is_some_and(Scheme::is_workspace) {
            return Err(EventError::new(EventErrorKind::OtherScheme));
        }
        let pinned = verified.pinned_workspace();
        let text = scan::check(verified.body())?;
        let event = parse::event(text).map_err(|_| outline::diagnose::<R>(text, pinned))?;
        match pinned {
            Some(pinned) if event.workspace_id != *pinned => {
                Err(EventError::new(EventErrorKind::WorkspaceMismatch))
            }
            _ => Ok(event),
        }
    }
}
