//! Inbound workflow triggers: calls at `/webhooks/<workflow_id>`, and a bounded log of them.

mod auth;
mod template;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use auth::Auth;
use bytes::Bytes;
use hookgate::internal::{from_foreign_json, has_reserved_key};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::body;
use crate::live::Live;
use crate::switches::{Switch, Switches};
use crate::time::EmulatorClock;

/// The methods that a trigger can have.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// A trigger, as in a seed. `Debug` shows no secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Trigger {
    pub(crate) workflow_id: String,
    #[serde(default = "post")]
    method: String,
    /// `/webhooks/<workflow_id>` where it is not named. That path is always answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(default)]
    auth: Auth,
    #[serde(default)]
    response: Answers,
}

/// How a trigger answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Answers {
    #[serde(default)]
    mode: Mode,
    #[serde(default = "ok")]
    status: u16,
    /// Stands for the result of the last node.
    #[serde(default)]
    template: Value,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Mode {
    #[default]
    Immediate,
    AfterCompletion,
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            status: ok(),
            template: Value::Null,
        }
    }
}

fn post() -> String {
    "POST".to_owned()
}

fn ok() -> u16 {
    200
}

impl Trigger {
    /// Checks what the form does not say.
    ///
    /// # Errors
    /// The field, and a sentence that states the expected form.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        if self.workflow_id.is_empty() {
            let told = "an empty text, expected at least one character";
            return Err(("workflowId", told.to_owned()));
        }
        if !METHODS.contains(&&*self.method) {
            let methods = METHODS.join(", ");
            return Err((
                "method",
                format!("no such method, expected one of {methods}"),
            ));
        }
        let path = self.path();
        let taken = ["/api/v1", "/_emulator", "/_page"].iter().any(|other| {
            let below = path.strip_prefix(other);
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        });
        if !path.starts_with('/') || path.len() < 2 || taken || path.contains(['?', '#', ' ']) {
            let told = "no path of a trigger, expected one such as /webhooks/wf_1";
            return Err(("path", told.to_owned()));
        }
        self.auth.check().map_err(|told| ("auth", told))?;
        if !(200..=599).contains(&self.response.status) {
            return Err(("response", "expected a `status` from 200 to 599".to_owned()));
        }
        Ok(())
    }

    /// Returns the trigger without its secret.
    pub(crate) fn shown(&self) -> Self {
        Self {
            auth: self.auth.shown(),
            ..self.clone()
        }
    }

    fn path(&self) -> String {
        let own = || format!("/webhooks/{}", self.workflow_id);
        self.path.clone().unwrap_or_else(own)
    }

    fn is_at(&self, path: &str) -> bool {
        let own = path.strip_prefix("/webhooks/") == Some(&self.workflow_id);
        own || self.path.as_deref() == Some(path)
    }
}

/// The triggers of the workspace, and the log of their calls. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Triggers {
    list: Arc<Mutex<Vec<Trigger>>>,
    log: Arc<Mutex<Log>>,
    switches: Switches,
    live: Live,
    clock: EmulatorClock,
}

impl Triggers {
    pub(crate) fn new(switches: Switches, live: Live, clock: EmulatorClock) -> Self {
        let (list, log) = (Arc::default(), Arc::default());
        Self {
            list,
            log,
            switches,
            live,
            clock,
        }
    }

    /// Replaces all triggers, and the log of calls, the newest first.
    pub(crate) fn set(&self, triggers: Vec<Trigger>, calls: Vec<TriggerCall>) {
        *self.locked() = triggers;
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = Log::of(calls);
    }

    pub(crate) fn list(&self) -> Vec<Trigger> {
        self.locked().clone()
    }

    /// Returns the calls that came, the newest first.
    pub(crate) fn calls(&self) -> Vec<TriggerCall> {
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .calls()
    }

