//! `keys`: the service's settings of that name.

use hookgate::{clock::Clock, event::Date};
use serde_json::{Map, Value, json};

use super::Call;
use crate::answer::{Answer, ApiError};
use crate::body;
use crate::hub::Hub;
use crate::model::{KEY_FORMS, Key, Scope, State};
use crate::switches::Switch;

pub(super) async fn list(call: Call) -> Result<Answer, ApiError> {
    let state = call.hub.state();
    let shown = state
        .keys
        .iter()
        .map(|key| with_rate(&call.hub, &state, key));
    Ok(Answer::data(&shown.collect::<Vec<_>>()))
}

/// Returns a key with its current window.
fn with_rate(hub: &Hub, state: &State, key: &Key) -> Value {
    let mut shown = key.shown();
    let by_workspace = hub.switches.is(Switch::RateCountedBy, "workspace");
    let whose = if by_workspace {
        &state.workspace.id
    } else {
        &key.key
    };
    let rate = state
        .rates
        .look(whose, state.workspace.tier.limit(), hub.clock.now());
    shown["rate"] = json!(rate);
    shown
}

pub(super) async fn create(call: Call) -> Result<Answer, ApiError> {
    let fields = body::object(&call.body)?;
    body::only(&fields, &["name", "scope", "form", "expiresAt", "disabled"])?;
    let name = body::name(&fields, "name")?;
    let form = body::optional_text(&fields, "form")?;
    let form = form.as_deref().unwrap_or("tk_test_");
    if !KEY_FORMS.contains(&form) {
        let message = format!(
            "`form` is {form:?}, expected one of {}",
            KEY_FORMS.join(", ")
        );
        return Err(ApiError::validation(message));
    }
    let mut key = Key {
        name,
        key: call.hub.ids.make(form),
        scope: Scope::Read,
        expires_at: None,
        disabled: false,
    };
    set(&mut key, &fields)?;
    let mut state = call.hub.state();
    if state.keys.iter().any(|other| other.name == key.name) {
        return Err(ApiError::conflict(format!(
            "a key with the name {:?} exists",
            key.name
        )));
    }
    let mut shown = key.shown();
    shown["key"] = json!(key.key);
    state.keys.push(key);
    call.hub.live.tell("keys", ());
    Ok(Answer::data(&shown))
}

pub(super) async fn change(call: Call) -> Result<Answer, ApiError> {
    let fields = body::object(&call.body)?;
    body::only(&fields, &["scope", "expiresAt", "disabled"])?;
    let mut state = call.hub.state();
    let key = state.keys.iter_mut().find(|key| key.name == call.id(0));
    let key = key.ok_or_else(|| ApiError::not_found("key", call.id(0)))?;
    let mut changed = key.clone();
    set(&mut changed, &fields)?;
    *key = changed;
    call.hub.live.tell("keys", ());
    Ok(Answer::data(&key.shown()))
}

fn set(key: &mut Key, fields: &Map<String, Value>) -> Result<(), ApiError> {
    if let Some(scope) = fields.get("scope") {
        let scope = serde_json::from_value(scope.clone());
        key.scope =
            scope.map_err(|_| ApiError::validation("`scope` is none of read, write, admin"))?;
    }
    if fields.contains_key("expiresAt") {
        let expiry = body::optional_text(fields, "expiresAt")?;
        if let Some(text) = expiry.as_deref().filter(|text| Date::parse(text).is_err()) {
            let message =
                format!("`expiresAt` is {text:?}, expected a time such as 2026-01-01T00:00:00Z");
            return Err(ApiError::validation(message));
        }
        key.expires_at = expiry;
    }
    if let Some(disabled) = fields.get("disabled") {
        let disabled = disabled.as_bool();
        key.disabled =
            disabled.ok_or_else(|| ApiError::validation("`disabled` is not a boolean"))?;
    }
    Ok(())
}
