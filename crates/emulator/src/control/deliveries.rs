//! `deliveries`.

use std::time::Duration;

use super::Call;
use crate::answer::{Answer, ApiError};
use crate::deliver::Record;
use crate::hub::Hub;

const LONGEST: Duration = Duration::from_secs(6);

pub(super) async fn list(call: Call) -> Result<Answer, ApiError> {
    let records = call.hub.deliveries.records(call.query.text("eventId"));
    Ok(Answer::data(&records))
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

/// Waits for the end of the first attempt, so that the answer has its result.
pub(super) async fn ended(hub: &Hub, record: Record) -> Record {
    let settled = hub.deliveries.settled();
    // The sender's timeout ends an attempt sooner, except where others are begun without a pause.
    let _ = tokio::time::timeout(LONGEST, settled).await;
    let same = |other: &Record| other.id == record.id;
    let now = hub.deliveries.records(Some(&record.event_id));
    now.into_iter().find(same).unwrap_or(record)
}
