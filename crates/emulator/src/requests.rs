//! The log of the API's requests, for the page.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::Rate;

/// The newest requests are kept.
const KEPT: usize = 1_000;
/// Characters of a path that are kept.
const LONGEST_PATH: usize = 2_000;
/// Bytes that are kept of the body of a request, and of that of its answer.
const LONGEST_BODY: usize = 16 << 10;

/// One request and its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Request {
    /// Counted from 1.
    #[serde(default)]
    pub(crate) number: u64,
    pub(crate) at: String,
    pub(crate) method: String,
    pub(crate) path: String,
    /// The name of the key, where there was one.
    pub(crate) key: Option<String>,
    pub(crate) status: u16,
    pub(crate) code: Option<String>,
    pub(crate) duration_ms: u64,
    pub(crate) rate: Option<Rate>,
    /// Not in the list, and not in a snapshot.
    #[serde(skip)]
    pub(crate) body: Body,
    #[serde(skip)]
    pub(crate) answer: Body,
}

impl Request {
    /// `search` is in lower case.
    fn has(&self, search: &str) -> bool {
        let Self { method, path, .. } = self;
        let [key, code] = [&self.key, &self.code].map(|text| text.as_deref().unwrap_or_default());
        let head = format!("{method} {path} {key} {code}");
        [&*head, &self.body.text, &self.answer.text]
            .into_iter()
            .any(|text| text.to_lowercase().contains(search))
    }
}

/// The beginning of a body, and the number of its bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    text: String,
    bytes: usize,
}

impl Body {
    pub(crate) fn new(body: &[u8]) -> Self {
        let kept = &body[..body.len().min(LONGEST_BODY)];
        Self {
            text: String::from_utf8_lossy(kept).into_owned(),
            bytes: body.len(),
        }
    }

    fn json(&self) -> Value {
        let cut = Some(self.bytes).filter(|bytes| *bytes > LONGEST_BODY);
        json!({ "body": self.text, "bytes": cut })
    }
}

/// The newest requests, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Requests(Mutex<VecDeque<Request>>);

impl Requests {
    /// Numbers a request and keeps it. Returns it as the list has it.
    pub(crate) fn note(&self, mut request: Request) -> Value {
        if let Some((end, _)) = request.path.char_indices().nth(LONGEST_PATH) {
            request.path.truncate(end);
        }
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        request.number = list.back().map_or(1, |last| last.number + 1);
        if list.len() >= KEPT {
            list.pop_front();
        }
        let told = json!(request);
        list.push_back(request);
        told
    }

    /// The request with this number, with its body and its answer.
    pub(crate) fn find(&self, number: &str) -> Option<Value> {
        let number: u64 = number.parse().ok()?;
        let list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = list.iter().find(|request| request.number == number)?;
        let mut shown = json!(found);
        shown["request"] = found.body.json();
        shown["answer"] = found.answer.json();
        Some(shown)
    }

    /// Those with this text in what the list shows, or in one of their bodies, in any case.
    pub(crate) fn found(&self, search: &str) -> Vec<Request> {
        let search = search.trim().to_lowercase();
        let mut list = self.list();
        list.retain(|request| request.has(&search));
        list
    }

    pub(crate) fn list(&self) -> Vec<Request> {
        let list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.iter().cloned().collect()
    }

    /// Replaces the log, by the newest of these.
    pub(crate) fn set(&self, mut requests: Vec<Request>) {
        requests.drain(..requests.len().saturating_sub(KEPT));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = requests.into();
    }
}
