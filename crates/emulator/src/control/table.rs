//! Every control: the control API is routed by this table, `GET controls` shows it, and a test
//! compares the docs with it.

use std::future::ready;

use http::Method;
use serde_json::json;

use super::{
    Answered, Call, clock, deliveries, faults, keys, rows, subscriptions, triggers, workspace,
};
use crate::answer::Answer;

/// An endpoint of the control API.
pub(crate) struct Control {
    pub(crate) method: Method,
    /// Below `/_emulator/`; `*` stands for an id.
    pub(crate) path: &'static str,
    /// The body or the query that it takes.
    pub(crate) takes: &'static str,
    pub(crate) answers: &'static str,
    pub(crate) about: &'static str,
    pub(super) run: fn(Call) -> Answered,
}

macro_rules! control {
    ($method:ident $path:literal, $takes:literal => $answers:literal, $about:literal, $run:path) => {
        Control {
            method: Method::$method,
            path: $path,
            takes: $takes,
            answers: $answers,
            about: $about,
            run: |call| Box::pin($run(call)),
        }
    };
}

/// Every control, in the order of the docs.
pub(crate) const CONTROLS: &[Control] = &[
    control!(GET "controls", "" => r#"{"data": [{"method", "path", "takes", "answers", "about"}]}"#, "this table", controls),
    control!(POST "reset", "" => "204", "returns to the start: its rows, switches, faults, subscriptions and clock, and no deliveries", clock::reset),
    control!(GET "clock", "" => r#"{"now"}"#, "the emulator's time", clock::get),
    control!(POST "clock/advance", r#"{"by": "26h36m"}"# => r#"{"now", "attempts"}"#, "advances the time, makes every attempt that becomes due, in order of time, and then answers", clock::advance),
    control!(GET "deliveries", "?eventId=&subscriptionId=&dataModelId=&state=&type=&search=&limit=" => r#"{"data": [{"number", "id", "subscriptionId", "eventId", "eventType", "payload", "state", "nextAttemptAt", "attempts": [{"at", "status", "error", "meaning", "durationMs"}]}], "meta": {"kept"}}"#, "the log of recent deliveries, the newest first; `type` is a part of the event's type, `search` words; `kept` counts all that were searched", deliveries::list),
    control!(GET "deliveries/*", "" => r#"{"data": {delivery, each attempt with "request", "answer", "fault"}}"#, "a delivery with the requests and answers of its attempts", deliveries::get),
    control!(POST "deliveries/*/redeliver", "" => r#"{"data": {delivery}}"#, "sends a delivery again, at once", deliveries::redeliver),
    control!(POST "deliveries/*/explain", r#"{"secret": the receiver's, if it is known}"# => r#"{"data": {"authentic", "conclusion", "causes", "hints", "remarks"}}"#, "tries the known mistakes on the request of the last attempt", deliveries::explain),
    control!(GET "faults", "" => r#"{"data": [{"fault", "first", "seed", "hits", "on"}]}"#, "the faults that are switched on, with their hits", faults::list),
    control!(GET "faults/table", "" => r#"{"data": [{"fault", "where", "about"}]}"#, "the faults that exist", faults::table),
    control!(POST "faults", r#"{"fault", "first" or "seed"}"# => r#"{"data": {fault}}"#, "switches a fault on, for the first N or by a seed", faults::add),
    control!(DELETE "faults", "" => r#"{"data": []}"#, "switches every fault off", faults::clear),
    control!(DELETE "faults/*", "" => r#"{"data": [{fault}]}"#, "switches one fault off, and answers with those that stay on", faults::remove),
    control!(POST "events/test", r#"{"subscriptionId"}"# => r#"{"data": {delivery}}"#, "sends a subscription the test event", deliveries::test),
    control!(POST "events", r#"{"type": "page.updated", "data": {}}"# => r#"{"data": {event}}"#, "emits an event of any type of the specification, with this data", deliveries::emit),
    control!(GET "subscriptions", "" => r#"{"data": [{"id", "name", "url", "events", "dataModelId"}]}"#, "the subscriptions, without their secrets", subscriptions::list),
    control!(POST "subscriptions", r#"{"name", "url", "events", "dataModelId"}"# => r#"{"data": {subscription, "secret"}}"#, "creates a subscription; only this answer shows its secret", subscriptions::create),
    control!(PATCH "subscriptions/*", r#"{"name", "url", "events", "dataModelId"}"# => r#"{"data": {subscription}}"#, "changes the settings that are given", subscriptions::change),
    control!(DELETE "subscriptions/*", "" => r#"{"data": {"id", "deleted"}}"#, "deletes a subscription", subscriptions::delete),
    control!(GET "keys", "" => r#"{"data": [{"name", "form", "scope", "expiresAt", "disabled", "rate"}]}"#, "the keys, without their secret part, with their rate windows", keys::list),
    control!(POST "keys", r#"{"name", "scope", "form", "expiresAt"}"# => r#"{"data": {key, "key"}}"#, "creates a key; only this answer shows its text", keys::create),
    control!(PATCH "keys/*", r#"{"scope", "expiresAt", "disabled"}"# => r#"{"data": {key}}"#, "changes a key: `disabled` ends its use", keys::change),
    control!(GET "switches", "" => r#"{"data": {name: {"value", "values", "about"}}}"#, "the switches, with their values", faults::switches),
    control!(PATCH "switches", "{name: value}" => r#"{"data": {name: {"value", "values", "about"}}}"#, "sets switches", faults::set_switches),
    control!(GET "snapshot", "" => "{snapshot}", "the whole state, secrets included", clock::snapshot),
    control!(PUT "snapshot", "{snapshot}" => "204", "restores a state; if the snapshot is wrong, nothing changes", clock::restore),
    control!(GET "workspace", "" => r#"{"data": {"id", "tier", "members"}}"#, "the workspace and its members", workspace::get),
    control!(PATCH "workspace", r#"{"tier": "premium"}"# => r#"{"data": {"id", "tier", "members"}}"#, "sets the tier, which decides the rate", workspace::change),
    control!(POST "members", r#"{"name", "email"}"# => r#"{"data": {"id", "name", "email"}}"#, "invites a member, and emits member.invited", workspace::invite),
    control!(DELETE "members/*", "" => r#"{"data": {"id", "deleted"}}"#, "removes a member, and emits member.removed", workspace::remove_member),
    control!(GET "pages", "" => r#"{"data": [{page}]}"#, "the pages, as the JSON that was sent", workspace::pages),
    control!(POST "pages", "{page}" => r#"{"data": {page}}"#, "creates a page with any fields, and emits page.created", workspace::create_page),
    control!(PATCH "pages/*", "{fields}" => r#"{"data": {page}}"#, "changes a page, and emits page.updated", workspace::change_page),
    control!(DELETE "pages/*", "" => r#"{"data": {"id", "deleted"}}"#, "deletes a page, and emits page.deleted", workspace::delete_page),
    control!(GET "models", "" => r#"{"data": [{data model}]}"#, "the data models with properties and row counts, not counted against a rate", rows::models),
    control!(GET "models/*/rows", "?limit=&offset=&orderBy=&search=" => r#"{"data": [{row}], "meta"}"#, "as the API's list of rows, not counted against a rate; `search` words of an id or of values", rows::list),
    control!(POST "models/*/rows", r#"{"values"} or {"rows"}"# => r#"{"data": {row}}"#, "creates rows, as on the service's pages", rows::create),
    control!(PATCH "models/*/rows/*", r#"{"values"}"# => r#"{"data": {row}}"#, "changes a row, as on the service's pages", rows::update),
    control!(DELETE "models/*/rows/*", "" => r#"{"data": {"id", "deleted"}}"#, "deletes a row, as on the service's pages", rows::delete),
    control!(GET "requests", "?search=" => r#"{"data": [{"number", "at", "method", "path", "key", "status", "code", "durationMs", "rate"}]}"#, "the newest requests of the API, the oldest first; `search` looks at their bodies too", rows::requests),
    control!(GET "requests/*", "" => r#"{"data": {request with "request" and "answer", each with "body" and "bytes"}}"#, "a request by its number, with the first 16 KiB of its body and of its answer", rows::request),
    control!(GET "triggers", "" => r#"{"data": [{trigger}]}"#, "the inbound triggers, without their secrets", triggers::list),
    control!(POST "triggers", "{trigger, as in a seed}" => r#"{"data": {trigger}}"#, "adds a trigger; a workflow can have one for each method", triggers::create),
    control!(PATCH "triggers/*", r#"?method= {"method", "path", "auth", "response"}"# => r#"{"data": {trigger}}"#, "changes the fields that are given; `*` is the workflow's id", triggers::change),
    control!(DELETE "triggers/*", "" => r#"{"data": {"id", "deleted"}}"#, "deletes a workflow's triggers", triggers::delete),
    control!(GET "triggers/calls", "" => r#"{"data": [{"at", "workflowId", "method", "path", "query", "headers", "body", "status"}]}"#, "the newest calls of triggers, the newest first", triggers::calls),
];

/// `controls`: the table itself. Not `async`: the type of such a future would depend on the table,
/// which depends on it.
fn controls(_: Call) -> Answered {
    let shown = CONTROLS.iter().map(|control| {
        json!({
            "method": control.method.as_str(), "path": control.path, "takes": control.takes,
            "answers": control.answers, "about": control.about,
        })
    });
    Box::pin(ready(Ok(Answer::data(&shown.collect::<Vec<_>>()))))
}
