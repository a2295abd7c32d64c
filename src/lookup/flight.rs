//! One look-up under way, and what is left to do when the board's lock is free.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Waker;

use super::places::Standing;
use super::provider::Answer;
use crate::caught::caught;
use crate::clock::Monotonic;
use crate::error::LookupError;
use crate::verify::Ring;

/// What a look-up ends in, for everyone who waits for it.
pub(super) type Outcome = Result<Option<Arc<Ring>>, Arc<LookupError>>;
pub(super) type Lookup = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// One look-up, and who waits for it.
pub(super) struct Flight {
    pub(super) id: Arc<str>,
    pub(super) standing: Standing,
    /// Absent while it is queued.
    pub(super) began: Option<Monotonic>,
    /// Absent while somebody polls it, and at its end.
    pub(super) lookup: Option<Lookup>,
    /// It has something to do since it was last polled.
    pub(super) woken: bool,
    pub(super) wakers: BTreeMap<u64, Waker>,
    pub(super) present: usize,
    /// How many of those present take a place; none once it has ended.
    pub(super) places: usize,
    pub(super) outcome: Option<Outcome>,
}

/// What is to be done once the lock is free: code that is not ours runs here, and may come back to the board.
#[must_use]
#[derive(Default)]
pub(super) struct Afterwards {
    pub(super) wake: Vec<Waker>,
    /// Dropped and not woken: a waiter that woke itself at each poll would never rest.
    pub(super) spent: Vec<Waker>,
    pub(super) drop: Vec<Lookup>,
    /// Over for everyone. What they ended in may be an error of the provider's, held by nobody else.
    pub(super) over: Vec<Flight>,
    /// Ids whose look-ups had begun and brought no answer.
    pub(super) unanswered: Vec<Arc<str>>,
}

impl Afterwards {
    pub(super) fn run(self) {
        let Self {
            wake,
            spent,
            drop: lookups,
            over,
            unanswered: _,
        } = self;
        // Each for itself: one that panics must not keep another asleep.
        for waker in wake {
            let _ = caught(|| waker.wake());
        }
        for lookup in lookups {
            let _ = caught(|| drop(lookup));
        }
        for waker in spent {
            let _ = caught(|| drop(waker));
        }
        for flight in over {
            let _ = caught(|| drop(flight));
        }
    }
}

impl Flight {
    /// One that is queued, and that nobody waits for yet.
    pub(super) fn new(id: Arc<str>, standing: Standing, lookup: Lookup) -> Self {
        Self {
            id,
            standing,
            began: None,
            lookup: Some(lookup),
            woken: false,
            wakers: BTreeMap::new(),
            present: 0,
            places: 0,
            outcome: None,
        }
    }

    /// Wakes all who wait for it, once the lock is free.
    pub(super) fn wake(&mut self, after: &mut Afterwards) {
        after
            .wake
            .extend(std::mem::take(&mut self.wakers).into_values());
    }
}
