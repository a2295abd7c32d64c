//! The log of the API's requests, for the page.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::model::Rate;

/// The newest requests are kept.
const KEPT: usize = 1_000;
/// Characters of a path that are kept.
const LONGEST_PATH: usize = 2_000;

/// One request and its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Request {
    pub(crate) at: String,
    pub(crate) method: String,
    pub(crate) path: String,
    /// The name of the key, where there was one.
    pub(crate) key: Option<String>,
    pub(crate) status: u16,
    pub(crate) code: Option<String>,
    pub(crate) duration_ms: u64,
    pub(crate) rate: Option<Rate>,
}

/// The newest requests, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Requests(Mutex<VecDeque<Request>>);

impl Requests {
    pub(crate) fn note(&self, mut request: Request) {
        if let Some((end, _)) = request.path.char_indices().nth(LONGEST_PATH) {
            request.path.truncate(end);
        }
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if list.len() >= KEPT {
            list.pop_front();
        }
        list.push_back(request);
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
