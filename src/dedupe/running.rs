//! The claims that are running, of some of the events of a store in memory.

use std::collections::HashMap;
use std::time::Duration;

use super::expiry::{BATCH, ExpiryQueue, Nanos, nanos_of};
use super::hash::KeyState;
use super::key::{ClaimToken, EventKey};
use super::store::{Claimed, Ownership};

/// The running claims of the events of one shard. Nothing evicts them.
#[derive(Default)]
pub(super) struct Running {
    claims: HashMap<EventKey, RunningClaim, KeyState>,
    leases: ExpiryQueue<EventKey>,
}

struct RunningClaim {
    token: ClaimToken,
    /// The end of the lease.
    end: Nanos,
    lease: Nanos,
}

impl Running {
    pub(super) fn len(&self) -> usize {
        self.claims.len()
    }

    /// Answers a claim of an event that is running already: its own token renews the lease. Returns `None` if it is not running.
    pub(super) fn claim_again(
        &mut self,
        key: &EventKey,
        token: ClaimToken,
        now: Nanos,
        lease: Duration,
    ) -> Option<Claimed> {
        let claim = self.claims.get(key).filter(|claim| claim.end > now)?;
        if claim.token != token {
            let retry_after = Duration::from_nanos(claim.end - now);
            return Some(Claimed::Running { retry_after });
        }
        Some(self.claim(key, token, now, lease))
    }

    /// Inserts a claim, or extends its lease.
    pub(super) fn claim(
        &mut self,
        key: &EventKey,
        token: ClaimToken,
        now: Nanos,
        lease: Duration,
    ) -> Claimed {
        let lease = nanos_of(lease);
        let end = now.saturating_add(lease);
        let claim = RunningClaim { token, end, lease };
        let before = self.claims.insert(*key, claim);
        // Where the end is the same, the queue has its entry already.
        if before.is_none_or(|before| before.end != end) {
            self.leases.push(end, *key);
            let claims = &self.claims;
            self.leases.tidy(claims.len(), |end, key| {
                claims.get(key).is_some_and(|claim| claim.end == end)
            });
        }
        Claimed::Fresh
    }

    pub(super) fn renew(
        &mut self,
        key: &EventKey,
        token: ClaimToken,
        now: Nanos,
        lease: Duration,
    ) -> Ownership {
        if !self.holds(key, token, now) {
            return Ownership::Lost;
        }
        self.claim(key, token, now, lease);
        Ownership::Held
    }

    /// Removes the claim, if this token holds it, and returns the length of its lease.
    pub(super) fn release(
        &mut self,
        key: &EventKey,
        token: ClaimToken,
        now: Nanos,
    ) -> Option<Nanos> {
        let is_held = self.holds(key, token, now);
        let claim = is_held.then(|| self.claims.remove(key)).flatten()?;
        Some(claim.lease)
    }

    fn holds(&self, key: &EventKey, token: ClaimToken, now: Nanos) -> bool {
        self.claims
            .get(key)
            .is_some_and(|claim| claim.token == token && claim.end > now)
    }

    /// Removes the claim, if its lease has ended. Returns whether it has.
    pub(super) fn free_one(&mut self, key: &EventKey, now: Nanos) -> bool {
        let ended = self.claims.get(key).is_some_and(|claim| claim.end <= now);
        ended && self.claims.remove(key).is_some()
    }

    /// Frees some claims whose lease has ended, and returns their number.
    pub(super) fn free(&mut self, now: Nanos) -> usize {
        let before = self.claims.len();
        for _ in 0..BATCH {
            let Some((_, key)) = self.leases.pop_ended(now) else {
                break;
            };
            // The entry may be an old one of a claim whose lease was extended since.
            self.free_one(&key, now);
        }
        before - self.claims.len()
    }

    /// Returns whether [`free`](Self::free) has left some for the next call.
    pub(super) fn has_ended(&self, now: Nanos) -> bool {
        self.leases.has_ended(now)
    }
}
