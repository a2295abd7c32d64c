//! The look-ups under way and the deliveries that wait for them. Plain bookkeeping under one lock; it never waits itself.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::deferred::Deferred;
use super::error::{LookupError, LookupErrorKind as Kind};
use super::places::{Histories, IdHistory, LookupId, MOST_FOR_ONE, Places};
use super::provider::Answer;
use crate::clock::Monotonic;
use crate::verify::KeyRing;

/// A look-up that is older than this has failed: the next delivery begins a new one.
pub(crate) const LONGEST: Duration = Duration::from_secs(5);

/// The outcome of a look-up, for all its waiters: a ring, or a decoy for an unknown subscription.
pub(super) type Outcome = Result<Arc<KeyRing>, Arc<LookupError>>;
pub(super) type Lookup = Pin<Box<dyn Future<Output = Answer> + Send>>;

pub(super) struct Lookups {
    /// The look-up that new deliveries join. A look-up that was forgotten is only in `pending`.
    by_id: HashMap<Arc<str>, LookupId>,
    pending: HashMap<LookupId, PendingLookup>,
    numbers: u64,
    places: Places,
    histories: Histories,
    /// Taken and run once the lock is free.
    pub(super) deferred: Deferred,
}

/// One look-up and its waiters.
struct PendingLookup {
    id: Arc<str>,
    history: IdHistory,
    /// Absent while it is queued.
    began: Option<Monotonic>,
    /// Absent while a waiter polls it, and at its end.
    lookup: Option<Lookup>,
    /// Whether it has something to do since it was last polled.
    woken: bool,
    /// Their wakers, by their numbers. Until the look-up ends, each takes a place, except the one that is `detached`.
    waiters: BTreeMap<u64, Option<Waker>>,
    detached: Option<u64>,
    outcome: Option<Outcome>,
}

/// One waiter: the look-up that it waits for, and its number.
#[derive(Clone, Copy)]
pub(super) struct Waiter {
    pub(super) lookup_id: LookupId,
    number: u64,
}

/// The next step of a waiter.
pub(super) enum Step {
    Over(Outcome),
    /// This waiter polls the look-up now.
    Poll(Lookup),
    Wait,
}

impl PendingLookup {
    /// Wakes all its waiters, once the lock is free.
    fn wake(&mut self, deferred: &mut Deferred) {
        let wakers = self.waiters.values_mut();
        deferred.wake(wakers.filter_map(Option::take));
    }

    fn is_overdue(&self, now: Monotonic) -> bool {
        let began = self.began.filter(|_| self.outcome.is_none());
        began.is_some_and(|began| now.saturating_since(began) >= LONGEST)
    }
}

impl Lookups {
    /// `found` is the number of ids that are remembered as found lately.
    pub(super) fn new(found: usize) -> Self {
        Self {
            by_id: HashMap::new(),
            pending: HashMap::new(),
            numbers: 0,
            places: Places::default(),
            histories: Histories::new(found),
            deferred: Deferred::default(),
        }
    }

    /// Joins the look-up of this id, or begins one.
    pub(super) fn join(
        &mut self,
        id: &str,
        now: Monotonic,
        begin: impl FnOnce(&Arc<str>) -> Lookup,
    ) -> Result<Waiter, LookupError> {
        let mut joined = self.by_id.get(id).copied();
        let pending = joined.and_then(|lookup_id| self.pending.get(&lookup_id));
        if pending.is_some_and(|pending| pending.is_overdue(now))
            && let Some(lookup_id) = joined.take()
        {
            self.end(lookup_id, Err(timed_out()), true, now);
        }
        let pending = joined.and_then(|lookup_id| self.pending.get(&lookup_id));
        let history = pending.map_or_else(|| self.histories.of(id), |pending| pending.history);
        let is_crowded = pending.is_some_and(|pending| pending.waiters.len() >= MOST_FOR_ONE);
        if is_crowded || !self.makes_room(history, pending.is_some(), now) {
            return Err(too_many());
        }
        let lookup_id = joined.unwrap_or_else(|| {
            let id: Arc<str> = id.into();
            let lookup = begin(&id);
            self.queue(id, history, lookup)
        });
        self.start_queued(now);
        self.places.usage(history).waiting += 1;
        self.numbers += 1;
        let number = self.numbers;
        if let Some(pending) = self.pending.get_mut(&lookup_id) {
            pending.waiters.insert(number, None);
        }
        Ok(Waiter { lookup_id, number })
    }

