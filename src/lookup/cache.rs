//! The latest answers of look-ups: subscriptions that were found, and ids that were not found.

use std::sync::Arc;
use std::time::Duration;

use super::bounded::Bounded;
use crate::clock::Monotonic;
use crate::verify::KeyRing;

/// The time for which an answer is valid, from the beginning of its look-up.
pub(super) const LIFETIME: Duration = Duration::from_secs(60);

/// Found and unknown ids have separate limits: a flood of invented ids evicts no ring.
pub(super) struct Cache {
    found: Bounded<Arc<KeyRing>>,
    unknown: Bounded<()>,
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

impl Cache {
    pub(super) fn new(capacities: Capacities) -> Self {
        Self {
            found: Bounded::new(capacities.found),
            unknown: Bounded::new(capacities.unknown),
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

    /// Stores the answer to a look-up that began at `began`: a ring, or a decoy for an unknown subscription.
    pub(super) fn put(&mut self, id: &Arc<str>, ring: &Arc<KeyRing>, began: Monotonic) {
        let ends = began.saturating_add(LIFETIME);
        if ring.is_decoy {
            self.found.remove(id);
            self.unknown.insert(id, (), ends);
            return;
        }
        self.unknown.remove(id);
        let evicted = self.found.insert(id, Arc::clone(ring), ends);
        self.evicted += u64::from(evicted);
        if let Some((_, end)) = self.decoys.get_mut(ring.key_count() - 1) {
            *end = ends.max(*end);
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
