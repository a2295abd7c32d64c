//! The values of labels, all from a bounded set.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, PoisonError, RwLock};

use metrics::SharedString;

use super::known_keys::KnownKeys;
use crate::outcome::{Outcome, RefusalKind};
use crate::verify::VerifyError;

/// The value where there is none.
pub(crate) const NONE: &str = "none";
/// The value for all those beyond the limit.
pub(crate) const OTHER: &str = "other";

/// The default number of pairs of scope and key that have their own labels.
const NAMED_KEYS: usize = 64;

/// The state that a receiver keeps for its metrics.
pub(crate) struct Metrics {
    pub(crate) receiver: SharedString,
    pub(crate) keys: NamedKeys,
    pub(super) known: KnownKeys,
    pub(crate) described: AtomicBool,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            receiver: SharedString::const_str("default"),
            keys: NamedKeys::up_to(NAMED_KEYS),
            known: KnownKeys::default(),
            described: AtomicBool::new(false),
        }
    }
}

/// The pairs of scope and key name that have their own labels.
pub(crate) struct NamedKeys {
    most: usize,
    named: AtomicUsize,
    scopes: RwLock<HashMap<Arc<str>, Vec<Arc<str>>>>,
}

impl NamedKeys {
    pub(crate) fn up_to(most: usize) -> Self {
        Self {
            most,
            named: AtomicUsize::new(0),
            scopes: RwLock::default(),
        }
    }

    /// Returns the labels for a scope and a key name.
    pub(super) fn labels(&self, scope: &str, key: &str) -> (SharedString, SharedString) {
        use std::sync::atomic::Ordering::Relaxed;

        if let Some(labels) = self.find(scope, key) {
            return labels;
        }
        // Checked first without the lock that writers need: once all pairs have labels, no thread takes that lock any more.
        if self.named.load(Relaxed) < self.most {
            let mut scopes = self.scopes.write().unwrap_or_else(PoisonError::into_inner);
            let known = scopes
                .get(scope)
                .is_some_and(|keys| keys.iter().any(|known| &**known == key));
            if !known && self.named.load(Relaxed) < self.most {
                scopes.entry(scope.into()).or_default().push(key.into());
                self.named.fetch_add(1, Relaxed);
            }
        }
        self.find(scope, key).unwrap_or_else(|| {
            let other = SharedString::const_str(OTHER);
            (other.clone(), other)
        })
    }

    fn find(&self, scope: &str, key: &str) -> Option<(SharedString, SharedString)> {
        let scopes = self.scopes.read().unwrap_or_else(PoisonError::into_inner);
        let (scope, keys) = scopes.get_key_value(scope)?;
        let key = keys.iter().find(|known| &***known == key)?;
        Some((
            SharedString::from_shared(Arc::clone(scope)),
            SharedString::from_shared(Arc::clone(key)),
        ))
    }
}

/// The outcome of a delivery or a run, and the reason.
#[derive(Clone, Copy)]
pub(crate) struct OutcomeLabels {
    pub(crate) outcome: &'static str,
    pub(crate) reason: &'static str,
}

impl OutcomeLabels {
    /// The sender hung up before the answer.
    pub(super) const HUNG_UP: Self = Self {
        outcome: "hung_up",
        reason: NONE,
    };

    pub(crate) fn of(outcome: Outcome, not_authentic: Option<&VerifyError>) -> Self {
        let (name, remarkable) = match outcome {
            Outcome::Refused(_) => ("refused", true),
            Outcome::Replayed { same_body } => ("replayed", !same_body),
            Outcome::Accepted => ("accepted", false),
            Outcome::Handled => ("handled", false),
            Outcome::HandledUnrecorded(_) => ("handled", true),
            Outcome::Unhandled => ("unhandled", false),
            Outcome::DeadLettered => ("dead_lettered", false),
            Outcome::Failed(_) => ("failed", true),
            Outcome::RunsOn => ("runs_on", false),
        };
        let reason = match (outcome, not_authentic) {
            (Outcome::Refused(RefusalKind::NotAuthentic), Some(error)) => error.kind().name(),
            // The same words as in logs and hooks.
            _ if remarkable => outcome.name(),
            _ => NONE,
        };
        Self {
            outcome: name,
            reason,
        }
    }
}

/// Returns the label for the number of an attempt. Only numbers over ten need an allocated text.
pub(super) fn attempt(number: Option<u32>) -> SharedString {
    const FIRST: [&str; 10] = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"];
    let Some(number) = number else {
        return SharedString::const_str("unknown");
    };
    let at = usize::try_from(number).unwrap_or(usize::MAX);
    match at.checked_sub(1).and_then(|at| FIRST.get(at)) {
        Some(text) => SharedString::const_str(text),
        None => SharedString::from_owned(number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_numbers() {
        let texts = [None, Some(1), Some(10), Some(11)].map(attempt);
        assert_eq!(
            texts.each_ref().map(|text| &**text),
            ["unknown", "1", "10", "11"]
        );
    }
}
