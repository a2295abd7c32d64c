//! `workspace`, `members` and `pages`: what a person does in the service beside rows. Changes emit
//! their events.

use serde_json::{Map, Value, json};

use super::Call;
use crate::answer::{Answer, ApiError};
use crate::body;
use crate::events::Actor;
use crate::hub::Hub;
use crate::model::{Kind, State};

pub(super) async fn get(call: Call) -> Result<Answer, ApiError> {
    Ok(shown(&call.hub.state()))
}

fn shown(state: &State) -> Answer {
    let workspace = &state.workspace;
    Answer::data(&json!({ "id": workspace.id, "tier": workspace.tier, "members": state.members }))
}

pub(super) async fn change(call: Call) -> Result<Answer, ApiError> {
    let mut fields = body::object(&call.body)?;
    body::only(&fields, &["tier"])?;
    let mut state = call.hub.state();
    if let Some(tier) = fields.remove("tier") {
        state.workspace.tier = serde_json::from_value(tier)
            .map_err(|_| ApiError::validation("`tier` is none of standard, premium, enterprise"))?;
    }
    call.hub.live.tell("workspace", ());
    Ok(shown(&state))
}

pub(super) async fn invite(call: Call) -> Result<Answer, ApiError> {
    let hub = &call.hub;
    let fields = body::object(&call.body)?;
    body::only(&fields, &["name", "email"])?;
    let (name, email) = (body::name(&fields, "name")?, body::name(&fields, "email")?);
    let mut state = hub.state();
    if state.members.iter().any(|member| member.email == email) {
        let message = format!("a member with the email {email:?} exists");
        return Err(ApiError::conflict(message));
    }
    let by = state.actor();
    let id = hub.ids.make("usr_");
    let member = Actor { id, name, email };
    state.members.push(member.clone());
    let data = json!({ "member": member, "invitedBy": by });
    hub.emit(&state, "member.invited", None, data);
    hub.live.tell("workspace", ());
    Ok(Answer::data(&member))
}

pub(super) async fn remove_member(call: Call) -> Result<Answer, ApiError> {
    let (hub, id) = (&call.hub, call.id(0));
    let mut state = hub.state();
    let by = state.actor();
    let at = state.members.iter().position(|member| member.id == id);
    let at = at.ok_or_else(|| ApiError::not_found("member", id))?;
    let member = state.members.remove(at);
    let data = json!({ "member": member, "removedBy": by });
    hub.emit(&state, "member.removed", None, data);
    hub.live.tell("workspace", ());
    Ok(Answer::deleted(id))
}

pub(super) async fn pages(call: Call) -> Result<Answer, ApiError> {
    let mut state = call.hub.state();
    Ok(Answer::data(&state.things(Kind::Page).as_slice()))
}

pub(super) async fn create_page(call: Call) -> Result<Answer, ApiError> {
    let page = body::object(&call.body)?;
    let mut state = call.hub.state();
    state.check_room(call.body.len())?;
    let id = call.hub.ids.make(Kind::Page.prefix());
    let page = state.things(Kind::Page).add(id, page).clone();
    Ok(emitted(
        &call.hub,
        &state,
        "page.created",
        "createdBy",
        page,
    ))
}

pub(super) async fn change_page(call: Call) -> Result<Answer, ApiError> {
    let fields = body::object(&call.body)?;
    let mut state = call.hub.state();
    state.check_room(call.body.len())?;
    let changed = state.things(Kind::Page).change(call.id(0), fields).cloned();
    let page = changed.ok_or_else(|| ApiError::not_found("page", call.id(0)))?;
    Ok(emitted(
        &call.hub,
        &state,
        "page.updated",
        "updatedBy",
        page,
    ))
}

pub(super) async fn delete_page(call: Call) -> Result<Answer, ApiError> {
    let mut state = call.hub.state();
    let removed = state.things(Kind::Page).remove(call.id(0));
    let page = removed.ok_or_else(|| ApiError::not_found("page", call.id(0)))?;
    emitted(&call.hub, &state, "page.deleted", "deletedBy", page);
    Ok(Answer::deleted(call.id(0)))
}

/// Emits the event of a page. The specification shows no payload: here it is the page and the
/// actor.
fn emitted(
    hub: &Hub,
    state: &State,
    event_type: &str,
    by: &str,
    page: Map<String, Value>,
) -> Answer {
    let data = json!({ "page": page, by: state.actor() });
    hub.emit(state, event_type, None, data);
    hub.live.tell("page", json!({ "id": page.get("id") }));
    Answer::data(&page)
}