    pub(super) fn step(&mut self, waiter: Waiter, waker: Waker) -> Step {
        let Some(pending) = self.pending.get_mut(&waiter.lookup_id) else {
            self.deferred.discard(Some(waker));
            return Step::Over(Err(timed_out())); // does not happen while the waiter is taken
        };
        if let Some(outcome) = &pending.outcome {
            self.deferred.discard(Some(waker));
            return Step::Over(outcome.clone());
        }
        let old = pending.waiters.insert(waiter.number, Some(waker));
        self.deferred.discard(old.flatten());
        if pending.woken
            && let Some(lookup) = pending.lookup.take()
        {
            pending.woken = false;
            return Step::Poll(lookup);
        }
        Step::Wait
    }

    /// Takes back a look-up that was polled and is not done.
    pub(super) fn put_back(&mut self, lookup_id: LookupId, lookup: Lookup) {
        match self.pending.get_mut(&lookup_id) {
            Some(pending) if pending.outcome.is_none() => {
                pending.lookup = Some(lookup);
                if pending.woken {
                    pending.wake(&mut self.deferred);
                }
            }
            _ => self.deferred.discard(Some(lookup)),
        }
    }

    /// The look-up has something to do: the first waiter that polls does it. All waiters are woken, because any one of them may
    /// be dropped first.
    pub(super) fn wake(&mut self, lookup_id: LookupId) {
        if let Some(pending) = self.pending.get_mut(&lookup_id)
            && pending.outcome.is_none()
        {
            pending.woken = true;
            // While one waiter polls it, no other can: `put_back` wakes them.
            if pending.lookup.is_some() {
                pending.wake(&mut self.deferred);
            }
        }
    }

    /// Returns the id and the beginning of a look-up that has begun and has not ended.
    pub(super) fn under_way(&self, lookup_id: LookupId) -> Option<(Arc<str>, Monotonic)> {
        let pending = self.pending.get(&lookup_id)?;
        let began = pending.began.filter(|_| pending.outcome.is_none())?;
        Some((Arc::clone(&pending.id), began))
    }

    /// Ends a look-up for all waiters. `failed` is whether the provider failed or took too long: the id is then marked as failed.
    /// Returns whether the answer may be remembered: not if the look-up was forgotten, had not begun or had already ended.
    pub(super) fn end(
        &mut self,
        lookup_id: LookupId,
        outcome: Outcome,
        failed: bool,
        now: Monotonic,
    ) -> bool {
        let pending = self.pending.get_mut(&lookup_id);
        let Some(pending) = pending.filter(|pending| pending.outcome.is_none()) else {
            return false;
        };
        let is_listed = self.by_id.get(&pending.id) == Some(&lookup_id);
        if is_listed {
            self.by_id.remove(&pending.id);
        }
        let is_remembered = is_listed && pending.began.is_some();
        let history = match &outcome {
            Ok(ring) if ring.is_decoy => Some(IdHistory::New),
            Ok(_) => Some(IdHistory::Found),
            Err(_) => failed.then_some(IdHistory::Failed),
        };
        if let Some(history) = history.filter(|_| is_remembered) {
            self.histories.put(&pending.id, history);
        }
        pending.outcome = Some(outcome);
        pending.wake(&mut self.deferred);
        self.deferred.discard(pending.lookup.take());
        let usage = self.places.usage(pending.history);
        usage.waiting -= pending.waiters.len() - usize::from(pending.detached.is_some());
        match pending.began {
            Some(_) => usage.running -= 1,
            None => self.places.unqueue(pending.history, lookup_id),
        }
        self.start_queued(now);
        is_remembered
    }

    /// Removes one waiter. A look-up without waiters ends. It has not failed unless it is overdue: senders that hang up must not
    /// fill the list of failed ids.
    pub(super) fn leave(&mut self, waiter: Waiter, now: Monotonic) {
        let Some(pending) = self.pending.get_mut(&waiter.lookup_id) else {
            return;
        };
        let waker = pending.waiters.remove(&waiter.number);
        self.deferred.discard(waker.flatten());
        // Its place is given back, unless the end of the look-up has done so.
        if pending.detached == Some(waiter.number) {
            pending.detached = None;
        } else if pending.outcome.is_none() {
            self.places.usage(pending.history).waiting -= 1;
        }
        if pending.waiters.is_empty() {
            let failed = pending.is_overdue(now);
            self.end(waiter.lookup_id, Err(timed_out()), failed, now);
            let over = self.pending.remove(&waiter.lookup_id);
            self.deferred.discard(over.and_then(|over| over.outcome));
        }
    }

