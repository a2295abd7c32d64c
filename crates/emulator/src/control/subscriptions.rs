//! `subscriptions`: the webhooks tab of the service's settings.

use serde_json::{Value, json};

use super::Call;
use crate::answer::{Answer, ApiError};
use crate::body;

pub(super) async fn list(call: Call) -> Result<Answer, ApiError> {
    let shown = call.hub.deliveries.subscriptions();
    let shown: Vec<Value> = shown
        .iter()
        .map(|subscription| json!(subscription))
        .collect();
    Ok(Answer::data(&shown))
}

pub(super) async fn create(call: Call) -> Result<Answer, ApiError> {
    let _ = body::object(&call.body)?;
    Err(ApiError::internal("not yet"))
}

pub(super) async fn change(call: Call) -> Result<Answer, ApiError> {
    let _ = body::object(&call.body)?;
    Err(ApiError::internal("not yet"))
}

pub(super) async fn delete(call: Call) -> Result<Answer, ApiError> {
    Ok(Answer::deleted(call.id(0)))
}
