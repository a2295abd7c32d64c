//! What the clones of a store share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hookgate::ScopesInUse;

/// Every step leaves the state consistent, so it stays usable after a panic elsewhere.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The longest lease that was given to a store and its clones. A receiver has one length of leases.
///
/// A record on a server does not hold the length of its lease, so the store passes this one with each commit.
#[derive(Debug, Default)]
pub(crate) struct LongestLease(AtomicU64);

impl LongestLease {
    /// Notes the lease of a claim or a renewal.
    pub(crate) fn note(&self, lease: Duration) {
        let lease = u64::try_from(lease.as_nanos()).unwrap_or(u64::MAX);
        // A load first: a write would take the cache line from the other threads at each claim.
        if self.0.load(Ordering::Relaxed) < lease {
            self.0.fetch_max(lease, Ordering::Relaxed);
        }
    }

    /// Returns the longest lease. Where none was noted, the claim was made by another store, with a lease of any length.
    pub(crate) fn get(&self) -> Duration {
        match self.0.load(Ordering::Relaxed) {
            0 => Duration::MAX,
            lease => Duration::from_nanos(lease),
        }
    }
}

/// The receivers of each prefix. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct ScopesByPrefix(Arc<Mutex<BTreeMap<String, ScopesInUse>>>);

impl ScopesByPrefix {
    pub(crate) fn of(&self, prefix: &str) -> ScopesInUse {
        lock(&self.0).entry(prefix.to_owned()).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_lease_is_kept_and_an_unknown_one_has_no_end() {
        let longest = LongestLease::default();
        assert_eq!(longest.get(), Duration::MAX);
        for (lease, expected) in [(3, 3), (9, 9), (4, 9)] {
            longest.note(Duration::from_secs(lease));
            assert_eq!(longest.get(), Duration::from_secs(expected));
        }
    }
}
