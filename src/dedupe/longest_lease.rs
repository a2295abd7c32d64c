//! The lease for which a store on a server answers repeated commits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::expiry::nanos_of;

/// The longest lease that was given to a store and its clones. A receiver has one length of leases.
///
/// A record on a server does not hold the length of its lease, so the store passes this one with each commit.
#[derive(Debug, Default)]
pub(crate) struct LongestLease(AtomicU64);

impl LongestLease {
    /// Notes the lease of a claim or a renewal.
    pub(crate) fn note(&self, lease: Duration) {
        let lease = nanos_of(lease);
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
