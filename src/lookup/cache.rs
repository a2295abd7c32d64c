//! The latest answers of look-ups: subscriptions that were found, and ids that were not found.

use std::sync::Arc;
use std::time::Duration;

use super::bounded::Bounded;
use super::places::IdHistory;
use crate::clock::Monotonic;
use crate::verify::{KeyRing, Ring};

/// The time for which an answer is valid, from the beginning of its look-up.
pub(super) const LIFETIME: Duration = Duration::from_secs(60);

/// The most ids of failed look-ups that are remembered. It does not depend on the settings of the cache.
const MOST_FAILED: usize = 4_096;

/// No end: the entry stays until the map needs the room.
const FOR_GOOD: Monotonic = Monotonic::new(Duration::MAX);

/// Found and unknown ids have separate limits: a flood of invented ids evicts no ring.
pub(super) struct Cache {
    found: Bounded<Arc<Ring>>,
    unknown: Bounded<()>,
    /// Ids without their rings, kept when the rings have ended: their look-ups go before those of ids that were never found.
    found_lately: Bounded<()>,
    /// Ids whose last look-up failed or timed out. They have their own queue, so that a flood of never-seen ids cannot keep them
    /// waiting.
    failed: Bounded<()>,
    evicted: u64,
    /// For each number of keys, from one: the end of the last ring found with so many keys.
    ends: [Monotonic; KeyRing::MAX_KEYS],
}

/// The limits on the ids that are remembered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacities {
    pub(crate) found: usize,
    pub(crate) unknown: usize,
}

impl Default for Capacities {
    fn default() -> Self {
        Self {
            found: 16_384,
            unknown: 4_096,
        }
    }
}

impl Cache {
    pub(super) fn new(capacities: Capacities) -> Self {
        Self {
            found: Bounded::new(capacities.found),
            unknown: Bounded::new(capacities.unknown),
            found_lately: Bounded::new(capacities.found),
            failed: Bounded::new(MOST_FAILED),
            evicted: 0,
            ends: [Monotonic::default(); KeyRing::MAX_KEYS],
        }
    }

    /// Returns the ring; `Some(None)` if the subscription is unknown; `None` if the provider has to be asked.
    #[allow(clippy::option_option)] // three answers, and only here
    pub(super) fn get(&self, id: &str, now: Monotonic) -> Option<Option<&Arc<Ring>>> {
        if let Some(ring) = self.found.get(id, now) {
            return Some(Some(ring));
        }
        self.unknown.get(id, now).map(|()| None)
    }

    pub(super) fn history(&self, id: &str) -> IdHistory {
        let holds = |ids: &Bounded<()>| ids.get(id, Monotonic::default()).is_some();
        if holds(&self.found_lately) {
            IdHistory::Found
        } else if holds(&self.failed) {
            IdHistory::Failed
        } else {
            IdHistory::New
        }
    }

    /// Returns the number of keys of the largest ring that has not ended; one if there is none.
    pub(super) fn most_keys(&self, now: Monotonic) -> usize {
        let last = self.ends.iter().rposition(|end| now < *end);
        last.map_or(1, |index| index + 1)
    }

    pub(super) fn mark_failed(&mut self, id: &Arc<str>) {
        self.failed.insert(id, (), FOR_GOOD);
    }

    /// Stores the answer to a look-up that began at `began`.
    pub(super) fn put(&mut self, id: &Arc<str>, ring: Option<&Arc<Ring>>, began: Monotonic) {
        let ends = began.saturating_add(LIFETIME);
        self.failed.remove(id);
        if let Some(ring) = ring {
            self.unknown.remove(id);
            let evicted = self.found.insert(id, Arc::clone(ring), ends);
            self.evicted += u64::from(evicted);
            self.found_lately.insert(id, (), FOR_GOOD);
            let index = ring.key_count().saturating_sub(1);
            if let Some(end) = self.ends.get_mut(index) {
                *end = ends.max(*end);
            }
        } else {
            self.found.remove(id);
            self.found_lately.remove(id);
            self.unknown.insert(id, (), ends);
        }
    }

    /// Removes rings, and so keys, that have ended.
    pub(super) fn purge(&mut self, now: Monotonic) {
        self.found.purge(now);
        self.unknown.purge(now);
    }

    /// Removes the answer for this id, or all answers.
    pub(super) fn forget(&mut self, id: Option<&str>) {
        if let Some(id) = id {
            self.found.remove(id);
            self.unknown.remove(id);
        } else {
            self.found.clear();
            self.unknown.clear();
        }
    }

    /// Returns the number of ids found, of ids unknown, and of rings that were removed before their end.
    pub(super) fn counts(&self) -> (usize, usize, u64) {
        (self.found.len(), self.unknown.len(), self.evicted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_ids_are_remembered_where_unknown_ids_are_not() {
        let nothing = Capacities {
            found: 0,
            unknown: 0,
        };
        let mut cache = Cache::new(nothing);
        let ids: Vec<Arc<str>> = (0..=MOST_FAILED)
            .map(|number| format!("wh_{number}").into())
            .collect();
        for id in &ids {
            cache.mark_failed(id);
        }
        assert_eq!(cache.history(&ids[0]), IdHistory::New);
        for id in &ids[1..] {
            assert_eq!(cache.history(id), IdHistory::Failed);
        }
    }
}
