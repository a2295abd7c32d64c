//! What was looked up lately: subscriptions that were found, and ids that were not.

use std::sync::Arc;
use std::time::Duration;

use super::bounded::Bounded;
use super::places::Standing;
use crate::clock::Monotonic;
use crate::verify::Ring;

/// How long an answer counts, from the beginning of its look-up.
pub(super) const LIFETIME: Duration = Duration::from_secs(60);

/// Until it has to make room.
const FOR_GOOD: Monotonic = Monotonic::new(Duration::MAX);

/// Found and unknown are bounded apart: no flood of invented ids evicts a ring.
pub(super) struct Cache {
    found: Bounded<Arc<Ring>>,
    unknown: Bounded<()>,
    /// Ids without their rings, kept when these have ended: their look-ups go before those of strangers.
    familiar: Bounded<()>,
    /// Ids whose last look-up brought no answer: they queue apart from strangers, that a flood of these may not keep them waiting.
    unanswered: Bounded<()>,
    evicted: u64,
    /// The keys of the largest ring that was found lately, and when another look-up decides.
    most_keys: (usize, Monotonic),
}

/// How many ids are remembered.
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
            familiar: Bounded::new(capacities.found),
            unanswered: Bounded::new(capacities.unknown),
            evicted: 0,
            most_keys: (1, Monotonic::default()),
        }
    }

    /// The ring, `Some(None)` where there is none, `None` where the provider has to be asked.
    #[allow(clippy::option_option)] // three answers, and only here
    pub(super) fn get(&self, id: &str, now: Monotonic) -> Option<Option<&Arc<Ring>>> {
        if let Some(ring) = self.found.get(id, now) {
            return Some(Some(ring));
        }
        self.unknown.get(id, now).map(|()| None)
    }

    pub(super) fn standing(&self, id: &str) -> Standing {
        let holds = |ids: &Bounded<()>| ids.get(id, Monotonic::default()).is_some();
        if holds(&self.familiar) {
            Standing::Familiar
        } else if holds(&self.unanswered) {
            Standing::Unanswered
        } else {
            Standing::Stranger
        }
    }

    pub(super) fn most_keys(&self) -> usize {
        self.most_keys.0
    }

    pub(super) fn leave_unanswered(&mut self, id: &Arc<str>) {
        self.unanswered.insert(id, (), FOR_GOOD);
    }

    /// Takes the answer to a look-up that began then.
    pub(super) fn put(&mut self, id: &Arc<str>, ring: Option<&Arc<Ring>>, began: Monotonic) {
        let ends = began.saturating_add(LIFETIME);
        self.unanswered.remove(id);
        if let Some(ring) = ring {
            self.unknown.remove(id);
            let evicted = self.found.insert(id, Arc::clone(ring), ends);
            self.evicted += u64::from(evicted);
            self.familiar.insert(id, (), FOR_GOOD);
            let (most, until) = self.most_keys;
            if ring.key_count() >= most || began >= until {
                self.most_keys = (ring.key_count(), ends);
            }
        } else {
            self.found.remove(id);
            self.familiar.remove(id);
            self.unknown.insert(id, (), ends);
        }
    }

    /// Lets go of rings, and so of keys, that have ended.
    pub(super) fn purge(&mut self, now: Monotonic) {
        self.found.purge(now);
        self.unknown.purge(now);
    }

    pub(super) fn forget(&mut self, id: &str) {
        self.found.remove(id);
        self.unknown.remove(id);
    }

    pub(super) fn forget_all(&mut self) {
        self.found.clear();
        self.unknown.clear();
    }

    /// Ids found, ids unknown, rings that had to go before their end.
    pub(super) fn counts(&self) -> (usize, usize, u64) {
        (self.found.len(), self.unknown.len(), self.evicted)
    }
}
