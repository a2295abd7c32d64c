//! `snapshot`: the whole state as JSON.

use super::Call;
use crate::answer::{Answer, ApiError};
use crate::snapshot::{restore, taken};

pub(super) async fn get(call: Call) -> Result<Answer, ApiError> {
    Ok(Answer::json(&taken(&call.hub)))
}

pub(super) async fn put(call: Call) -> Result<Answer, ApiError> {
    let text = std::str::from_utf8(&call.body);
    let text = text.map_err(|_| ApiError::validation("the snapshot is not UTF-8"))?;
    restore(&call.hub, text).map_err(ApiError::validation)?;
    Ok(Answer::nothing())
}
