//! Reads a text once, directly into the variant of its type.
//!
//! The form in which the service writes an event is read first, see [`in_order`]; serde_json reads
//! any other. Where `type` precedes `data`, `data` is read as its final type at once. Where `data`
//! comes first, it is kept as raw text and read at the end. An enum that serde derives would buffer
//! every body instead, and lose positions and the text of numbers.
//!
//! No public type here can be deserialized: an [`Event`] can only come from verified bytes. The
//! content of an error does not matter here: [`diagnose`](super::outline::diagnose) reads the text
//! again to find its place.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::content::{Actor, Event, EventData, Other, RowCreated, RowDeleted, RowUpdated};
use super::date::DateText;
use super::fields::Fields;
use super::ids::{ActorId, EventId, EventType, Name};
use super::json::Json;

/// Reads an event from a text. The text must have nothing after the event.
pub(super) fn event<'t, R: Deserialize<'t>>(text: &'t str) -> Result<Event<R>, serde_json::Error> {
    in_order(text).unwrap_or_else(|| in_any_order(text))
}

/// Reads an event with its fields in any order, with serde_json alone.
fn in_any_order<'t, R: Deserialize<'t>>(text: &'t str) -> Result<Event<R>, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_str(text);
    let event = json.deserialize_map(EnvelopeVisitor(PhantomData))?;
    json.end()?;
    Ok(event)
}

/// Reads a field into its slot, unless the slot is full. A large value is written directly to its
/// place: a function that takes the value would copy it.
macro_rules! once {
    ($slot:ident, $name:expr, $read:expr) => {{
        if $slot.is_some() {
            return Err(A::Error::duplicate_field($name));
        }
        $slot = Some($read);
    }};
}

struct EnvelopeVisitor<R>(PhantomData<R>);

impl<'de, R: Deserialize<'de>> Visitor<'de> for EnvelopeVisitor<R> {
    type Value = Event<R>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut id, mut event_type, mut created_at, mut workspace_id) = (None, None, None, None);
        let (mut raw, mut data, mut extra) = (None, None, Fields::default());
        while let Some(Name(name)) = map.next_key()? {
            match &*name {
                "id" => once!(id, "id", {
                    let read = EventId::parse(&map.next_value::<Name<'_>>()?.0);
                    read.map_err(A::Error::custom)?
                }),
                "type" => once!(event_type, "type", {
                    let read = EventType::parse(&map.next_value::<Name<'_>>()?.0);
                    read.map_err(A::Error::custom)?
                }),
                "createdAt" => once!(created_at, "createdAt", map.next_value()?),
                "workspaceId" => once!(workspace_id, "workspaceId", map.next_value()?),
                "data" => match &event_type {
                    _ if raw.is_some() => return Err(A::Error::duplicate_field("data")),
                    Some(known) => {
                        once!(data, "data", map.next_value_seed(DataSeed::new(known))?);
                    }
                    None => raw = Some(map.next_value::<&RawValue>()?),
                },
                _ => extra.push(name, map.next_value()?),
            }
        }
        let event_type = required(event_type, "type")?;
        if let Some(raw) = raw {
            let mut json = serde_json::Deserializer::from_str(raw.get());
            let read = DataSeed::new(&event_type).deserialize(&mut json);
            data = Some(read.map_err(A::Error::custom)?);
        }
        let data = match data {
            None if !event_type.names_datamodel() => EventData::Other(Other {
                event_type,
                data: Json::null(),
                data_is_absent: true,
            }),
            data => required(data, "data")?,
        };
        Ok(Event {
            id: required(id, "id")?,
            created_at: required(created_at, "createdAt")?,
            workspace_id: required(workspace_id, "workspaceId")?,
            data,
            extra,
        })
    }
}

#[inline]
fn required<T, E: Error>(slot: Option<T>, name: &'static str) -> Result<T, E> {
    slot.ok_or_else(|| E::missing_field(name))
}

/// Reads `data` as the payload of this type of event.
pub(super) struct DataSeed<'t, R>(&'t EventType, PhantomData<R>);

