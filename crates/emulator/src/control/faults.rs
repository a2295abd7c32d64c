//! `reset`, `clock`, `snapshot`, `faults` and `switches`: what is the emulator's own.

use hookgate::clock::Clock as _;
use serde_json::{Value, json};

use super::Call;
use crate::answer::{Answer, ApiError};
use crate::faults::{FAULTS, Where};
use crate::hub::Hub;
use crate::{body, time};

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
