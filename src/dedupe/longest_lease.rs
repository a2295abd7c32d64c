//! The lease for which a store on a server answers repeated commits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::expiry::nanos_of;

/// The longest lease that was given to a store and its clones. A receiver has one length of leases.
///
/// A [commit can be repeated](super::DedupeStore::commit) for one lease. Where a record on a server does not hold the length of its
/// lease, the store passes this one with each commit.
///
/// ```
/// use std::time::Duration;
/// use hookgate::dedupe::LongestLease;
///
/// let longest = LongestLease::default();
/// assert_eq!(longest.get(), Duration::MAX); // none is known
/// longest.note(Duration::from_secs(30));
/// longest.note(Duration::from_secs(10));
/// assert_eq!(longest.get(), Duration::from_secs(30));
/// ```
#[derive(Debug, Default)]
pub struct LongestLease(AtomicU64);

impl LongestLease {
    /// Notes the lease of a claim or a renewal.
    pub fn note(&self, lease: Duration) {
        let lease = nanos_of(lease);
        // A load first: a write would take the cache line from the other threads at each claim.
        if self.0.load(Ordering::Relaxed) < lease {
            self.0.fetch_max(lease, Ordering::Relaxed);
        }
    }

    /// Returns the longest lease. Where none was noted, the claim was made by another store, with a lease of any length.
    #[must_use]
    pub fn get(&self) -> Duration {
        match self.0.load(Ordering::Relaxed) {
            0 => Duration::MAX,
            lease => Duration::from_nanos(lease),
        }
    }
}