impl<'t, R> DataSeed<'t, R> {
    pub(super) fn new(event_type: &'t EventType) -> Self {
        Self(event_type, PhantomData)
    }
}

impl<'de, R: Deserialize<'de>> DeserializeSeed<'de> for DataSeed<'_, R> {
    type Value = EventData<R>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        Ok(match self.0.as_str() {
            "row.created" => EventData::RowCreated(json.deserialize_map(RowVisitor {
                content_key: Some("properties"),
                actor_key: "createdBy",
                content: None,
            })?),
            "row.updated" => EventData::RowUpdated(RowUpdated::from_created(
                json.deserialize_map(RowVisitor {
                    content_key: Some("changes"),
                    actor_key: "updatedBy",
                    content: None,
                })?,
            )),
            "row.deleted" => {
                let row = json.deserialize_map(RowVisitor {
                    content_key: None,
                    actor_key: "deletedBy",
                    content: Some(()),
                })?;
                EventData::RowDeleted(RowDeleted {
                    datamodel_id: row.datamodel_id,
                    datamodel_name: row.datamodel_name,
                    row_id: row.row_id,
                    deleted_by: row.created_by,
                    extra: row.extra,
                    actor_is_null: row.actor_is_null,
                })
            }
            _ => EventData::Other(Other {
                event_type: self.0.clone(),
                data: Deserialize::deserialize(json)?,
                data_is_absent: false,
            }),
        })
    }
}

/// Reads any of the three payloads as the most common one, `RowCreated`, directly into its place.
/// The content and the actor of the other two are then moved from its `properties` and its
/// `created_by`.
struct RowVisitor<C> {
    content_key: Option<&'static str>,
    actor_key: &'static str,
    /// The content of a row that has no key for it.
    content: Option<C>,
}

impl<'de, C: Deserialize<'de>> Visitor<'de> for RowVisitor<C> {
    type Value = RowCreated<C>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Self {
            content_key,
            actor_key,
            mut content,
        } = self;
        let (mut datamodel_id, mut datamodel_name, mut row_id) = (None, None, None);
        let (mut actor, mut extra) = (None, Fields::default());
        while let Some(Name(name)) = map.next_key()? {
            match &*name {
                "datamodelId" => once!(datamodel_id, "datamodelId", map.next_value()?),
                "datamodelName" => once!(datamodel_name, "datamodelName", map.next_value()?),
                "rowId" => once!(row_id, "rowId", map.next_value()?),
                key if key == actor_key => {
                    once!(actor, actor_key, map.next_value::<Option<ReadActor>>()?);
                }
                key => match content_key {
                    Some(known) if key == known => {
                        once!(content, known, map.next_value()?);
                    }
                    _ => extra.push(name, map.next_value()?),
                },
            }
        }
        Ok(RowCreated {
            datamodel_id: required(datamodel_id, "datamodelId")?,
            datamodel_name: required(datamodel_name, "datamodelName")?,
            row_id: required(row_id, "rowId")?,
            properties: required(content, content_key.unwrap_or_default())?,
            actor_is_null: matches!(actor, Some(None)),
            created_by: actor.flatten().map(|ReadActor(actor)| actor),
            extra,
        })
    }
}

struct ReadActor(Actor);

impl<'de> Deserialize<'de> for ReadActor {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_map(ActorVisitor).map(Self)
    }
}

struct ActorVisitor;

impl<'de> Visitor<'de> for ActorVisitor {
    type Value = Actor;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Actor, A::Error> {
        let (mut id, mut name, mut email) = (None::<ActorId>, None, None::<Option<String>>);
        let mut extra = Fields::default();
        while let Some(Name(key)) = map.next_key()? {
            match &*key {
                "id" => once!(id, "id", map.next_value()?),
                "name" => once!(name, "name", map.next_value()?),
                "email" => once!(email, "email", map.next_value()?),
                _ => extra.push(key, map.next_value()?),
            }
        }
        Ok(Actor {
            id: required(id, "id")?,
            name: required(name, "name")?,
            email_is_null: email == Some(None),
            email: email.flatten(),
            extra,
        })
    }
}

