//! Parts of a body, read without the row: the ids of its row, and the place of the error in a body
//! that is no event.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::deserialize::{error_of, place, track};
use super::event_error::{EventError, EventErrorKind as Kind};
use super::fields::Fields;
use super::ids::{EventId, EventType, Name};
use super::parse::DataSeed;
use super::properties::{PROPERTIES, Properties};
use super::scan;
use super::similar_name::name_similar;
use crate::verify::{SignedBytes, Verified};

/// Returns the id of the data model that a row event names in `data.datamodelId`, unescaped. It is
/// borrowed from the body where it has no escapes, so that no allocation is needed.
///
/// This is one pass over the **whole** body, because a second `data` or `datamodelId` may come
/// last. The pass checks less than [`Event`](super::Event) does: it does not read the rest of the
/// row. Every body that it refuses, `Event` refuses too, with the same error.
///
/// # Errors
/// The body is not a well-formed JSON object; `data` or `data.datamodelId` is missing, or not an
/// object or not a string; a field of the envelope or the id is there twice.
#[cfg_attr(not(feature = "tower"), allow(dead_code))] // only the event router and its answers ask for it
pub(crate) fn model_id<B: SignedBytes>(verified: &Verified<B>) -> Result<Cow<'_, str>, EventError> {
    let text = scan::check(verified.body())?;
    match serde_json::from_str::<Object<Envelope<'_>>>(text) {
        Ok(Object(envelope)) => Ok(envelope.data.0.datamodel_id.0),
        Err(_) => Err(diagnose::<Properties>(text, verified.pinned_workspace())),
    }
}

/// Returns the ids of data model and row, for workers that handle one event of a row at a time.
/// `None` where the body does not name both in readable form: such an event shares its row with no
/// other event.
pub(crate) fn row_of<B: SignedBytes>(
    verified: &Verified<B>,
) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let envelope: Object<RowEnvelope<'_>> = serde_json::from_slice(verified.body()).ok()?;
    let row = envelope.0.data.0;
    Some((row.datamodel_id.0, row.row_id.0))
}

/// Returns the reason why this text is no `Event<R>`, with its path and position. `pinned` is the
/// workspace that the keys are pinned to.
///
/// The parser only knows that there is an error. Here the body is read in two phases: the envelope
/// with `data` as raw text, then `data` alone. So path and position are right for any order of
/// `type` and `data`.
#[cold]
pub(super) fn diagnose<R: DeserializeOwned>(text: &str, pinned: Option<&str>) -> EventError {
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return error_of(&error, String::new()).at_position(place(text, text, &error));
    }
    if !text.trim_start().starts_with('{') {
        return EventError::new(Kind::NotAnObject);
    }
    let outline = match track(text, PhantomData::<Outline<'_>>, String::new()) {
        Ok(outline) => outline,
        Err((error, cause)) => return error.at_position(place(text, text, &cause)),
    };
    if pinned.is_some_and(|pinned| *outline.workspace_id.0 != *pinned) {
        return EventError::new(Kind::WorkspaceMismatch);
    }
    let Ok(event_type) = EventType::parse(&outline.event_type.0) else {
        return EventError::new(Kind::Unusable).at_path("type");
    };
    if EventId::parse(&outline.id.0).is_err() {
        return EventError::new(Kind::Unusable).at_path("id");
    }
    let Some(data) = outline.data.map(RawValue::get) else {
        return EventError::new(Kind::Missing).at_path("data");
    };
    let error = match track(data, DataSeed::<R>::new(&event_type), "data".into()) {
        Err((error, cause)) => error.at_position(place(text, data, &cause)),
        // Only a type that gives different results for the same text gets here.
        Ok(_) => EventError::new(Kind::TypeMismatch).at_path("data"),
    };
    let fields = serde_json::from_str::<Fields>(data).unwrap_or_default();
    let text = |name| fields.find(name)?.to::<String>().ok();
    let row: Option<Fields> = fields.find("properties").and_then(|row| row.to().ok());
    let error = error.with_model(text("datamodelId").map(Into::into), text("datamodelName"));
    name_similar(error, PROPERTIES, &row.unwrap_or_default())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outline<'a> {
    #[serde(borrow)]
    id: Name<'a>,
    #[serde(borrow, rename = "type")]
    event_type: Name<'a>,
    #[serde(rename = "createdAt")]
    _created_at: Name<'a>,
    #[serde(borrow)]
    workspace_id: Name<'a>,
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<&'a RawValue>,
}

