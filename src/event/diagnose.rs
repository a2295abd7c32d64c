//! Finds the error in a body that did not parse, in a second, slower pass.
//!
//! The fast pass only knows that an error exists. This pass reads the body again, in two phases: the envelope with `data` as
//! raw text, then `data` alone. So the path and the position are right for any order of `type` and `data`. Messages are made
//! from those of serde with a whitelist, see [`Diagnosis`].

use std::borrow::Cow;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::deserialize::{Diagnosis, Tracked, place, track};
use super::error::{EventError, EventErrorKind as Kind};
use super::ids::{DataModelId, EventId, EventType};
use super::integral::WithIntegers;
use super::parse::Wire;
use super::row::{RowCreated, RowDeleted, RowUpdated};
use super::text::Name;

/// Returns the reason why this text is no `Event<R>`. `pinned` is the workspace that the keys are pinned to.
pub(super) fn diagnose<R: DeserializeOwned>(text: &str, pinned: Option<&str>) -> EventError {
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Diagnosis::of(&error)
            .into_error(String::new())
            .at_position(place(text, 0, &error));
    }
    if !text.trim_start().starts_with('{') {
        return EventError::new(Kind::NotAnObject);
    }
    let outline = match track::<Outline<'_>>(text, String::new) {
        Ok(outline) => outline,
        Err((error, cause)) => return error.at_position(place(text, 0, &cause)),
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
    let at_data: fn() -> String = || "data".into();
    let outcome = if event_type == EventType::ROW_CREATED {
        created::<R>(data, at_data)
    } else if event_type == EventType::ROW_UPDATED {
        track::<Wire<RowUpdated>>(data, at_data).map(drop)
    } else {
        track::<Wire<RowDeleted>>(data, at_data).map(drop)
    };
    let model = serde_json::from_str::<Model<'_>>(data).unwrap_or_default();
    let error = match outcome {
        Err((error, cause)) => {
            // The raw text is a slice of the whole text, so the distance of their starts is its offset.
            let offset = data.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
            error.at_position(place(text, offset, &cause))
        }
        // Only a type that gives different results for the same text gets here.
        Ok(()) => EventError::new(Kind::TypeMismatch).at_path("data"),
    };
    error.of_model(
        model.id.map(|id| DataModelId::from(&*id)),
        model.name.map(Cow::into_owned),
    )
}

/// Reads the data as [`event_with_integers`](super::parse::event_with_integers) does. Where the first reading fails at the same
/// place, it has the exact position: the second one has only a position behind a number that fits no integer.
fn created<R: DeserializeOwned>(data: &str, at_data: fn() -> String) -> Tracked<()> {
    let Err(first) = track::<Wire<RowCreated<R>>>(data, at_data) else {
        return Ok(());
    };
    let second = track::<Wire<RowCreated<WithIntegers<R>>>>(data, at_data);
    second.map(drop).map_err(|second| {
        let place = |(error, _): &(EventError, _)| (error.kind(), error.path().map(str::to_owned));
        let is_same = place(&first) == place(&second);
        (second.0, if is_same { first.1 } else { second.1 })
    })
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

#[derive(Deserialize, Default)]
struct Model<'a> {
    #[serde(borrow, rename = "datamodelId")]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "datamodelName")]
    name: Option<Cow<'a, str>>,
}
