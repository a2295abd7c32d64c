//! `deliveries`.

use super::Call;
use crate::answer::{Answer, ApiError};

pub(super) async fn list(call: Call) -> Result<Answer, ApiError> {
    let records = call.hub.deliveries.records(call.query.text("eventId"));
    Ok(Answer::data(&records))
}

pub(super) async fn redeliver(call: Call) -> Result<Answer, ApiError> {
    let record = call.hub.deliveries.redeliver(call.id(0)).await;
    let record = record.ok_or_else(|| ApiError::not_found("delivery", call.id(0)))?;
    Ok(Answer::data(&record))
}
