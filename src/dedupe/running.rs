//! The claims that are running, of some of the events of a store in memory.

use std::collections::HashMap;
use std::time::Duration;

use super::expiry::{Nanos, nanos_of};
use super::hash::KeyState;
use super::key::{ClaimToken, EventKey};
use super::store::{Claimed, Ownership};

/// The running claims of the events of one shard. Nothing evicts them. [`free`](Self::free) is called before each other call, with the
/// same time: each claim in the map is live.
#[derive(Default)]
pub(super) struct Running {
    claims: HashMap<EventKey, Lease, KeyState>,
    /// No lease ends before this.
    next_end: Nanos,
}

/// A claim, and the lease that it is given.
pub(super) struct Lease {
    token: ClaimToken,
    from: Nanos,
    length: Nanos,
}

impl Lease {
    pub(super) fn new(token: ClaimToken, from: Nanos, length: Duration) -> Self {
        let length = nanos_of(length);
        Self {
            token,
            from,
            length,
        }
    }

    fn end(&self) -> Nanos {
        self.from.saturating_add(self.length)
    }
}

impl Running {
    pub(super) fn len(&self) -> usize {
        self.claims.len()
    }

    /// Frees the claims whose lease has ended, and returns their number. All are looked at only when a lease has ended, or one that was
    /// extended or settled since the last time would have.
    pub(super) fn free(&mut self, now: Nanos) -> usize {
        if now < self.next_end {
            return 0;
        }
        let before = self.claims.len();
        self.claims.retain(|_, lease| now < lease.end());
        self.claims.shrink_to(2 * self.claims.len());
        let ends = self.claims.values().map(Lease::end);
        self.next_end = ends.min().unwrap_or(Nanos::MAX);
        before - self.claims.len()
    }

    /// Answers a claim of an event that is running already: its own token renews the lease. Returns `None` if it is not running.
    pub(super) fn claim_again(&mut self, key: &EventKey, lease: Lease) -> Option<Claimed> {
        let running = self.claims.get(key)?;
        if running.token != lease.token {
            let retry_after = Duration::from_nanos(running.end() - lease.from);
            return Some(Claimed::Running { retry_after });
        }
        Some(self.claim(key, lease))
    }

    /// Inserts a claim, or extends its lease.
    pub(super) fn claim(&mut self, key: &EventKey, lease: Lease) -> Claimed {
        self.next_end = self.next_end.min(lease.end());
        self.claims.insert(*key, lease);
        Claimed::Fresh
    }

    pub(super) fn renew(&mut self, key: &EventKey, lease: Lease) -> Ownership {
        let is_held = self.holds(key, lease.token);
        if is_held {
            self.claim(key, lease);
        }
        Ownership::held(is_held)
    }

    /// Removes the claim, if this token holds it, and returns the length of its lease.
    pub(super) fn release(&mut self, key: &EventKey, token: ClaimToken) -> Option<Nanos> {
        let lease = self.holds(key, token).then(|| self.claims.remove(key))??;
        Some(lease.length)
    }

    fn holds(&self, key: &EventKey, token: ClaimToken) -> bool {
        let lease = self.claims.get(key);
        lease.is_some_and(|lease| lease.token == token)
    }
}
