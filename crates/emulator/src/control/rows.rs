//! `models`, their rows, and `requests`: what a person does on the service's pages.

use super::Call;
use crate::answer::{Answer, ApiError};
use crate::api;
use crate::changes::By;

pub(super) async fn models(call: Call) -> Result<Answer, ApiError> {
    let state = call.hub.state();
    let shown = state.models.iter().map(|model| model.shown(true, true));
    Ok(Answer::data(&shown.collect::<Vec<_>>()))
}

pub(super) async fn list(call: Call) -> Result<Answer, ApiError> {
    let search = call.query.text("search").unwrap_or_default();
    let (rows, meta) = api::list_rows(&call.hub, call.id(0), &call.query, search)?;
    Ok(Answer::list(&rows, &meta))
}

pub(super) async fn create(call: Call) -> Result<Answer, ApiError> {
    api::created_rows(&call.hub, call.id(0), &call.body, By::page)
}

pub(super) async fn update(call: Call) -> Result<Answer, ApiError> {
    api::updated_row(&call.hub, call.id(0), call.id(1), &call.body, By::page)
}

pub(super) async fn delete(call: Call) -> Result<Answer, ApiError> {
    api::deleted_row(&call.hub, call.id(0), call.id(1), By::page)
}

pub(super) async fn requests(call: Call) -> Result<Answer, ApiError> {
    let search = call.query.text("search").unwrap_or_default();
    Ok(Answer::data(&call.hub.requests.found(search)))
}

pub(super) async fn request(call: Call) -> Result<Answer, ApiError> {
    let found = call.hub.requests.find(call.id(0));
    found
        .map(|found| Answer::data(&found))
        .ok_or_else(|| ApiError::not_found("request", call.id(0)))
}
