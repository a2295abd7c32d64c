//! `faults` and `switches`.

use serde_json::{Value, json};

use super::Call;
use crate::answer::{Answer, ApiError};
use crate::body;
use crate::faults::{FAULTS, Where};

pub(super) async fn list(call: Call) -> Result<Answer, ApiError> {
    Ok(Answer::data(&call.hub.faults.list()))
}

pub(super) async fn table(_: Call) -> Result<Answer, ApiError> {
    let shown = FAULTS.iter().map(|fault| {
        let place = if fault.place == Where::Api {
            "API"
        } else {
            "delivery"
        };
        json!({ "fault": fault.name, "where": place, "about": fault.about })
    });
    Ok(Answer::data(&shown.collect::<Vec<_>>()))
}

pub(super) async fn add(call: Call) -> Result<Answer, ApiError> {
    let fault = Value::Object(body::object(&call.body)?);
    let entry = call.hub.faults.add(&fault).map_err(ApiError::validation)?;
    call.hub.live.tell("faults", &entry);
    Ok(Answer::data(&entry))
}

pub(super) async fn clear(call: Call) -> Result<Answer, ApiError> {
    call.hub.faults.clear();
    call.hub.live.tell("faults", ());
    Ok(Answer::data(&call.hub.faults.list()))
}

pub(super) async fn remove(call: Call) -> Result<Answer, ApiError> {
    if !call.hub.faults.remove(call.id(0)) {
        return Err(ApiError::not_found("fault that is on", call.id(0)));
    }
    call.hub.live.tell("faults", ());
    Ok(Answer::data(&call.hub.faults.list()))
}

pub(super) async fn switches(call: Call) -> Result<Answer, ApiError> {
    Ok(Answer::data(&call.hub.switches.shown()))
}

pub(super) async fn set_switches(call: Call) -> Result<Answer, ApiError> {
    let switches = body::object(&call.body)?;
    let set = call.hub.switches.set_all(switches.iter());
    set.map_err(ApiError::validation)?;
    let shown = call.hub.switches.shown();
    call.hub.live.tell("switches", &shown);
    Ok(Answer::data(&shown))
}
