//! Rows: section *List rows* to *Delete a row*.

use serde::Serialize;
use serde_json::{Value, json};

use super::call::Call;
use crate::answer::{Answer, ApiError};
use crate::body;
use crate::changes::{self, By};
use crate::hub::Hub;
use crate::model::{OrderBy, RowList, Search, State, page};
use crate::query::Query;
use crate::switches::Switch;

const DEFAULT_LIMIT: u64 = 100;
const MAX_LIMIT: u64 = 500;

/// The `meta` of a list.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Meta {
    pub(crate) total: usize,
    pub(crate) limit: u64,
    pub(crate) offset: u64,
    pub(crate) has_more: bool,
}

impl Meta {
    pub(crate) fn new(total: usize, limit: u64, offset: u64) -> Self {
        let has_more = offset.saturating_add(limit) < total as u64;
        Self {
            total,
            limit,
            offset,
            has_more,
        }
    }
}

pub(super) fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let (rows, meta) = list_rows(call.hub, call.id(0), call.query, "")?;
    Ok(Answer::list(&rows, &meta))
}

/// Returns one page of a data model's rows that have these words. The lock is held for the choice
/// of the rows alone.
pub(crate) fn list_rows(
    hub: &Hub,
    model: &str,
    query: &Query,
    words: &str,
) -> Result<(RowList, Meta), ApiError> {
    let limit = limit(hub, query)?;
    let offset = query.number("offset", 0, 0)?;
    let state = hub.state();
    let found = state.model(model);
    let found = found.ok_or_else(|| ApiError::not_found("data model", model))?;
    let search = Search::parse(words);
    let mut rows: Vec<_> = found.rows.as_slice().iter().collect();
    rows.retain(|row| search.takes(found, row));
    if hub.switches.is(Switch::ListOrder, "newest") {
        rows.reverse();
    }
    let meta = Meta::new(rows.len(), limit, offset);
    let skip = usize::try_from(offset).unwrap_or(usize::MAX);
    let take = usize::try_from(limit).unwrap_or(usize::MAX);
    let chosen = match query.text("orderBy").filter(|text| !text.is_empty()) {
        Some(text) => {
            let order = OrderBy::parse(text, &found.properties).map_err(ApiError::validation)?;
            page(&rows, &order, skip, take)
        }
        None => rows.into_iter().skip(skip).take(take).cloned().collect(),
    };
    Ok((RowList(chosen), meta))
}

fn limit(hub: &Hub, query: &Query) -> Result<u64, ApiError> {
    let limit = query.number("limit", 1, DEFAULT_LIMIT)?;
    if limit > MAX_LIMIT && hub.switches.is(Switch::LimitAbove500, "refuse") {
        let message = format!("parameter `limit` is {limit}, expected {MAX_LIMIT} at most");
        return Err(ApiError::validation(message));
    }
    Ok(limit.min(MAX_LIMIT))
}

pub(super) fn create(call: &Call<'_>) -> Result<Answer, ApiError> {
    created_rows(call.hub, call.id(0), call.body, By::api)
}

/// Creates one row or several, in the form that the body has.
pub(crate) fn created_rows(
    hub: &Hub,
    model: &str,
    body: &[u8],
    by: impl FnOnce(&Hub, &State) -> By,
) -> Result<Answer, ApiError> {
    let mut object = body::object(body)?;
    body::only(&object, &["values", "rows"])?;
    let mut state = hub.state();
    let by = by(hub, &state);
    if state.model(model).is_none() {
        return Err(ApiError::not_found("data model", model));
    }
    match (object.remove("values"), object.remove("rows")) {
        (Some(values), None) => {
            let values = body::values("`values`", values)?;
            let row = changes::create(hub, &mut state, model, &values, &by)?;
            Ok(Answer::data(
                &json!({ "id": row.id, "data": row.data, "createdAt": row.created_at }),
            ))
        }
        (None, Some(Value::Array(rows))) => Ok(batch(hub, &mut state, model, rows, &by)),
        (None, Some(_)) => Err(ApiError::validation(
            "`rows` is not an array of values by property id",
        )),
        _ => Err(ApiError::validation(
            "expected either `values` for one row, or `rows` for several",
        )),
    }
}

/// Rows that are wrong are told in `meta.errors`, and the others are created.
fn batch(hub: &Hub, state: &mut State, model: &str, rows: Vec<Value>, by: &By) -> Answer {
    let (mut created, mut errors) = (Vec::new(), Vec::new());
    for (index, values) in rows.into_iter().enumerate() {
        let values = body::values("an item of `rows`", values);
        let row = values.and_then(|values| changes::create(hub, state, model, &values, by));
        match row {
            Ok(row) => created.push(row),
            Err(error) => errors.push(json!({
                "index": index, "code": error.code, "message": error.message,
            })),
        }
    }
    let meta = json!({ "createdCount": created.len(), "errors": errors });
    Answer::list(&RowList(created), &meta)
}

pub(super) fn update(call: &Call<'_>) -> Result<Answer, ApiError> {
    updated_row(call.hub, call.id(0), call.id(1), call.body, By::api)
}

pub(crate) fn updated_row(
    hub: &Hub,
    model: &str,
    row: &str,
    body: &[u8],
    by: impl FnOnce(&Hub, &State) -> By,
) -> Result<Answer, ApiError> {
    let mut object = body::object(body)?;
    body::only(&object, &["values"])?;
    let values = object.remove("values");
    let values = values.ok_or_else(|| ApiError::validation("`values` is missing"))?;
    let values = body::values("`values`", values)?;
    let mut state = hub.state();
    let by = by(hub, &state);
    let row = changes::update(hub, &mut state, model, row, &values, &by)?;
    Ok(Answer::data(
        &json!({ "id": row.id, "data": row.data, "updatedAt": row.updated_at }),
    ))
}

pub(super) fn delete(call: &Call<'_>) -> Result<Answer, ApiError> {
    deleted_row(call.hub, call.id(0), call.id(1), By::api)
}

pub(crate) fn deleted_row(
    hub: &Hub,
    model: &str,
    row: &str,
    by: impl FnOnce(&Hub, &State) -> By,
) -> Result<Answer, ApiError> {
    let mut state = hub.state();
    let by = by(hub, &state);
    changes::delete(hub, &mut state, model, row, &by)?;
    Ok(Answer::deleted(row))
}
