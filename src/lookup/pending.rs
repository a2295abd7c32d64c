//! One look-up under way, and the work that is left for the time after the lookups's lock.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Waker;

use super::error::LookupError;
use super::places::IdHistory;
use super::provider::Answer;
use crate::caught::caught;
use crate::clock::Monotonic;
use crate::verify::Ring;

/// The outcome of a look-up, for all its waiters.
pub(super) type Outcome = Result<Option<Arc<Ring>>, Arc<LookupError>>;
pub(super) type Lookup = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// One look-up and its waiters.
pub(super) struct PendingLookup {
    pub(super) id: Arc<str>,
    pub(super) history: IdHistory,
    /// Absent while it is queued.
    pub(super) began: Option<Monotonic>,
    /// Absent while a waiter polls it, and at its end.
    pub(super) lookup: Option<Lookup>,
    /// Whether it has something to do since it was last polled.
    pub(super) woken: bool,
    pub(super) wakers: BTreeMap<u64, Waker>,
    pub(super) present: usize,
    /// The number of present waiters that take a place; zero once it has ended.
    pub(super) places: usize,
    pub(super) outcome: Option<Outcome>,
}

/// The work to do once the lock is free: it runs code from outside this crate, which may use the lookups again.
#[must_use]
#[derive(Default)]
pub(super) struct Deferred {
    pub(super) wake: Vec<Waker>,
    /// Wakers that are dropped and not woken: a waiter that woke itself at each poll would never stop.
    pub(super) unused_wakers: Vec<Waker>,
    pub(super) drop: Vec<Lookup>,
    /// Look-ups without waiters. Their outcome may be an error of the provider that has no other owner.
    pub(super) over: Vec<PendingLookup>,
    /// Ids whose look-ups had begun, and failed or timed out.
    pub(super) failed: Vec<Arc<str>>,
}

impl Deferred {
    pub(super) fn run(self) {
        let Self {
            wake,
            unused_wakers,
            drop: lookups,
            over,
            failed: _,
        } = self;
        // Each call by itself: a panic in one must not keep another waiter asleep.
        for waker in wake {
            let _ = caught(|| waker.wake());
        }
        for lookup in lookups {
            let _ = caught(|| drop(lookup));
        }
        for waker in unused_wakers {
            let _ = caught(|| drop(waker));
        }
        for pending in over {
            let _ = caught(|| drop(pending));
        }
    }
}

impl PendingLookup {
    /// Makes a queued look-up that has no waiter yet.
    pub(super) fn new(id: Arc<str>, history: IdHistory, lookup: Lookup) -> Self {
        Self {
            id,
            history,
            began: None,
            lookup: Some(lookup),
            woken: false,
            wakers: BTreeMap::new(),
            present: 0,
            places: 0,
            outcome: None,
        }
    }

    /// Wakes all its waiters, once the lock is free.
    pub(super) fn wake(&mut self, deferred: &mut Deferred) {
        deferred
            .wake
            .extend(std::mem::take(&mut self.wakers).into_values());
    }
}
