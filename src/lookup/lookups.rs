//! The look-ups under way and the deliveries that wait for them. Plain bookkeeping under one lock; it never waits itself.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::error::{LookupError, LookupErrorKind as Kind};
use super::pending::{Deferred, Lookup, Outcome, PendingLookup};
use super::places::{IdHistory, LookupId, MOST_FOR_ONE, Places};
use crate::clock::Monotonic;

/// A look-up that is older than this has failed: the next delivery begins a new one.
pub(crate) const LONGEST: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Lookups {
    /// The look-up that new deliveries join. A look-up that was forgotten is only in `pending`.
    by_id: HashMap<Arc<str>, LookupId>,
    pending: HashMap<LookupId, PendingLookup>,
    numbers: u64,
    places: Places,
    /// Taken and run once the lock is free.
    pub(super) deferred: Deferred,
}

/// One waiter: the look-up that it waits for, and its number.
#[derive(Clone, Copy)]
pub(super) struct Waiter {
    pub(super) lookup_id: LookupId,
    number: u64,
    /// Whether it takes a place among the waiters. A look-up that continues after the answer takes no place.
    counted: bool,
}

/// The next step of a waiter.
pub(super) enum Step {
    Over(Outcome),
    /// This waiter polls the look-up now.
    Poll(Lookup),
    Wait,
}

impl Lookups {
    /// Joins the look-up of this id, or begins one.
    pub(super) fn join(
        &mut self,
        id: &str,
        history: IdHistory,
        now: Monotonic,
        begin: impl FnOnce(&Arc<str>) -> Lookup,
    ) -> Result<Waiter, LookupError> {
        let mut joined = self.by_id.get(id).copied();
        if let Some(lookup_id) = joined
            && self.is_overdue(lookup_id, now)
        {
            self.end(lookup_id, Err(timed_out()), now);
            joined = None;
        }
        let pending = joined.and_then(|lookup_id| self.pending.get(&lookup_id));
        let history = pending.map_or(history, |pending| pending.history);
        let is_crowded = pending.is_some_and(|pending| pending.present >= MOST_FOR_ONE);
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
        if let Some(pending) = self.pending.get_mut(&lookup_id) {
            pending.present += 1;
            pending.places += 1;
        }
        self.numbers += 1;
        Ok(Waiter {
            lookup_id,
            number: self.numbers,
            counted: true,
        })
    }

