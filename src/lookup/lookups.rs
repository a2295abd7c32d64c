//! The answers, the look-ups under way and the deliveries that wait for them. Plain bookkeeping under one lock; it never waits itself.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Duration;

use super::cache::{Cache, Capacities, IdHistory, LIFETIME};
use super::error::LookupError;
use super::places::{LookupId, MAX_FOR_ONE, Places};
use super::provider::Answer;
use crate::clock::Monotonic;
use crate::verify::KeyRing;

/// A look-up that is older than this has failed: the next delivery begins a new one.
pub(crate) const LONGEST: Duration = Duration::from_secs(5);

/// The outcome of a look-up, for all its waiters: a ring, or a decoy for an unknown subscription.
pub(super) type Outcome = Result<Arc<KeyRing>, Arc<LookupError>>;
pub(super) type Lookup = Pin<Box<dyn Future<Output = Answer> + Send>>;

pub(super) struct Lookups {
    pub(super) cache: Cache,
    /// The look-up that new deliveries join. A look-up that was forgotten is only in `pending`.
    by_id: HashMap<Arc<str>, LookupId>,
    /// The look-ups that are queued or under way. Each has waiters.
    pending: HashMap<LookupId, PendingLookup>,
    numbers: u64,
    places: Places,
    /// Calls of code from outside this crate, such as wakers and destructors, which may use the look-ups again. They are taken and
    /// made once the lock is free.
    pub(super) deferred: Vec<Box<dyn FnOnce() + Send>>,
}

/// One look-up and its waiters.
struct PendingLookup {
    id: Arc<str>,
    history: IdHistory,
    /// Absent while it is queued.
    began: Option<Monotonic>,
    /// Absent while a waiter polls it.
    lookup: Option<Lookup>,
    /// Whether it has something to do since it was last polled.
    woken: bool,
    /// Their wakers, by their numbers.
    waiters: BTreeMap<u64, Option<Waker>>,
    /// The number of waiters that take a place: all but one that is detached.
    places: usize,
    outcome: Arc<OnceLock<Outcome>>,
}

/// One waiter of a look-up.
pub(super) struct Waiter {
    pub(super) lookup_id: LookupId,
    number: u64,
    takes_place: bool,
    pub(super) outcome: Arc<OnceLock<Outcome>>,
}

impl PendingLookup {
    /// Wakes all its waiters, once the lock is free.
    fn wake(&mut self, deferred: &mut Vec<Box<dyn FnOnce() + Send>>) {
        for waker in self.waiters.values_mut().filter_map(Option::take) {
            deferred.push(Box::new(|| waker.wake()));
        }
    }

    fn is_overdue(&self, now: Monotonic) -> bool {
        let began = self.began;
        began.is_some_and(|began| now.saturating_since(began) >= LONGEST)
    }
}

impl Lookups {
    pub(super) fn new(capacities: Capacities) -> Self {
        Self {
            cache: Cache::new(capacities),
            by_id: HashMap::new(),
            pending: HashMap::new(),
            numbers: 0,
            places: Places::default(),
            deferred: Vec::new(),
        }
    }

    /// Joins the look-up of this id, or begins one.
    pub(super) fn join(
        &mut self,
        id: &str,
        now: Monotonic,
        begin: impl FnOnce(&Arc<str>) -> Lookup,
    ) -> Result<Waiter, LookupError> {
        if let Some(lookup_id) = self.by_id.get(id).copied()
            && self.pending[&lookup_id].is_overdue(now)
        {
            self.end(lookup_id, Err(LookupError::TimedOut), now);
        }
        let joined = self.by_id.get(id).copied();
        let pending = joined.and_then(|lookup_id| self.pending.get(&lookup_id));
        let history = pending.map_or_else(|| self.cache.history(id), |pending| pending.history);
        let is_crowded = pending.is_some_and(|pending| pending.waiters.len() >= MAX_FOR_ONE);
        if is_crowded || !self.makes_room(history, joined.is_some(), now) {
            return Err(LookupError::TooManyWaiting);
        }
        self.numbers += 1;
        let number = self.numbers;
        let lookup_id = joined.unwrap_or(number);
        let pending = self.pending.entry(lookup_id).or_insert_with(|| {
            let id: Arc<str> = id.into();
            self.by_id.insert(Arc::clone(&id), lookup_id);
            self.places.queue(history, lookup_id);
            PendingLookup {
                lookup: Some(begin(&id)),
                id,
                history,
                began: None,
                woken: false,
                waiters: BTreeMap::new(),
                places: 0,
                outcome: Arc::default(),
            }
        });
        pending.waiters.insert(number, None);
        pending.places += 1;
        self.places.usage(history).waiting += 1;
        let outcome = Arc::clone(&pending.outcome);
        self.start_queued(now);
        Ok(Waiter {
            lookup_id,
            number,
            takes_place: true,
            outcome,
        })
    }

