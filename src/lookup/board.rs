//! The look-ups under way and the deliveries that wait for them. Plain bookkeeping under one lock; it never waits itself.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::error::{LookupError, LookupErrorKind as Kind};
use super::flight::{Afterwards, Flight, Lookup, Outcome};
use super::places::{MOST_FOR_ONE, Places, Standing, Ticket};
use crate::clock::Monotonic;

/// A look-up that is older than this has failed: the next delivery begins a new one.
pub(crate) const LONGEST: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Board {
    /// The look-up that new deliveries join. A look-up that was forgotten is only in `flights`.
    by_id: HashMap<Arc<str>, Ticket>,
    flights: HashMap<Ticket, Flight>,
    numbers: u64,
    places: Places,
}

/// One waiter: the look-up that it waits for, and its number.
#[derive(Clone, Copy)]
pub(super) struct Seat {
    pub(super) ticket: Ticket,
    number: u64,
    /// Whether it takes a place among the waiters. A look-up that goes on after the answer takes no place.
    counted: bool,
}

/// The next step of a waiter.
pub(super) enum Step {
    Over(Outcome),
    /// This waiter polls the look-up now.
    Poll(Lookup),
    Wait,
}

impl Board {
    /// Joins the look-up of this id, or begins one.
    pub(super) fn join(
        &mut self,
        id: &str,
        standing: Standing,
        now: Monotonic,
        begin: impl FnOnce(&Arc<str>) -> Lookup,
        after: &mut Afterwards,
    ) -> Result<Seat, LookupError> {
        let mut joined = self.by_id.get(id).copied();
        if let Some(ticket) = joined
            && self.is_overdue(ticket, now)
        {
            self.end(ticket, Err(timed_out()), now, after);
            joined = None;
        }
        let flight = joined.and_then(|ticket| self.flights.get(&ticket));
        let standing = flight.map_or(standing, |flight| flight.standing);
        let is_crowded = flight.is_some_and(|flight| flight.present >= MOST_FOR_ONE);
        if is_crowded || !self.makes_room(standing, flight.is_some(), now, after) {
            return Err(too_many());
        }
        let ticket = joined.unwrap_or_else(|| {
            let id: Arc<str> = id.into();
            let lookup = begin(&id);
            self.queue(id, standing, lookup)
        });
        self.start_queued(now, after);
        self.places.lane(standing).waiting += 1;
        if let Some(flight) = self.flights.get_mut(&ticket) {
            flight.present += 1;
            flight.places += 1;
        }
        self.numbers += 1;
        Ok(Seat {
            ticket,
            number: self.numbers,
            counted: true,
        })
    }

    pub(super) fn step(&mut self, seat: Seat, waker: Waker, after: &mut Afterwards) -> Step {
        let Some(flight) = self.flights.get_mut(&seat.ticket) else {
            after.spent.push(waker);
            return Step::Over(Err(timed_out())); // does not happen while the seat is taken
        };
        if let Some(outcome) = &flight.outcome {
            after.spent.push(waker);
            return Step::Over(outcome.clone());
        }
        if let Some(old) = flight.wakers.insert(seat.number, waker) {
            after.spent.push(old);
        }
        if flight.woken
            && let Some(lookup) = flight.lookup.take()
        {
            flight.woken = false;
            return Step::Poll(lookup);
        }
        Step::Wait
    }

    /// Takes back a look-up that was polled and is not done.
    pub(super) fn put_back(&mut self, ticket: Ticket, lookup: Lookup, after: &mut Afterwards) {
        match self.flights.get_mut(&ticket) {
            Some(flight) if flight.outcome.is_none() => {
                flight.lookup = Some(lookup);
                if flight.woken {
                    flight.wake(after);
                }
            }
            _ => after.drop.push(lookup),
        }
    }

    /// The look-up has something to do: the first waiter that polls does it. All waiters are woken, because any one of them may
    /// be dropped first.
    pub(super) fn knock(&mut self, ticket: Ticket, after: &mut Afterwards) {
        if let Some(flight) = self.flights.get_mut(&ticket)
            && flight.outcome.is_none()
        {
            flight.woken = true;
            // While one waiter polls it, no other can: `put_back` wakes them.
            if flight.lookup.is_some() {
                flight.wake(after);
            }
        }
    }

    /// Returns the id that is looked up.
    pub(super) fn id(&self, ticket: Ticket) -> Option<Arc<str>> {
        self.flights
            .get(&ticket)
            .map(|flight| Arc::clone(&flight.id))
    }

    /// Returns the time when a look-up began that has not ended.
    pub(super) fn began(&self, ticket: Ticket) -> Option<Monotonic> {
        let flight = self.flights.get(&ticket)?;
        flight.began.filter(|_| flight.outcome.is_none())
    }

    /// Ends a look-up for all waiters. Returns its id and beginning, for the cache; `None` if the look-up was forgotten or had already
    /// ended.
    pub(super) fn end(
        &mut self,
        ticket: Ticket,
        outcome: Outcome,
        now: Monotonic,
        after: &mut Afterwards,
    ) -> Option<(Arc<str>, Monotonic)> {
        let failed = outcome.is_err();
        self.close(ticket, outcome, failed, now, after)
    }