    pub(super) fn step(&mut self, waiter: Waiter, waker: Waker) -> Step {
        let Some(pending) = self.pending.get_mut(&waiter.lookup_id) else {
            self.deferred.unused_wakers.push(waker);
            return Step::Over(Err(timed_out())); // does not happen while the waiter is taken
        };
        if let Some(outcome) = &pending.outcome {
            self.deferred.unused_wakers.push(waker);
            return Step::Over(outcome.clone());
        }
        if let Some(old) = pending.wakers.insert(waiter.number, waker) {
            self.deferred.unused_wakers.push(old);
        }
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
            _ => self.deferred.drop.push(lookup),
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

    /// Returns the id that is looked up.
    pub(super) fn id(&self, lookup_id: LookupId) -> Option<Arc<str>> {
        self.pending
            .get(&lookup_id)
            .map(|pending| Arc::clone(&pending.id))
    }

    /// Returns the time when a look-up began that has not ended.
    pub(super) fn began(&self, lookup_id: LookupId) -> Option<Monotonic> {
        let pending = self.pending.get(&lookup_id)?;
        pending.began.filter(|_| pending.outcome.is_none())
    }

    /// Ends a look-up for all waiters. Returns its id and beginning, for the cache; `None` if the look-up was forgotten or had already
    /// ended.
    pub(super) fn end(
        &mut self,
        lookup_id: LookupId,
        outcome: Outcome,
        now: Monotonic,
    ) -> Option<(Arc<str>, Monotonic)> {
        let failed = outcome.is_err();
        self.close(lookup_id, outcome, failed, now)
    }

    /// As `end`. `failed` is whether the provider failed or took too long: the id is then marked as failed.
    fn close(
        &mut self,
        lookup_id: LookupId,
        outcome: Outcome,
        failed: bool,
        now: Monotonic,
    ) -> Option<(Arc<str>, Monotonic)> {
        let pending = self.pending.get_mut(&lookup_id)?;
        if pending.outcome.is_some() {
            return None;
        }
        pending.outcome = Some(outcome);
        pending.wake(&mut self.deferred);
        self.deferred.drop.extend(pending.lookup.take());
        let places = mem::take(&mut pending.places);
        let (id, history, began) = (Arc::clone(&pending.id), pending.history, pending.began);
        let usage = self.places.usage(history);
        usage.waiting -= places;
        match began {
            Some(_) => usage.running -= 1,
            None => self.places.unqueue(history, lookup_id),
        }
        let listed = self.by_id.get(&id) == Some(&lookup_id);
        if listed {
            self.by_id.remove(&id);
        }
        if listed && began.is_some() && failed {
            self.deferred.failed.push(Arc::clone(&id));
        }
        self.start_queued(now);
        began.filter(|_| listed).map(|began| (id, began))
    }

    /// Removes one waiter. A look-up without waiters ends. It has not failed unless it is overdue: senders that hang up must not
    /// fill the list of failed ids.
    pub(super) fn leave(&mut self, waiter: Waiter, now: Monotonic) {
        self.uncount(waiter);
        let Some(pending) = self.pending.get_mut(&waiter.lookup_id) else {
            return;
        };
        self.deferred
            .unused_wakers
            .extend(pending.wakers.remove(&waiter.number));
        pending.present -= 1;
        if pending.present == 0 {
            let failed = self.is_overdue(waiter.lookup_id, now);
            self.close(waiter.lookup_id, Err(timed_out()), failed, now);
            self.deferred
                .over
                .extend(self.pending.remove(&waiter.lookup_id));
        }
    }

    /// As `leave`, but the last waiter of a look-up that has begun stays, without a place, if its answer will be remembered.
    /// Returns whether it stays. This is one step, so that of two waiters that leave at the same moment exactly one is the
    /// last.
    #[cfg(feature = "tower")]
    pub(super) fn detach_if_last(&mut self, waiter: &mut Waiter, now: Monotonic) -> bool {
        let stays = self.pending.get(&waiter.lookup_id).is_some_and(|pending| {
            pending.present == 1
                && pending.began.is_some()
                && pending.outcome.is_none()
                && self.by_id.get(&pending.id) == Some(&waiter.lookup_id)
        });
        if stays {
            self.uncount(*waiter);
            waiter.counted = false;
        } else {
            self.leave(*waiter, now);
        }
        stays
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
        let pending = PendingLookup::new(id, history, lookup);
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
        self.end(queued, Err(Arc::new(too_many())), now);
        true
    }

    fn is_overdue(&self, lookup_id: LookupId, now: Monotonic) -> bool {
        self.began(lookup_id)
            .is_some_and(|began| now.saturating_since(began) >= LONGEST)
    }

    /// Gives its place back, unless the end of the look-up has done so.
    fn uncount(&mut self, waiter: Waiter) {
        let Some(pending) = self.pending.get_mut(&waiter.lookup_id) else {
            return;
        };
        if waiter.counted && pending.places > 0 {
            pending.places -= 1;
            let history = pending.history;
            self.places.usage(history).waiting -= 1;
        }
    }
}

fn too_many() -> LookupError {
    LookupError::new(Kind::TooManyWaiting)
}

fn timed_out() -> Arc<LookupError> {
    Arc::new(LookupError::new(Kind::TimedOut))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the ids that are marked as failed when the only waiter of a look-up leaves at this age.
    fn marked_when_left_after(age: Duration) -> usize {
        let mut lookups = Lookups::default();
        let began = Monotonic::default();
        let begin = |_: &Arc<str>| -> Lookup { Box::pin(std::future::pending()) };
        let waiter = lookups.join("wh_1", IdHistory::New, began, begin);
        let waiter = waiter.unwrap();
        assert_eq!(lookups.counts(), (1, 1));
        lookups.leave(waiter, began.saturating_add(age));
        assert_eq!(lookups.counts(), (0, 0));
        lookups.deferred.failed.len()
    }

    #[test]
    fn a_dropped_request_marks_its_id_as_unanswered_only_once_the_look_up_is_overdue() {
        assert_eq!(marked_when_left_after(Duration::ZERO), 0);
        assert_eq!(
            marked_when_left_after(LONGEST - Duration::from_millis(1)),
            0
        );
        assert_eq!(marked_when_left_after(LONGEST), 1);
    }

    #[test]
    fn an_error_of_the_provider_marks_the_id_as_unanswered() {
        let mut lookups = Lookups::default();
        let now = Monotonic::default();
        let begin = |_: &Arc<str>| -> Lookup { Box::pin(std::future::pending()) };
        let waiter = lookups.join("wh_1", IdHistory::New, now, begin);
        let error = Arc::new(LookupError::new(Kind::Unavailable));
        lookups.end(waiter.unwrap().lookup_id, Err(error), now);
        assert_eq!(lookups.deferred.failed, [Arc::<str>::from("wh_1")]);
    }
}