    /// Notes the waker of a waiter. Returns the look-up if this waiter polls it now.
    pub(super) fn step(&mut self, waiter: &Waiter, waker: Waker) -> Option<Lookup> {
        let Some(pending) = self.pending.get_mut(&waiter.lookup_id) else {
            self.deferred.push(Box::new(|| drop(waker)));
            return None;
        };
        if let Some(old) = pending.waiters.insert(waiter.number, Some(waker)).flatten() {
            self.deferred.push(Box::new(|| drop(old)));
        }
        if !pending.woken {
            return None;
        }
        let lookup = pending.lookup.take();
        pending.woken = lookup.is_none();
        lookup
    }

    /// Takes back a look-up that was polled and is not done.
    pub(super) fn put_back(&mut self, lookup_id: LookupId, lookup: Lookup) {
        let Some(pending) = self.pending.get_mut(&lookup_id) else {
            self.deferred.push(Box::new(|| drop(lookup)));
            return;
        };
        pending.lookup = Some(lookup);
        if pending.woken {
            pending.wake(&mut self.deferred);
        }
    }

    /// The look-up has something to do: the first waiter that polls does it. All waiters are woken, because any one of them may
    /// be dropped first.
    pub(super) fn wake(&mut self, lookup_id: LookupId) {
        if let Some(pending) = self.pending.get_mut(&lookup_id) {
            pending.woken = true;
            // While one waiter polls it, no other can: `put_back` wakes them.
            if pending.lookup.is_some() {
                pending.wake(&mut self.deferred);
            }
        }
    }

    /// Ends a look-up for all its waiters, unless it has ended. Its answer is remembered unless it was forgotten or had not started.
    pub(super) fn end(&mut self, lookup_id: LookupId, answer: Answer, now: Monotonic) {
        let Some(mut pending) = self.pending.remove(&lookup_id) else {
            self.deferred.push(Box::new(|| drop(answer)));
            return;
        };
        let is_listed = self.by_id.get(&pending.id) == Some(&lookup_id);
        if is_listed {
            self.by_id.remove(&pending.id);
        }
        let usage = self.places.usage(pending.history);
        usage.waiting -= pending.places;
        match pending.began {
            Some(_) => usage.running -= 1,
            None => self.places.unqueue(pending.history, lookup_id),
        }
        let began = pending.began.unwrap_or(now);
        let outcome = match answer {
            // An answer that arrives after its lifetime has ended is not used.
            Ok(_) if now.saturating_since(began) >= LIFETIME => {
                Err(Arc::new(LookupError::TimedOut))
            }
            Ok(Some(ring)) => Ok(Arc::new(ring.with_subscription(&pending.id))),
            Ok(None) => Ok(Arc::clone(self.cache.decoy(now))),
            Err(error) => Err(Arc::new(error)),
        };
        // A look-up that all its waiters have left has not failed unless it is overdue: senders that hang up must not fill the
        // list of failed ids.
        let is_left = pending.waiters.is_empty() && !pending.is_overdue(now);
        if is_listed && pending.began.is_some() && !is_left {
            match &outcome {
                Ok(ring) => self.cache.put(&pending.id, ring, began),
                Err(_) => self.cache.put_failed(&pending.id),
            }
        }
        let _ = pending.outcome.set(outcome);
        pending.wake(&mut self.deferred);
        self.deferred.push(Box::new(|| drop(pending)));
        self.start_queued(now);
    }