    /// As `end`. `failed` is whether the provider failed or took too long: the id is then marked as unanswered.
    fn close(
        &mut self,
        ticket: Ticket,
        outcome: Outcome,
        failed: bool,
        now: Monotonic,
        after: &mut Afterwards,
    ) -> Option<(Arc<str>, Monotonic)> {
        let flight = self.flights.get_mut(&ticket)?;
        if flight.outcome.is_some() {
            return None;
        }
        flight.outcome = Some(outcome);
        flight.wake(after);
        after.drop.extend(flight.lookup.take());
        let places = mem::take(&mut flight.places);
        let (id, standing, began) = (Arc::clone(&flight.id), flight.standing, flight.began);
        let lane = self.places.lane(standing);
        lane.waiting -= places;
        match began {
            Some(_) => lane.running -= 1,
            None => self.places.unqueue(standing, ticket),
        }
        let listed = self.by_id.get(&id) == Some(&ticket);
        if listed {
            self.by_id.remove(&id);
        }
        if listed && began.is_some() && failed {
            after.unanswered.push(Arc::clone(&id));
        }
        self.start_queued(now, after);
        began.filter(|_| listed).map(|began| (id, began))
    }

    /// Removes one waiter. A look-up without waiters ends. It has not failed unless it is overdue: senders that hang up must not
    /// fill the list of failed ids.
    pub(super) fn leave(&mut self, seat: Seat, now: Monotonic, after: &mut Afterwards) {
        self.uncount(seat);
        let Some(flight) = self.flights.get_mut(&seat.ticket) else {
            return;
        };
        after.spent.extend(flight.wakers.remove(&seat.number));
        flight.present -= 1;
        if flight.present == 0 {
            let failed = self.is_overdue(seat.ticket, now);
            self.close(seat.ticket, Err(timed_out()), failed, now, after);
            after.over.extend(self.flights.remove(&seat.ticket));
        }
    }

    /// As `leave`, but the last waiter of a look-up that has begun stays, without a place, if its answer will be remembered.
    /// Returns whether it stays. This is one step, so that of two waiters that leave at the same moment exactly one is the
    /// last.
    #[cfg(feature = "tower")]
    pub(super) fn stay_behind(
        &mut self,
        seat: &mut Seat,
        now: Monotonic,
        after: &mut Afterwards,
    ) -> bool {
        let stays = self.flights.get(&seat.ticket).is_some_and(|flight| {
            flight.present == 1
                && flight.began.is_some()
                && flight.outcome.is_none()
                && self.by_id.get(&flight.id) == Some(&seat.ticket)
        });
        if stays {
            self.uncount(*seat);
            seat.counted = false;
        } else {
            self.leave(*seat, now, after);
        }
        stays
    }

    /// New deliveries do not join this look-up, and its answer is not remembered.
    pub(super) fn unlist(&mut self, id: &str) {
        self.by_id.remove(id);
    }

    pub(super) fn unlist_all(&mut self) {
        self.by_id.clear();
    }

    /// Returns the number of look-ups under way, and of deliveries that wait.
    pub(super) fn counts(&self) -> (usize, usize) {
        self.places.counts()
    }

    fn queue(&mut self, id: Arc<str>, standing: Standing, lookup: Lookup) -> Ticket {
        self.numbers += 1;
        let ticket = self.numbers;
        self.by_id.insert(Arc::clone(&id), ticket);
        let flight = Flight::new(id, standing, lookup);
        self.flights.insert(ticket, flight);
        self.places.queue(standing, ticket);
        ticket
    }

    fn start_queued(&mut self, now: Monotonic, after: &mut Afterwards) {
        while let Some(ticket) = self.places.next() {
            let Some(flight) = self.flights.get_mut(&ticket) else {
                continue; // a look-up leaves its queue when it ends
            };
            flight.began = Some(now);
            flight.woken = true;
            flight.wake(after);
            let standing = flight.standing;
            self.places.lane(standing).running += 1;
        }
    }

    /// Returns whether there is a place for one more waiter. If needed, a queued look-up gives up its place.
    fn makes_room(
        &mut self,
        standing: Standing,
        joins: bool,
        now: Monotonic,
        after: &mut Afterwards,
    ) -> bool {
        if self.places.has_room(standing, joins) {
            return true;
        }
        if joins || standing == Standing::Familiar {
            return false;
        }
        self.numbers += 1;
        let Some(queued) = self.places.gives_way(self.numbers) else {
            return false;
        };
        self.end(queued, Err(Arc::new(too_many())), now, after);
        true
    }

    fn is_overdue(&self, ticket: Ticket, now: Monotonic) -> bool {
        self.began(ticket)
            .is_some_and(|began| now.saturating_since(began) >= LONGEST)
    }

    /// Gives its place back, unless the end of the look-up has done so.
    fn uncount(&mut self, seat: Seat) {
        let Some(flight) = self.flights.get_mut(&seat.ticket) else {
            return;
        };
        if seat.counted && flight.places > 0 {
            flight.places -= 1;
            let standing = flight.standing;
            self.places.lane(standing).waiting -= 1;
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

    /// Returns the ids that are marked as unanswered when the only waiter of a look-up leaves at this age.
    fn marked_when_left_after(age: Duration) -> usize {
        let (mut board, mut after) = (Board::default(), Afterwards::default());
        let began = Monotonic::default();
        let begin = |_: &Arc<str>| -> Lookup { Box::pin(std::future::pending()) };
        let seat = board.join("wh_1", Standing::Stranger, began, begin, &mut after);
        let seat = seat.unwrap();
        assert_eq!(board.counts(), (1, 1));
        board.leave(seat, began.saturating_add(age), &mut after);
        assert_eq!(board.counts(), (0, 0));
        after.unanswered.len()
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
        let (mut board, mut after) = (Board::default(), Afterwards::default());
        let now = Monotonic::default();
        let begin = |_: &Arc<str>| -> Lookup { Box::pin(std::future::pending()) };
        let seat = board.join("wh_1", Standing::Stranger, now, begin, &mut after);
        let error = Arc::new(LookupError::new(Kind::Unavailable));
        board.end(seat.unwrap().ticket, Err(error), now, &mut after);
        assert_eq!(after.unanswered, [Arc::<str>::from("wh_1")]);
    }
}