    /// As `leave`, but the last waiter of a look-up that has begun stays, without a place, if its answer will be remembered.
    /// Returns whether it stays. This is one step, so that of two waiters that leave at the same moment exactly one is the
    /// last.
    pub(super) fn detach_if_last(&mut self, waiter: Waiter, now: Monotonic) -> bool {
        let last = self.pending.get_mut(&waiter.lookup_id).filter(|pending| {
            pending.waiters.len() == 1
                && pending.began.is_some()
                && pending.outcome.is_none()
                && self.by_id.get(&pending.id) == Some(&waiter.lookup_id)
        });
        let Some(pending) = last else {
            self.leave(waiter, now);
            return false;
        };
        if pending.detached.replace(waiter.number).is_none() {
            self.places.usage(pending.history).waiting -= 1;
        }
        true
    }

    /// New deliveries do not join the look-up of this id, or any, and its answer is not remembered.
    pub(super) fn unlist(&mut self, id: Option<&str>) {
        match id {
            Some(id) => drop(self.by_id.remove(id)),
            None => self.by_id.clear(),
        }
    }

    /// Returns the number of look-ups under way, and of deliveries that wait.
    pub(super) fn counts(&self) -> (usize, usize) {
        self.places.counts()
    }

    fn queue(&mut self, id: Arc<str>, history: IdHistory, lookup: Lookup) -> LookupId {
        self.numbers += 1;
        let lookup_id = self.numbers;
        self.by_id.insert(Arc::clone(&id), lookup_id);
        let pending = PendingLookup {
            id,
            history,
            began: None,
            lookup: Some(lookup),
            woken: false,
            waiters: BTreeMap::new(),
            detached: None,
            outcome: None,
        };
        self.pending.insert(lookup_id, pending);
        self.places.queue(history, lookup_id);
        lookup_id
    }

    fn start_queued(&mut self, now: Monotonic) {
        while let Some(lookup_id) = self.places.next() {
            let Some(pending) = self.pending.get_mut(&lookup_id) else {
                continue; // a look-up leaves its queue when it ends
            };
            pending.began = Some(now);
            pending.woken = true;
            pending.wake(&mut self.deferred);
            let history = pending.history;
            self.places.usage(history).running += 1;
        }
    }

    /// Returns whether there is a place for one more waiter. If needed, a queued look-up gives up its place.
    fn makes_room(&mut self, history: IdHistory, joins: bool, now: Monotonic) -> bool {
        if self.places.has_room(history, joins) {
            return true;
        }
        if joins || history == IdHistory::Found {
            return false;
        }
        self.numbers += 1;
        let Some(queued) = self.places.gives_way(self.numbers) else {
            return false;
        };
        self.end(queued, Err(Arc::new(too_many())), false, now);
        true
    }
}

fn too_many() -> LookupError {
    LookupError::new(Kind::TooManyWaiting)
}

pub(super) fn timed_out() -> Arc<LookupError> {
    Arc::new(LookupError::new(Kind::TimedOut))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the history of an id after the only waiter of its look-up has left at this age.
    fn history_when_left_after(age: Duration) -> IdHistory {
        let mut lookups = Lookups::new(1);
        let began = Monotonic::default();
        let begin = |_: &Arc<str>| -> Lookup { Box::pin(std::future::pending()) };
        let waiter = lookups.join("wh_1", began, begin);
        let waiter = waiter.unwrap();
        assert_eq!(lookups.counts(), (1, 1));
        lookups.leave(waiter, began.saturating_add(age));
        assert_eq!(lookups.counts(), (0, 0));
        lookups.histories.of("wh_1")
    }

    #[test]
    fn a_dropped_request_marks_its_id_as_unanswered_only_once_the_look_up_is_overdue() {
        assert_eq!(history_when_left_after(Duration::ZERO), IdHistory::New);
        let nearly = LONGEST - Duration::from_millis(1);
        assert_eq!(history_when_left_after(nearly), IdHistory::New);
        assert_eq!(history_when_left_after(LONGEST), IdHistory::Failed);
    }

    #[test]
    fn an_error_of_the_provider_marks_the_id_as_unanswered() {
        let mut lookups = Lookups::new(1);
        let now = Monotonic::default();
        let begin = |_: &Arc<str>| -> Lookup { Box::pin(std::future::pending()) };
        let waiter = lookups.join("wh_1", now, begin);
        let error = Arc::new(LookupError::new(Kind::Unavailable));
        lookups.end(waiter.unwrap().lookup_id, Err(error), true, now);
        assert_eq!(lookups.histories.of("wh_1"), IdHistory::Failed);
    }
}