    /// Answers a call; `None` if no trigger has this path. A call that comes again is answered
    /// again: nothing is deduplicated.
    pub(crate) fn call(
        &self,
        method: &Method,
        path: &str,
        query: &str,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Option<Response<Bytes>> {
        let at_path: Vec<_> = self
            .locked()
            .iter()
            .filter(|one| one.is_at(path))
            .cloned()
            .collect();
        let first = at_path.first()?;
        let trigger = at_path.iter().find(|one| one.method == method.as_str());
        let answer = match trigger {
            None => {
                let told = format!("the trigger of this path takes {}", first.method);
                error(StatusCode::NOT_FOUND, "NOT_FOUND", &told)
            }
            Some(trigger) if !trigger.auth.permits(headers) => self.refused(trigger),
            Some(_) if std::str::from_utf8(body).is_ok_and(has_reserved_key) => {
                let told = "the body has a key that begins with $serde_json::private::";
                error(StatusCode::BAD_REQUEST, "VALIDATION_ERROR", told)
            }
            Some(trigger) => answered(trigger, query, headers, body),
        };
        let trigger = trigger.unwrap_or(first);
        let call = TriggerCall {
            at: self.clock.iso(),
            workflow_id: trigger.workflow_id.clone(),
            method: method.to_string(),
            path: path.to_owned(),
            query: cut(query),
            headers: crate::body::headers(headers, KEPT, |name| trigger.auth.hides(name)),
            body: cut(&String::from_utf8_lossy(body)),
            status: answer.status().as_u16(),
        };
        self.live.tell("trigger", &call);
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(call);
        Some(answer)
    }

    fn refused(&self, trigger: &Trigger) -> Response<Bytes> {
        let told = "the call fails the authentication of the trigger";
        if self.switches.is(Switch::TriggerRefusal, "403") {
            return error(StatusCode::FORBIDDEN, "FORBIDDEN", told);
        }
        let mut answer = error(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", told);
        if matches!(trigger.auth, Auth::Basic { .. }) {
            let basic = HeaderValue::from_static("Basic realm=\"trigger\"");
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, basic);
        }
        answer
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Trigger>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn answered(trigger: &Trigger, query: &str, headers: &HeaderMap, body: &Bytes) -> Response<Bytes> {
    let status = StatusCode::from_u16(trigger.response.status).unwrap_or_default();
    if trigger.response.mode == Mode::Immediate {
        let started = json!({ "data": { "workflowId": trigger.workflow_id, "started": true } });
        return answer(status, &started);
    }
    let inputs = inputs(query, headers, body);
    answer(
        status,
        &template::evaluated(&trigger.response.template, &inputs),
    )
}

/// What expressions can read. Names of headers are in lower case. A body that is not JSON is a
/// text, and none is null.
fn inputs(query: &str, headers: &HeaderMap, body: &Bytes) -> Value {
    let body = match from_foreign_json(body) {
        Ok(json) => json,
        Err(_) if body.is_empty() => Value::Null,
        Err(_) => String::from_utf8_lossy(body).into(),
    };
    let headers = headers.keys().map(|name| {
        let values = headers.get_all(name).iter();
        let values: Vec<_> = values
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        (name.as_str().to_owned(), Value::String(values.join(", ")))
    });
    let headers: Map<_, _> = headers.collect();
    // Of a name that comes again the last value.
    let query = form_urlencoded::parse(query.as_bytes());
    let query: Map<_, _> = query
        .map(|(name, value)| (name.into_owned(), value.into()))
        .collect();
    json!({ "body": body, "headers": headers, "query": query })
}

fn error(status: StatusCode, code: &str, message: &str) -> Response<Bytes> {
    answer(
        status,
        &json!({ "error": { "code": code, "message": message } }),
    )
}

fn answer(status: StatusCode, value: &Value) -> Response<Bytes> {
    let empty = [
        StatusCode::NO_CONTENT,
        StatusCode::RESET_CONTENT,
        StatusCode::NOT_MODIFIED,
    ];
    let body = if empty.contains(&status) {
        String::new()
    } else {
        value.to_string()
    };
    let mut answer = Response::new(Bytes::from(body));
    *answer.status_mut() = status;
    if !answer.body().is_empty() {
        let json = HeaderValue::from_static("application/json");
        answer.headers_mut().insert(header::CONTENT_TYPE, json);
    }
    answer
}

/// Calls that are kept, the newest ones.
const CALLS: usize = 500;
/// What is kept of a query, a body and the headers of a call.
pub(super) const KEPT: usize = 8 << 10;

/// One call of a trigger. Headers that carry a secret are not shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TriggerCall {
    pub(super) at: String,
    pub(super) workflow_id: String,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
    pub(super) status: u16,
}

/// The newest calls, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Log(VecDeque<TriggerCall>);

impl Log {
    /// Makes a log of these calls, the newest first.
    pub(super) fn of(mut calls: Vec<TriggerCall>) -> Self {
        calls.truncate(CALLS);
        Self(calls.into_iter().rev().collect())
    }

    pub(super) fn add(&mut self, call: TriggerCall) {
        if self.0.len() >= CALLS {
            self.0.pop_front();
        }
        self.0.push_back(call);
    }

    pub(super) fn calls(&self) -> Vec<TriggerCall> {
        self.0.iter().rev().cloned().collect()
    }
}

/// Cuts a long text off at the end of a character.
pub(super) fn cut(text: &str) -> String {
    let mut end = text.len().min(KEPT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

impl Triggers {
    /// Adds a trigger.
    ///
    /// # Errors
    /// It is none, or its workflow has one of the same method.
    pub(crate) fn add(&self, trigger: Trigger) -> Result<(), String> {
        let mut list = self.locked();
        list.push(trigger);
        checked(&list).map_err(|(_, field, told)| {
            list.pop();
            format!("`{field}`: {told}")
        })
    }

    /// Changes the fields that the patch names, of a workflow's trigger. If the workflow has
    /// several, changes the one with this method. `None` if there is none.
    ///
    /// # Errors
    /// A sentence that states the expected form. Then nothing has changed.
    pub(crate) fn change(
        &self,
        workflow: &str,
        method: Option<&str>,
        patch: &Map<String, Value>,
    ) -> Option<Result<Trigger, String>> {
        let mut list = self.locked();
        let at = list.iter().position(|one| {
            one.workflow_id == workflow && method.is_none_or(|method| one.method == method)
        })?;
        Some(changed(&mut list, at, patch))
    }

    /// Deletes the triggers of a workflow. Returns whether there was one.
    pub(crate) fn remove(&self, workflow: &str) -> bool {
        let mut list = self.locked();
        let before = list.len();
        list.retain(|one| one.workflow_id != workflow);
        list.len() < before
    }
}

/// Checks a list of triggers.
///
/// # Errors
/// The place of the first wrong one, the field, and a sentence that states the expected form.
pub(crate) fn checked(list: &[Trigger]) -> Result<(), (usize, &'static str, String)> {
    for (at, trigger) in list.iter().enumerate() {
        let same = |other: &Trigger| {
            other.workflow_id == trigger.workflow_id && other.method == trigger.method
        };
        trigger.check().map_err(|(field, told)| (at, field, told))?;
        if list[..at].iter().any(same) {
            let told = "the workflow has a trigger of this method, expected each method once";
            return Err((at, "workflowId", told.to_owned()));
        }
    }
    Ok(())
}

fn changed(list: &mut [Trigger], at: usize, patch: &Map<String, Value>) -> Result<Trigger, String> {
    let trigger = body::patched(&list[at], patch).map_err(|error| body::told(&error))?;
    let before = std::mem::replace(&mut list[at], trigger);
    match checked(list) {
        Ok(()) => Ok(list[at].clone()),
        Err((_, field, told)) => {
            list[at] = before;
            Err(format!("`{field}`: {told}"))
        }
    }
}

#[cfg(test)]
mod tests;