/// Reads a raw value, also `null`: only an absent value is `None`.
fn present<'de, D: Deserializer<'de>>(json: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(json).map(Some)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Model<'a> {
    #[serde(borrow)]
    datamodel_id: Name<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    #[serde(borrow)]
    datamodel_id: Name<'a>,
    #[serde(borrow)]
    row_id: Name<'a>,
}

/// The envelope. Its other fields are named here, so that none of them may be repeated.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    data: Object<Model<'a>>,
    #[serde(rename = "id")]
    _id: Option<IgnoredAny>,
    #[serde(rename = "type")]
    _type: Option<IgnoredAny>,
    #[serde(rename = "createdAt")]
    _created_at: Option<IgnoredAny>,
    #[serde(rename = "workspaceId")]
    _workspace_id: Option<IgnoredAny>,
}

/// The data alone: a body that has another field twice names its row all the same.
#[derive(Deserialize)]
struct RowEnvelope<'a> {
    #[serde(borrow)]
    data: Object<Row<'a>>,
}

/// An object. A derived type itself can be read from an array of its fields as well.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_map(ObjectVisitor(PhantomData)).map(Self)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn read(text: &str) -> Result<Cow<'_, str>, serde_json::Error> {
        let Object(envelope) = serde_json::from_str::<Object<Envelope<'_>>>(text)?;
        Ok(envelope.data.0.datamodel_id.0)
    }
    use crate::event::event_error::EventErrorKind as Kind;

    fn event(data: &str) -> String {
        format!(
            r#"{{"id":"evt_1","type":"row.deleted","createdAt":"","workspaceId":"ws_1","data":{data}}}"#
        )
    }

    #[test]
    fn a_row_is_named_by_the_data_alone() {
        use crate::{
            Secret, Verifier,
            clock::UnixSeconds,
            verify::{DeliveryHeaders, Signature, Timestamp},
        };

        // `Event` refuses a body with a repeated field. A handler of `Delivery` gets it, one at a
        // time for its row.
        let body = r#"{"id":"evt_1","type":"row.updated","createdAt":"","createdAt":"","data":{"datamodelId":"dm","rowId":"r"}}"#;
        let secret = Secret::new("whsec_made_up_for_this_test").unwrap();
        let now = UnixSeconds::new(1_763_690_000);
        let timestamp = Timestamp::at(now).unwrap();
        let signature = Signature::sign(&secret, &timestamp, body.as_bytes()).to_header_value();
        let pairs = [
            ("x-service-signature", signature.as_str()),
            ("x-service-timestamp", timestamp.as_str()),
        ];
        let headers = DeliveryHeaders::from_pairs(pairs).unwrap();
        let verified = Verifier::new(secret).verify(&headers, body, now).unwrap();
        let row = row_of(&verified);
        assert_eq!(row, Some((Cow::Borrowed("dm"), Cow::Borrowed("r"))));
    }

    #[test]
    fn the_model_is_found_at_any_place_and_unescaped() {
        for text in [
            event(r#"{"datamodelId":"dm_1","rowId":"row_1"}"#),
            event(r#"{"properties":{"datamodelId":"dm_2"},"datamodelId":"dm_1"}"#),
            event(r#"{"datamodelId":"d\u006d_\u0031"}"#),
            event(r#"{"d\u0061tamodelId":"dm_1"}"#),
            r#"{"data":{"datamodelId":"dm_1"},"type":"row.deleted","id":"evt_1"}"#.into(),
            r#" {"datamodelId":"dm_2","data":{"datamodelId":"dm_1"}} "#.into(),
        ] {
            assert_eq!(read(&text).unwrap(), "dm_1", "{text}");
        }
        let text = event(r#"{"datamodelId":"dm_1"}"#);
        assert!(matches!(read(&text), Ok(Cow::Borrowed("dm_1"))));
    }

    #[test]
    fn a_refused_row_has_the_message_of_a_refused_event() {
        let fault = |text: &str| {
            assert!(read(text).is_err(), "{text}");
            let error = diagnose::<Properties>(text, None);
            (error.kind(), error.path().map(str::to_owned))
        };
        for (text, kind, path) in [
            (
                event(r#"{"rowId":"row_1"}"#),
                Kind::Missing,
                Some("data.datamodelId"),
            ),
            (
                event(r#"{"datamodelId":7}"#),
                Kind::TypeMismatch,
                Some("data.datamodelId"),
            ),
            (
                event(r#"{"datamodelId":null}"#),
                Kind::TypeMismatch,
                Some("data.datamodelId"),
            ),
            (
                event(r#"{"datamodelId":"dm_1","datamodelId":"dm_1"}"#),
                Kind::RepeatedKey,
                Some("data.datamodelId"),
            ),
            (event("[]"), Kind::TypeMismatch, Some("data")),
            (event(r#"["dm_1"]"#), Kind::TypeMismatch, Some("data")),
            (
                event(r#"{"datamodelId":"dm_1"},"data":{}"#),
                Kind::RepeatedKey,
                Some("data"),
            ),
            (
                event(r#"{"datamodelId":"dm_1"},"type":"a""#),
                Kind::RepeatedKey,
                Some("type"),
            ),
            (
                event(r#"{"datamodelId":"dm_1"},"id":"a""#),
                Kind::RepeatedKey,
                Some("id"),
            ),
            (
                event(r#"{"datamodelId":"dm_1"},"createdAt":"""#),
                Kind::RepeatedKey,
                Some("createdAt"),
            ),
            (
                event(r#"{"datamodelId":"dm_1"},"workspaceId":"""#),
                Kind::RepeatedKey,
                Some("workspaceId"),
            ),
            (event(r#"{"datamodelId":"dm_1""#), Kind::Syntax, None),
            (event(r#"{"datamodelId":"dm_1"}"#) + "}", Kind::Syntax, None),
            ("[]".into(), Kind::NotAnObject, None),
        ] {
            assert_eq!(fault(&text), (kind, path.map(str::to_owned)), "{text}");
        }
    }

    /// The whole event and the model alone give the same result, for every edit of one byte in a
    /// body.
    #[test]
    fn agrees_with_the_event_on_every_edit_of_one_byte() {
        let text = event(
            r#"{"datamodelId":"dm_1","datamodelName":"","rowId":"r","deletedBy":{"id":"","name":""}}"#,
        );
        let mut read_alike = 0;
        for at in 0..text.len() {
            for byte in br#"{}[],:\"0 datx"# {
                let mut replaced = text.clone().into_bytes();
                replaced[at] = *byte;
                let mut inserted = text.clone().into_bytes();
                inserted.insert(at, *byte);
                for edited in [replaced, inserted] {
                    let edited = String::from_utf8(edited).unwrap();
                    let whole = parse::event::<Properties>(&edited);
                    match (read(&edited), whole) {
                        (Ok(model), Ok(whole)) => {
                            if let Some(id) = whole.datamodel_id() {
                                assert_eq!(model, id.as_str(), "{edited}");
                                read_alike += 1;
                            }
                        }
                        // This pass requires less than the event does, and never more.
                        (_, Err(_)) => {}
                        // The `data` of another type need not name a model, and the model is not
                        // read there.
                        (Err(error), Ok(whole)) => {
                            assert!(whole.datamodel_id().is_none(), "{edited}: {error}");
                        }
                    }
                }
            }
        }
        assert!(read_alike > 100, "{read_alike}");
    }
}