    /// Removes one waiter. A look-up without waiters ends.
    pub(super) fn leave(&mut self, waiter: &mut Waiter, now: Monotonic) {
        self.give_back_place(waiter);
        let Some(pending) = self.pending.get_mut(&waiter.lookup_id) else {
            return;
        };
        let waker = pending.waiters.remove(&waiter.number);
        self.deferred.push(Box::new(|| drop(waker)));
        if pending.waiters.is_empty() {
            self.end(waiter.lookup_id, Err(LookupError::TimedOut), now);
        }
    }

    /// The last waiter of a look-up that has started stays, without a place, if the answer will be remembered. Any other leaves.
    /// Returns whether it stays. This is one step, so that of two waiters that leave at the same moment exactly one is the
    /// last.
    pub(super) fn detach_if_last(&mut self, waiter: &mut Waiter, now: Monotonic) -> bool {
        let pending = self.pending.get(&waiter.lookup_id);
        let stays = pending.is_some_and(|pending| {
            pending.waiters.keys().eq([&waiter.number])
                && pending.began.is_some()
                && self.by_id.get(&pending.id) == Some(&waiter.lookup_id)
        });
        if stays {
            self.give_back_place(waiter);
        } else {
            self.leave(waiter, now);
        }
        stays
    }

    /// Gives a waiter's place back, unless this or the end of its look-up has done so.
    fn give_back_place(&mut self, waiter: &mut Waiter) {
        if std::mem::take(&mut waiter.takes_place)
            && let Some(pending) = self.pending.get_mut(&waiter.lookup_id)
        {
            pending.places -= 1;
            self.places.usage(pending.history).waiting -= 1;
        }
    }

    /// New deliveries do not join the look-up of this id, or any, and its answer is not remembered; nor is an earlier answer.
    pub(super) fn forget(&mut self, id: Option<&str>) {
        self.cache.forget(id);
        match id {
            Some(id) => drop(self.by_id.remove(id)),
            None => self.by_id.clear(),
        }
    }

    /// Returns the number of look-ups under way, and of deliveries that wait.
    pub(super) fn counts(&self) -> (usize, usize) {
        self.places.counts()
    }

    fn start_queued(&mut self, now: Monotonic) {
        while let Some(lookup_id) = self.places.next() {
            if let Some(pending) = self.pending.get_mut(&lookup_id) {
                pending.began = Some(now);
                pending.woken = true;
                pending.wake(&mut self.deferred);
                self.places.usage(pending.history).running += 1;
            }
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
        let Some(queued) = self.places.last_queued() else {
            return false;
        };
        self.end(queued, Err(LookupError::TooManyWaiting), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the history of an id after the only waiter of its look-up has left at this age.
    fn history_when_left_after(age: Duration) -> IdHistory {
        let mut lookups = Lookups::new(Capacities::default());
        let began = Monotonic::default();
        let begin = |_: &Arc<str>| -> Lookup { Box::pin(std::future::pending()) };
        let waiter = lookups.join("wh_1", began, begin);
        let mut waiter = waiter.unwrap();
        assert_eq!(lookups.counts(), (1, 1));
        lookups.leave(&mut waiter, began.saturating_add(age));
        assert_eq!(lookups.counts(), (0, 0));
        lookups.cache.history("wh_1")
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
        let mut lookups = Lookups::new(Capacities::default());
        let now = Monotonic::default();
        let begin = |_: &Arc<str>| -> Lookup { Box::pin(std::future::pending()) };
        let waiter = lookups.join("wh_1", now, begin);
        let error = LookupError::Panicked;
        lookups.end(waiter.unwrap().lookup_id, Err(error), now);
        assert_eq!(lookups.cache.history("wh_1"), IdHistory::Failed);
    }
}
