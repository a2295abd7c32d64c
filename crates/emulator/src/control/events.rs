//! `events`, `events/test`.

use hookgate::event::from_foreign_json;
use serde_json::{Map, Value, value::RawValue};

use super::Call;
use super::deliveries::ended;
use crate::answer::{Answer, ApiError};
use crate::body;
use crate::events::EVENT_TYPES;

/// A fault of the specification's list of types is told with the list.
pub(super) async fn emit(call: Call) -> Result<Answer, ApiError> {
    let mut fields = body::object(&call.body)?;
    body::only(&fields, &["type", "data"])?;
    let event_type = body::text(&fields, "type")?;
    if !EVENT_TYPES.contains(&&*event_type) {
        let message = format!(
            "no event type {event_type:?}, expected one of {}",
            EVENT_TYPES.join(", ")
        );
        return Err(ApiError::validation(message));
    }
    let data = fields
        .remove("data")
        .unwrap_or_else(|| Value::Object(Map::new()));
    if !data.is_object() {
        return Err(ApiError::validation("`data` is not an object"));
    }
    let model = data["datamodelId"].as_str().map(str::to_owned);
    let state = call.hub.state();
    let emitted = call.hub.emit(&state, &event_type, model.as_deref(), data);
    drop(state);
    let event: &RawValue =
        from_foreign_json(&emitted.body).map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(Answer::data(&event))
}

pub(super) async fn test(call: Call) -> Result<Answer, ApiError> {
    let fields = body::object(&call.body)?;
    body::only(&fields, &["subscriptionId"])?;
    let id = body::text(&fields, "subscriptionId")?;
    let workspace = call.hub.state().workspace.id.clone();
    let record = call.hub.deliveries.test_event(&id, &workspace);
    let record = record.ok_or_else(|| ApiError::not_found("subscription", &id))?;
    let record = record.map_err(ApiError::conflict)?;
    Ok(Answer::data(&ended(&call.hub, record).await))
}
