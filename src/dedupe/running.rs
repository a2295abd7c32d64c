//! The claims that are running, of some of the events of a store in memory, and the times at which
//! records end.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use hashbrown::HashTable;

use super::key::{ClaimToken, EventKey};
use super::store_contract::{Claimed, Ownership};
use crate::clock::Monotonic;

/// A time of a record, in nanoseconds of the clock's monotonic reading: half the size of a
/// [`Monotonic`].
pub(super) type Nanos = u64;

/// Returns the nanoseconds of this reading. One above 584 years is [`Nanos::MAX`], which no reading
/// passes: a record that ends then has no end.
pub(super) fn nanos(reading: Monotonic) -> Nanos {
    nanos_of(reading.since_start())
}

/// Returns the nanoseconds of this lease or retention.
pub(super) fn nanos_of(time: Duration) -> Nanos {
    u64::try_from(time.as_nanos()).unwrap_or(Nanos::MAX)
}

/// The running claims of some of the events, by the hashes of their keys. Nothing evicts them.
/// [`free`](Self::free) is called before each other call, with the same time: each claim in the
/// table is live.
#[derive(Default)]
pub(super) struct Running {
    claims: HashTable<RunningRecord>,
    /// No lease ends before this.
    next_end: Nanos,
}

/// The record of a running claim.
struct RunningRecord {
    key: EventKey,
    lease: Lease,
}

/// A lease, and the token that it is given to.
#[derive(Clone, Copy)]
pub(super) struct Lease {
    token: ClaimToken,
    from: Nanos,
    end: Nanos,
}

impl Lease {
    pub(super) fn new(token: ClaimToken, from: Nanos, length: Duration) -> Self {
        let end = from.saturating_add(nanos_of(length));
        Self { token, from, end }
    }
}

impl Running {
    pub(super) fn len(&self) -> usize {
        self.claims.len()
    }

    /// Frees the claims whose lease has ended, and returns their number. All are looked at only
    /// when a lease has ended, or one that was extended or settled since the last time would have.
    pub(super) fn free(&mut self, now: Nanos, hasher: &RandomState) -> usize {
        if now < self.next_end {
            return 0;
        }
        let before = self.claims.len();
        self.claims.retain(|claim| now < claim.lease.end);
        let freed = before - self.claims.len();
        self.claims
            .shrink_to(2 * self.claims.len(), |claim| hasher.hash_one(claim.key));
        let ends = self.claims.iter().map(|claim| claim.lease.end);
        self.next_end = ends.min().unwrap_or(Nanos::MAX);
        freed
    }

    /// Returns the answer to a claim of an event that is running. Its own token renews the lease.
    pub(super) fn claim_running(
        &mut self,
        hash: u64,
        key: &EventKey,
        lease: Lease,
    ) -> Option<Claimed> {
        let running = self.claims.find_mut(hash, |claim| claim.key == *key)?;
        if running.lease.token != lease.token {
            let retry_after = Duration::from_nanos(running.lease.end - lease.from);
            return Some(Claimed::Running { retry_after });
        }
        running.lease = lease;
        self.next_end = self.next_end.min(lease.end);
        Some(Claimed::Fresh)
    }

    /// Inserts the claim of an event that is not running.
    pub(super) fn insert(
        &mut self,
        hash: u64,
        key: EventKey,
        lease: Lease,
        hasher: &RandomState,
    ) -> Claimed {
        self.next_end = self.next_end.min(lease.end);
        let rehash = |claim: &RunningRecord| hasher.hash_one(claim.key);
        self.claims
            .insert_unique(hash, RunningRecord { key, lease }, rehash);
        Claimed::Fresh
    }

    pub(super) fn renew(&mut self, hash: u64, key: &EventKey, lease: Lease) -> Ownership {
        Ownership::from_held(self.claim_running(hash, key, lease) == Some(Claimed::Fresh))
    }

    /// Removes the claim, if this token holds it. Returns whether it did.
    pub(super) fn remove(&mut self, hash: u64, key: &EventKey, token: ClaimToken) -> bool {
        let is_held = |claim: &RunningRecord| claim.key == *key && claim.lease.token == token;
        let claim = self.claims.find_entry(hash, is_held);
        claim.map(|claim| claim.remove()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_end_has_none() {
        assert_eq!(nanos_of(Duration::from_nanos(7)), 7);
        assert_eq!(nanos(Monotonic::new(Duration::MAX)), Nanos::MAX);
    }
}
