//! Reads a body again that did not fit: with its row's integers in every form of a JSON number, or to find the error.
//!
//! The fast pass only knows that an error exists. The search reads the body in two phases: the envelope with `data` as raw text,
//! then `data` alone. So the path and the position are right for any order of `type` and `data`. Messages are made from those of
//! serde with a whitelist, see [`error_of`].

use std::marker::PhantomData;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::content::Event;
use super::deserialize::{Tracked, error_of, place, track};
use super::event_error::{EventError, EventErrorKind as Kind};
use super::fields::Fields;
use super::ids::{EventId, EventType, Name};
use super::integral::{Integral, has_exact_floats};
use super::parse::{DataSeed, in_any_order};

/// Reads an event that the fast pass did not read. The error is the reason why this text is no `Event<R>`.
#[cold]
pub(super) fn event<R: DeserializeOwned>(
    text: &str,
    pinned: Option<&str>,
) -> Result<Event<R>, EventError> {
    in_any_order(text, Integral::<_, false>(PhantomData))
        .or_else(|error| match has_exact_floats(text) {
            true => in_any_order(text, Integral::<_, true>(PhantomData)),
            false => Err(error),
        })
        .map_err(|_| diagnose::<R>(text, pinned))
}

/// Returns the reason why this text is no `Event<R>`. `pinned` is the workspace that the keys are pinned to.
pub(super) fn diagnose<R: DeserializeOwned>(text: &str, pinned: Option<&str>) -> EventError {
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return error_of(&error, String::new()).at_position(place(text, text, &error));
    }
    if !text.trim_start().starts_with('{') {
        return EventError::new(Kind::NotAnObject);
    }
    let outline = match track(text, PhantomData::<Outline<'_>>, String::new) {
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
    let error = match data_fault::<R>(data, &event_type) {
        Err((error, cause)) => error.at_position(place(text, data, &cause)),
        // Only a type that gives different results for the same text gets here.
        Ok(()) => EventError::new(Kind::TypeMismatch).at_path("data"),
    };
    let fields = serde_json::from_str::<Fields>(data).unwrap_or_default();
    let text = |name| fields.find(name)?.to::<String>().ok();
    error.of_model(text("datamodelId").map(Into::into), text("datamodelName"))
}

/// Reads the data as [`event`] does. Where the first reading fails at the same place, it has the exact position: the second one
/// has only a position behind a number that fits no integer.
fn data_fault<R: DeserializeOwned>(data: &str, event_type: &EventType) -> Tracked<()> {
    let path = || String::from("data");
    let Err(first) = track(data, DataSeed(event_type, PhantomData::<R>), path) else {
        return Ok(());
    };
    let seed = DataSeed(event_type, Integral::<_, false>(PhantomData::<R>));
    track(data, seed, path).map(drop).map_err(|second| {
        let is_same = first.0.kind() == second.0.kind() && first.0.path() == second.0.path();
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
