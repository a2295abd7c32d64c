//! The data model of a row, read without the rest of the row.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::error::EventError;
use super::json::Name;
use super::parse::required;
use super::properties::Properties;
use super::{diagnose, scan};
use crate::verify::{SignedBytes, Verified};

/// Returns the id of the data model that a row event names in `data.datamodelId`, unescaped. It is borrowed from the body
/// where it has no escapes, so that no allocation is needed.
///
/// This is one pass over the **whole** body, because a second `data` or `datamodelId` may come last. The pass checks less
/// than [`Event`](super::Event) does: it does not read the rest of the row. Every body that it refuses, `Event` refuses too,
/// with the same error.
///
/// # Errors
/// The body is no well-formed JSON object; `data` or `data.datamodelId` is missing, or is no object or no string; a field of
/// the envelope or the id is there twice.
pub(crate) fn model_id<B: SignedBytes>(verified: &Verified<B>) -> Result<Cow<'_, str>, EventError> {
    let text = scan::check(verified.body())?;
    read(text)
        .map_err(|_| diagnose::diagnose::<Properties>(text, verified.proof().pinned_workspace()))
}

fn read(text: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_str(text);
    let id = json.deserialize_map(EnvelopeVisitor)?;
    json.end()?;
    Ok(id)
}

struct EnvelopeVisitor;

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cow<'de, str>, A::Error> {
        let (mut id, mut event_type, mut created_at, mut workspace_id) = (None, None, None, None);
        let mut model = None;
        while let Some(Name(name)) = map.next_key()? {
            match &*name {
                "data" => set_once(&mut model, "data", map.next_value_seed(DataSeed)?)?,
                "id" => set_once(&mut id, "id", map.next_value::<IgnoredAny>()?)?,
                "type" => set_once(&mut event_type, "type", map.next_value::<IgnoredAny>()?)?,
                "createdAt" => {
                    set_once(
                        &mut created_at,
                        "createdAt",
                        map.next_value::<IgnoredAny>()?,
                    )?;
                }
                "workspaceId" => {
                    set_once(
                        &mut workspace_id,
                        "workspaceId",
                        map.next_value::<IgnoredAny>()?,
                    )?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        required(model, "data")
    }
}

struct DataSeed;

impl<'de> DeserializeSeed<'de> for DataSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Cow<'de, str>, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for DataSeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cow<'de, str>, A::Error> {
        let mut model = None;
        while let Some(Name(name)) = map.next_key()? {
            if name == "datamodelId" {
                set_once(&mut model, "datamodelId", map.next_value::<Name<'_>>()?.0)?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        required(model, "datamodelId")
    }
}

fn set_once<T, E: Error>(slot: &mut Option<T>, name: &'static str, value: T) -> Result<(), E> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use crate::event::error::EventErrorKind as Kind;

    fn event(data: &str) -> String {
        format!(
            r#"{{"id":"evt_1","type":"row.deleted","createdAt":"","workspaceId":"ws_1","data":{data}}}"#
        )
    }

    #[test]
    fn is_found_wherever_it_stands_and_unescaped() {
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
    fn what_is_refused_is_refused_in_the_words_of_an_event() {
        let fault = |text: &str| {
            assert!(read(text).is_err(), "{text}");
            let error = diagnose::diagnose::<Properties>(text, None);
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
                Kind::Duplicate,
                Some("data.datamodelId"),
            ),
            (event("[]"), Kind::TypeMismatch, Some("data")),
            (
                event(r#"{"datamodelId":"dm_1"},"data":{}"#),
                Kind::Duplicate,
                Some("data"),
            ),
            (
                event(r#"{"datamodelId":"dm_1"},"type":"a""#),
                Kind::Duplicate,
                Some("type"),
            ),
            (
                event(r#"{"datamodelId":"dm_1"},"id":"a""#),
                Kind::Duplicate,
                Some("id"),
            ),
            (
                event(r#"{"datamodelId":"dm_1"},"createdAt":"""#),
                Kind::Duplicate,
                Some("createdAt"),
            ),
            (
                event(r#"{"datamodelId":"dm_1"},"workspaceId":"""#),
                Kind::Duplicate,
                Some("workspaceId"),
            ),
            (event(r#"{"datamodelId":"dm_1""#), Kind::Syntax, None),
            (event(r#"{"datamodelId":"dm_1"}"#) + "}", Kind::Syntax, None),
            ("[]".into(), Kind::NotAnObject, None),
        ] {
            assert_eq!(fault(&text), (kind, path.map(str::to_owned)), "{text}");
        }
    }

    /// The whole event and the model alone give the same result, for every edit of one byte in a body.
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
                        // The `data` of another type need not name a model, and the model is not read there.
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
