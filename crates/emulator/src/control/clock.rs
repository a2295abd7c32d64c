//! `reset`, `clock`, `clock/advance` and `snapshot`.

use hookgate::clock::Clock as _;
use serde_json::json;

use super::Call;
use crate::answer::{Answer, ApiError};
use crate::hub::Hub;
use crate::{body, time};

pub(super) async fn reset(call: Call) -> Result<Answer, ApiError> {
    let reset = call.hub.reset();
    reset.map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(Answer::nothing())
}

pub(super) async fn get(call: Call) -> Result<Answer, ApiError> {
    Ok(Answer::json(&json!({ "now": now(&call.hub) })))
}

pub(super) async fn advance(call: Call) -> Result<Answer, ApiError> {
    let fields = body::object(&call.body)?;
    body::only(&fields, &["by"])?;
    let by = time::duration(&body::text(&fields, "by")?);
    let by = by.map_err(|message| ApiError::validation(format!("`by`: {message}")))?;
    let attempts = call.hub.deliveries.advance(by).await;
    let now = now(&call.hub);
    call.hub.live.tell("clock", json!({ "now": now }));
    Ok(Answer::json(&json!({ "now": now, "attempts": attempts })))
}

/// With milliseconds, as the times of attempts have them.
fn now(hub: &Hub) -> String {
    time::iso_millis(hub.clock.unix_millis())
}

pub(super) async fn snapshot(call: Call) -> Result<Answer, ApiError> {
    Ok(Answer::json(&call.hub.snapshot()))
}

pub(super) async fn restore(call: Call) -> Result<Answer, ApiError> {
    let text = std::str::from_utf8(&call.body);
    let text = text.map_err(|_| ApiError::validation("the snapshot is not UTF-8"))?;
    call.hub.restore(text).map_err(ApiError::validation)?;
    Ok(Answer::nothing())
}