/// Reads an event in the form in which the service writes it: the fields in the order of its
/// samples, without white space, and without escapes in the texts that are read here. serde_json
/// reads the row's properties or changes alone. Without this function a small typed event takes
/// 1.46 times as long (bench `parse`).
///
/// Returns `None` for any other form, which [`in_any_order`] reads. An error means that the row
/// does not fit its type: the event need not be read again.
fn in_order<'t, R: Deserialize<'t>>(text: &'t str) -> Option<Result<Event<R>, serde_json::Error>> {
    let mut rest = Rest(text);
    let id = EventId::parse(rest.text_after(r#"{"id":""#)?).ok()?;
    let event_type = rest.text_after(r#","type":""#)?;
    let created_at = DateText::new(rest.text_after(r#","createdAt":""#)?);
    let workspace_id = rest.text_after(r#","workspaceId":""#)?.into();
    let data = match event_type {
        "row.created" => rest
            .row(r#","properties":"#, r#","createdBy":{"id":""#)?
            .map(EventData::RowCreated),
        "row.updated" => rest
            .row(r#","changes":"#, r#","updatedBy":{"id":""#)?
            .map(|row| EventData::RowUpdated(RowUpdated::from_created(row))),
        _ => return None,
    };
    let event = |data| Event {
        id,
        created_at,
        workspace_id,
        data,
        extra: Fields::default(),
    };
    match data {
        Ok(data) => (rest.0 == "}").then(|| Ok(event(data))),
        Err(error) => Some(Err(error)),
    }
}

/// The part of the body that is not read yet.
struct Rest<'t>(&'t str);

impl<'t> Rest<'t> {
    fn skip(&mut self, expected: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    /// Reads a text that begins after `expected`, which ends with the opening quotation mark.
    fn text_after(&mut self, expected: &str) -> Option<&'t str> {
        self.skip(expected)?;
        let (text, rest) = self.0.split_at_checked(plain_length(self.0.as_bytes()))?;
        self.0 = rest.strip_prefix('"')?;
        Some(text)
    }

    /// Reads the data of an event. `content` is the text before the properties or changes, and
    /// `actor` that before the actor's id.
    fn row<C: Deserialize<'t>>(
        &mut self,
        content: &str,
        actor: &str,
    ) -> Option<Result<RowCreated<C>, serde_json::Error>> {
        let datamodel_id = self.text_after(r#","data":{"datamodelId":""#)?.into();
        let datamodel_name = self.text_after(r#","datamodelName":""#)?.into();
        let row_id = self.text_after(r#","rowId":""#)?.into();
        self.skip(content)?;
        let mut values = serde_json::Deserializer::from_str(self.0).into_iter();
        let properties = match values.next()? {
            Ok(properties) => properties,
            Err(error) => return Some(Err(error)),
        };
        self.0 = self.0.get(values.byte_offset()..)?;
        let id = self.text_after(actor)?.into();
        let name = self.text_after(r#","name":""#)?.into();
        let email = self.text_after(r#","email":""#).map(Into::into);
        self.skip("}}")?;
        Some(Ok(RowCreated {
            datamodel_id,
            datamodel_name,
            row_id,
            properties,
            created_by: Some(Actor {
                id,
                name,
                email,
                extra: Fields::default(),
                email_is_null: false,
            }),
            extra: Fields::default(),
            actor_is_null: false,
        }))
    }
}

/// Returns the number of bytes before the first quotation mark, backslash or control character.
pub(super) fn plain_length(text: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    // The high bit of each byte that is zero. A borrow can set it in a byte above such a byte, and
    // the lowest one counts.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word;
    let is = |word: u64, byte: u8| zeros(word ^ (ONES * u64::from(byte)));
    let (words, rest) = text.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let found = (control | is(word, b'"') | is(word, b'\\')) & HIGH;
        if found != 0 {
            return at * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let ends = |byte: &u8| matches!(byte, ..0x20 | b'"' | b'\\');
    text.len() - rest.len() + rest.iter().position(ends).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::de::DeserializeOwned;

    use super::super::properties::Properties;
    use super::*;

    const CREATED: &str = r#"{"id":"e","type":"row.created","createdAt":"","workspaceId":"w","data":{"datamodelId":"d","datamodelName":"é","rowId":"r","properties":{"a":1},"createdBy":{"id":"u","name":"n","email":"m"}}}"#;
    const UPDATED: &str = r#"{"id":"e","type":"row.updated","createdAt":"","workspaceId":"w","data":{"datamodelId":"d","datamodelName":"n","rowId":"r","changes":{"a":{"before":1,"after":[]}},"updatedBy":{"id":"u","name":"n"}}}"#;

    fn shown<R: serde::Serialize>(event: Result<Event<R>, serde_json::Error>) -> Option<String> {
        event
            .ok()
            .map(|event| serde_json::to_string(&event).unwrap())
    }

    fn compare<R: serde::Serialize + DeserializeOwned>(text: &str) -> bool {
        let in_order = in_order::<R>(text);
        let is_in_order = in_order.is_some();
        if let Some(read) = in_order {
            let whole = shown(in_any_order::<R>(text));
            assert_eq!(shown(read), whole, "{text}");
        }
        is_in_order
    }

    #[test]
    fn the_services_form_is_read_as_any_other_on_every_edit_of_one_byte() {
        let mut count = 0;
        for body in [CREATED, UPDATED] {
            assert!(in_order::<Properties>(body).unwrap().is_ok());
            for at in 0..=body.len() {
                for byte in 0..=u8::MAX {
                    let mut edits = vec![body.as_bytes().to_vec(); 3];
                    edits[0].insert(at, byte);
                    if at < body.len() {
                        edits[1][at] = byte;
                        edits[2].remove(at);
                    }
                    for text in edits
                        .iter()
                        .filter_map(|edited| std::str::from_utf8(edited).ok())
                    {
                        count += usize::from(compare::<Properties>(text));
                        compare::<BTreeMap<String, u8>>(text);
                    }
                }
            }
        }
        assert!(count > 5_000, "{count}");
    }

    #[test]
    fn another_form_is_left_to_the_parser() {
        for (from, to) in [
            (r#","createdBy":{"id":"u","name":"n","email":"m"}"#, ""),
            (r#""email":"m""#, r#""email":null"#),
            (r#""email":"m""#, r#""email":"m","extra":1"#),
            (r#""name":"n","email":"m""#, r#""email":"m","name":"n""#),
            ("row.created", "page.created"),
            (r#""id":"e""#, r#""id":"\u0065""#),
            ("}}}", "}} }"),
            ("}}}", "}},\"extra\":1}"),
            ("}}}", "}}}}"),
        ] {
            let text = CREATED.replace(from, to);
            assert!(
                text != CREATED && in_order::<Properties>(&text).is_none(),
                "{text}"
            );
        }
    }

    #[test]
    fn a_row_that_does_not_fit_is_an_error_and_not_read_again() {
        assert!(
            in_order::<BTreeMap<String, bool>>(CREATED)
                .unwrap()
                .is_err()
        );
    }

    #[test]
    fn the_end_of_a_plain_text_is_found_at_every_place() {
        for length in 0..40 {
            let plain: Vec<u8> = (0..length)
                .map(|at| [b' ', 0x7f, 0x80, 0xff][at % 4])
                .collect();
            assert_eq!(plain_length(&plain), length);
            for at in 0..length {
                for byte in 0..=u8::MAX {
                    let mut text = plain.clone();
                    text[at] = byte;
                    let ends = byte < 0x20 || byte == b'"' || byte == b'\\';
                    assert_eq!(
                        plain_length(&text),
                        if ends { at } else { length },
                        "{byte}"
                    );
                }
            }
        }
    }
}
