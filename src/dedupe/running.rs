//! The claims that are running, of some of the events of a store in memory.

use std::collections::HashMap;
use std::time::Duration;

use super::hash::KeyHasher;
use super::key::{ClaimToken, EventKey};
use super::nanos::{Nanos, nanos_of};
use super::store::{Claimed, Ownership};

/// The running claims of some events. Nothing evicts them. An ended one no longer counts for its event; its memory is freed later.
#[derive(Default)]
pub(super) struct Running {
    claims: HashMap<EventKey, RunningClaim, KeyHasher>,
    /// No lease ends before this.
    next_end: Nanos,
    /// The number of claims from which on ended ones are looked for.
    most: usize,
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
        self.next_end = self.next_end.min(end);
        let claim = RunningClaim { token, end, lease };
        self.claims.insert(*key, claim);
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
        let claim = is_held.then(|| self.claims.remove(key))??;
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

    /// Frees all claims whose lease has ended, and returns their number.
    pub(super) fn free(&mut self, now: Nanos) -> usize {
        if now < self.next_end {
            return 0;
        }
        let (before, mut next_end) = (self.claims.len(), Nanos::MAX);
        self.claims.retain(|_, claim| {
            let stays = claim.end > now;
            if stays {
                next_end = next_end.min(claim.end);
            }
            stays
        });
        self.next_end = next_end;
        before - self.claims.len()
    }

    /// As [`free`](Self::free), once the claims are twice as many as after the last time: a constant share of each claim.
    pub(super) fn tidy(&mut self, now: Nanos) -> usize {
        const WORTH_IT: usize = 64;
        if self.claims.len() < self.most {
            return 0;
        }
        let freed = self.free(now);
        self.most = self.claims.len().saturating_mul(2).max(WORTH_IT);
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_nanos(100);

    fn key(number: u64) -> EventKey {
        EventKey::new("default", &number.to_string())
    }

    #[test]
    fn claims_that_ended_are_freed_before_they_are_many_more_than_those_that_run() {
        let mut running = Running::default();
        let token = ClaimToken::new(b"{}");
        let mut freed = 0;
        for now in 0..10_000 {
            freed += running.tidy(now);
            // Two of three are left behind.
            running.claim(&key(now), token, now, LEASE);
            if now % 3 == 0 {
                running.release(&key(now), token, now);
            }
            assert!(running.len() <= 200, "{now}: {}", running.len());
        }
        freed += running.free(9_999);
        assert_eq!((running.len(), freed), (66, 6_600));
        assert_eq!(running.free(9_999), 0);
    }

    #[test]
    fn a_lease_that_was_extended_ends_at_its_new_end() {
        let mut running = Running::default();
        let token = ClaimToken::new(b"{}");
        for number in 0..3 {
            running.claim(&key(number), token, number, LEASE);
        }
        assert_eq!(running.renew(&key(0), token, 50, LEASE), Ownership::Held);
        assert_eq!(running.free(100), 0);
        assert_eq!(running.free(101), 1);
        assert_eq!(running.free(149), 1);
        assert_eq!(running.len(), 1);
        assert_eq!(running.free(150), 1);
        assert!(!running.free_one(&key(0), 150));
    }
}
