//! The calls that came to triggers: a bounded log.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

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
