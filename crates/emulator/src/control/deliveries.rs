//! `deliveries` and `events`.

use std::time::Duration;

use hookgate::internal::from_foreign_json;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::Call;
use crate::answer::{Answer, ApiError};
use crate::body;
use crate::deliver::{DeliveryState, Record, Wanted};
use crate::events::EVENT_TYPES;
use crate::hub::Hub;

const LONGEST: Duration = Duration::from_secs(6);

pub(super) async fn list(call: Call) -> Result<Answer, ApiError> {
    let limit = call.query.number("limit", 1, u64::MAX)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let state = call.query.text("state").map(|state| {
        let known = serde_json::from_value::<DeliveryState>(state.into());
        known.map_err(|_| {
            let message =
                format!("parameter `state` is {state:?}, expected pending, delivered or discarded");
            ApiError::validation(message)
        })
    });
    let search = call.query.text("search").map(str::to_lowercase);
    let wanted = Wanted {
        event: call.query.text("eventId"),
        model: call.query.text("dataModelId"),
        subscription: call.query.text("subscriptionId"),
        state: state.transpose()?,
        event_type: call.query.text("type"),
        search: search.as_deref(),
    };
    let (records, kept) = call.hub.deliveries.newest(&wanted, limit);
    Ok(Answer::list(&records, &json!({ "kept": kept })))
}

pub(super) async fn get(call: Call) -> Result<Answer, ApiError> {
    let detail = call.hub.deliveries.detail(call.id(0));
    let detail = detail.ok_or_else(|| ApiError::not_found("delivery", call.id(0)))?;
    Ok(Answer::data(&detail))
}

pub(super) async fn redeliver(call: Call) -> Result<Answer, ApiError> {
    let record = call.hub.deliveries.redeliver(call.id(0));
    let record = record.ok_or_else(|| ApiError::not_found("delivery", call.id(0)))?;
    let record = record.map_err(ApiError::conflict)?;
    Ok(Answer::data(&ended(&call.hub, record).await))
}

/// The secret of a receiver comes in the body: an address would be written to logs.
pub(super) async fn explain(call: Call) -> Result<Answer, ApiError> {
    let fields = body::object(&call.body)?;
    body::only(&fields, &["secret"])?;
    let secret = body::optional_text(&fields, "secret")?;
    let explained = call.hub.deliveries.explained(call.id(0), secret.as_deref());
    let explained = explained.ok_or_else(|| ApiError::not_found("delivery", call.id(0)))?;
    let explained = explained.map_err(ApiError::conflict)?;
    let searched = tokio::task::spawn_blocking(move || explained.search()).await;
    let searched = searched.map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(Answer::data(&searched))
}

/// Waits for the end of the first attempt, so that the answer has its result.
pub(super) async fn ended(hub: &Hub, record: Record) -> Record {
    let settled = hub.deliveries.settled();
    // The sender's timeout ends an attempt sooner, except where others are begun without a pause.
    let _ = tokio::time::timeout(LONGEST, settled).await;
    let same = |other: &Record| other.id == record.id;
    let now = hub.deliveries.records(Some(&record.event_id));
    now.into_iter().find(same).unwrap_or(record)
}

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
