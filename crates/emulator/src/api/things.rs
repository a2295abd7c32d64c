//! Blocks, pages, workflows and stats: section *Groups without shown payloads*. An object is kept
//! as the JSON that came, under an id of the service's form.

use serde_json::{Value, json};

use super::call::Call;
use super::rows::Meta;
use crate::answer::{Answer, ApiError};
use crate::body;
use crate::model::Kind;

const DEFAULT_LIMIT: u64 = 100;

pub(super) fn list(call: &Call<'_>, kind: Kind) -> Result<Answer, ApiError> {
    let limit = call.query.number("limit", 1, DEFAULT_LIMIT)?;
    let offset = call.query.number("offset", 0, 0)?;
    let mut state = call.hub.state();
    let found = state
        .things(kind)
        .search(call.query.text("search").unwrap_or_default());
    let meta = Meta::new(found.len(), limit, offset);
    let skip = usize::try_from(offset).unwrap_or(usize::MAX);
    let take = usize::try_from(limit).unwrap_or(usize::MAX);
    let page: Vec<_> = found.into_iter().skip(skip).take(take).collect();
    Ok(Answer::list(&page, &meta))
}

pub(super) fn get(call: &Call<'_>, kind: Kind) -> Result<Answer, ApiError> {
    let mut state = call.hub.state();
    let found = state.things(kind).find(call.id(0));
    found.map(Answer::data).ok_or_else(|| missing(call, kind))
}

pub(super) fn create(call: &Call<'_>, kind: Kind) -> Result<Answer, ApiError> {
    let thing = body::object(call.body)?;
    let mut state = call.hub.state();
    state.check_room(call.body.len())?;
    let id = call.hub.ids.make(kind.prefix());
    call.hub.live.tell(kind.name(), json!({ "id": id }));
    Ok(Answer::data(state.things(kind).add(id, thing)))
}

pub(super) fn change(call: &Call<'_>, kind: Kind) -> Result<Answer, ApiError> {
    let fields = body::object(call.body)?;
    let mut state = call.hub.state();
    state.check_room(call.body.len())?;
    let changed = state.things(kind).change(call.id(0), fields);
    let changed = changed.ok_or_else(|| missing(call, kind))?;
    call.hub.live.tell(kind.name(), json!({ "id": call.id(0) }));
    Ok(Answer::data(changed))
}

pub(super) fn delete(call: &Call<'_>, kind: Kind) -> Result<Answer, ApiError> {
    let mut state = call.hub.state();
    let removed = state.things(kind).remove(call.id(0));
    removed.ok_or_else(|| missing(call, kind))?;
    call.hub.live.tell(kind.name(), json!({ "id": call.id(0) }));
    Ok(Answer::deleted(call.id(0)))
}

/// A run ends at once. Its result is the object's field `result`, where it has one.
pub(super) fn run(call: &Call<'_>, kind: Kind) -> Result<Answer, ApiError> {
    let input = body::object_or_nothing(call.body)?;
    let mut state = call.hub.state();
    let found = state.things(kind).find(call.id(0));
    let thing = found.ok_or_else(|| missing(call, kind))?;
    let result = thing.get("result").unwrap_or(&Value::Null);
    let now = call.hub.clock.iso();
    Ok(Answer::data(&json!({
        "id": call.hub.ids.make("run_"),
        format!("{}Id", kind.name()): call.id(0),
        "status": "completed",
        "startedAt": now,
        "finishedAt": now,
        "input": input,
        "result": result,
    })))
}

fn missing(call: &Call<'_>, kind: Kind) -> ApiError {
    ApiError::not_found(kind.name(), call.id(0))
}
