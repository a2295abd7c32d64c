//! The fast pass: reads the text once, directly into the variant.
//!
//! In the documented order `type` precedes `data`, so `data` is read as its final type at once. Where `data` comes first, it
//! is kept as raw text and read at the end. An enum that serde derives would buffer every body instead, and lose positions
//! and the text of numbers.
//!
//! No public type here can be deserialized: an [`Event`] can only come from verified bytes. The content of the errors does not
//! matter here: [`again`](super::again) finds the error again.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::content::{Event, EventData, Other};
use super::fields::Fields;
use super::ids::{ActorId, EventId, EventType};
use super::in_order;
use super::json::Json;
use super::row::{Actor, RowCreated, RowDeleted, RowUpdated};
use super::text::Name;

/// Reads an event from a text. The text must have nothing after the event.
pub(super) fn event<'t, R: Deserialize<'t>>(text: &'t str) -> Result<Event<R>, serde_json::Error> {
    in_order::event(text).unwrap_or_else(|| in_any_order(text, PhantomData))
}

/// Reads an event with its fields in any order, with serde_json alone. The seed reads the row's properties.
pub(super) fn in_any_order<'t, S: DeserializeSeed<'t> + Copy>(
    text: &'t str,
    seed: S,
) -> Result<Event<S::Value>, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_str(text);
    let event = json.deserialize_map(EnvelopeVisitor(seed))?;
    json.end()?;
    Ok(event)
}

/// Reads a field into its slot, unless the slot is full. A large value is written directly to its place: a function that
/// takes the value would copy it.
macro_rules! once {
    ($slot:ident, $name:expr, $read:expr) => {{
        if $slot.is_some() {
            return Err(A::Error::duplicate_field($name));
        }
        $slot = Some($read);
    }};
}

struct EnvelopeVisitor<S>(S);

impl<'de, S: DeserializeSeed<'de> + Copy> Visitor<'de> for EnvelopeVisitor<S> {
    type Value = Event<S::Value>;

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
                        once!(data, "data", map.next_value_seed(DataSeed(known, self.0))?);
                    }
                    None => raw = Some(map.next_value::<&RawValue>()?),
                },
                _ => extra.push(name, map.next_value()?),
            }
        }
        let event_type = required(event_type, "type")?;
        if let Some(raw) = raw {
            let mut json = serde_json::Deserializer::from_str(raw.get());
            let read = DataSeed(&event_type, self.0).deserialize(&mut json);
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
pub(super) struct DataSeed<'t, S>(pub(super) &'t EventType, pub(super) S);

impl<'de, S: DeserializeSeed<'de> + Copy> DeserializeSeed<'de> for DataSeed<'_, S> {
    type Value = EventData<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        Ok(match self.0.as_str() {
            "row.created" => EventData::RowCreated(json.deserialize_map(RowVisitor {
                content_key: Some("properties"),
                actor_key: "createdBy",
                content: None,
                seed: self.1,
            })?),
            "row.updated" => {
                EventData::RowUpdated(RowUpdated::of(json.deserialize_map(RowVisitor {
                    content_key: Some("changes"),
                    actor_key: "updatedBy",
                    content: None,
                    seed: PhantomData,
                })?))
            }
            "row.deleted" => {
                let row = json.deserialize_map(RowVisitor {
                    content_key: None,
                    actor_key: "deletedBy",
                    content: Some(()),
                    seed: PhantomData,
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

/// Reads any of the three payloads as the most common one, `RowCreated`, directly into its place. The content and the actor
/// of the other two are then moved from its `properties` and its `created_by`.
struct RowVisitor<C, S> {
    content_key: Option<&'static str>,
    actor_key: &'static str,
    /// The content of a row that has no key for it.
    content: Option<C>,
    /// Reads the content.
    seed: S,
}

impl<'de, S: DeserializeSeed<'de> + Copy> Visitor<'de> for RowVisitor<S::Value, S> {
    type Value = RowCreated<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Self {
            content_key,
            actor_key,
            mut content,
            seed,
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
                        once!(content, known, map.next_value_seed(seed)?);
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
