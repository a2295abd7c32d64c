//! The results of look-ups: rings that were found, ids that were not found, and ids whose look-ups failed.

use std::sync::Arc;
use std::time::Duration;

use super::bounded::Bounded;
use crate::clock::Monotonic;
use crate::verify::KeyRing;

/// The time for which an answer is valid, from the beginning of its look-up.
pub(super) const LIFETIME: Duration = Duration::from_secs(60);

/// The most ids of failed look-ups that are remembered. It does not depend on the settings of the cache.
const MAX_FAILED: usize = 4_096;

/// The end of an id that is kept until the room is needed.
const NEVER: Monotonic = Monotonic::new(Duration::MAX);

/// Each kind of id has its own limit: a flood of invented ids evicts no ring.
pub(super) struct Cache {
    found: Bounded<Arc<KeyRing>>,
    unknown: Bounded<()>,
    /// Ids that were found and whose rings are gone: their look-ups go before those of ids that were never found.
    known: Bounded<()>,
    failed: Bounded<()>,
    evicted: u64,
    /// For each number of keys, from one: a decoy, and the end of the last ring found with so many keys.
    decoys: [(Arc<KeyRing>, Monotonic); KeyRing::MAX_KEYS],
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

/// The results of earlier look-ups of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdHistory {
    /// It was found lately.
    Found,
    /// Its last look-up failed or timed out.
    Failed,
    /// It was not looked up lately, or there is no such subscription.
    New,
}

impl Cache {
    pub(super) fn new(capacities: Capacities) -> Self {
        Self {
            found: Bounded::new(capacities.found),
            unknown: Bounded::new(capacities.unknown),
            known: Bounded::new(capacities.found),
            failed: Bounded::new(MAX_FAILED),
            evicted: 0,
            decoys: std::array::from_fn(|index| (KeyRing::decoy(index + 1), Monotonic::default())),
        }
    }

    /// Returns the ring, a decoy if the subscription is unknown; `None` if the provider has to be asked.
    pub(super) fn get(&self, id: &str, now: Monotonic) -> Option<&Arc<KeyRing>> {
        let found = self.found.get(id, now);
        found.or_else(|| self.unknown.get(id, now).map(|()| self.decoy(now)))
    }

    /// Returns the ring for an unknown subscription. It has as many keys as the largest ring that has not ended.
    pub(super) fn decoy(&self, now: Monotonic) -> &Arc<KeyRing> {
        let [(of_one_key, _), larger @ ..] = &self.decoys;
        let largest = larger.iter().rfind(|(_, end)| now < *end);
        largest.map_or(of_one_key, |(decoy, _)| decoy)
    }

    pub(super) fn history(&self, id: &str) -> IdHistory {
        if self.found.contains(id) || self.known.contains(id) {
            IdHistory::Found
        } else if self.failed.contains(id) {
            IdHistory::Failed
        } else {
            IdHistory::New
        }
    }

    /// Stores the answer to a look-up that began at `began`: a ring, or a decoy for an unknown subscription.
    pub(super) fn put(&mut self, id: &Arc<str>, ring: &Arc<KeyRing>, began: Monotonic) {
        let ends = began.saturating_add(LIFETIME);
        for ids in [&mut self.unknown, &mut self.known, &mut self.failed] {
            ids.remove(id);
        }
        if ring.is_decoy {
            self.found.remove(id);
            self.unknown.insert(id, (), ends);
            return;
        }
        if let Some(evicted) = self.found.insert(id, Arc::clone(ring), ends) {
            self.evicted += 1;
            self.known.insert(&evicted, (), NEVER);
        }
        if let Some((_, end)) = self.decoys.get_mut(ring.key_count() - 1) {
            *end = ends.max(*end);
        }
    }

    /// Notes that a look-up failed. An id that was found lately stays so.
    pub(super) fn put_failed(&mut self, id: &Arc<str>) {
        self.failed.insert(id, (), NEVER);
    }

    /// Removes the answers, and so the keys, that have ended.
    pub(super) fn purge(&mut self, now: Monotonic) {
        while let Some(id) = self.found.pop_ended(now) {
            self.known.insert(&id, (), NEVER);
        }
        while self.unknown.pop_ended(now).is_some() {}
    }

    /// Removes the answer for this id, or all answers.
    pub(super) fn forget(&mut self, id: Option<&str>) {
        let Some(id) = id else {
            return self.purge(NEVER);
        };
        self.unknown.remove(id);
        if let Some(id) = self.found.remove(id) {
            self.known.insert(&id, (), NEVER);
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
        let capacities = Capacities {
            found: 0,
            unknown: 0,
        };
        let mut cache = Cache::new(capacities);
        let ids: Vec<Arc<str>> = (0..=MAX_FAILED)
            .map(|number| format!("wh_{number}").into())
            .collect();
        for id in &ids {
            cache.put_failed(id);
        }
        let history = |id| cache.history(id);
        assert_eq!(history(&ids[0]), IdHistory::New);
        for id in &ids[1..] {
            assert_eq!(history(id), IdHistory::Failed);
        }
    }
}
