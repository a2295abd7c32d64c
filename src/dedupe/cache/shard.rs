//! The running claims of a part of the events, behind one lock.

use std::collections::HashMap;

use crate::clock::Monotonic;
use crate::dedupe::expiry::ExpiryQueue;
use crate::dedupe::hash::KeyState;
use crate::dedupe::key::{ClaimToken, EventKey};

/// The running claims of some of the events. Their done records are in `Inner::done`, and change under this shard's lock.
#[derive(Default)]
pub(super) struct Shard {
    pub(super) running: HashMap<EventKey, Running, KeyState>,
    pub(super) leases: ExpiryQueue,
    /// The done records whose retention ends next and frees their space. Used where a full store refuses.
    pub(super) retentions: ExpiryQueue,
}

pub(super) struct Running {
    pub(super) token: ClaimToken,
    pub(super) end: Monotonic,
}

impl Shard {
    pub(super) fn holds(&self, key: &EventKey, token: ClaimToken, now: Monotonic) -> bool {
        self.running
            .get(key)
            .is_some_and(|running| running.token == token && running.end > now)
    }

    /// Claims, or renews a claim.
    pub(super) fn run(&mut self, key: EventKey, token: ClaimToken, end: Monotonic) {
        let before = self.running.insert(key, Running { token, end });
        if before.is_some_and(|before| before.end == end) {
            // The queue has an entry with the same end already.
            return;
        }
        self.leases.push(end, key);
        let running = &self.running;
        self.leases.tidy(running.len(), |end, key| {
            running.get(key).is_some_and(|other| other.end == end)
        });
    }
}
