//! Look-ups under way, and who waits for them: plain bookkeeping, under one lock, without a wait of its own.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::flight::{Afterwards, Flight, Lookup, Outcome};
use crate::clock::Monotonic;
use crate::error::{LookupError, LookupErrorKind as Kind};

/// Look-ups under way at a time.
pub(super) const MOST_RUNNING: usize = 16;
/// Deliveries that wait for look-ups, queued ones included.
pub(super) const MOST_WAITING: usize = 1_024;
/// How much of both strangers get: ids that were not found lately. The rest is kept for those that were.
const FOR_STRANGERS: (usize, usize) = (3, 4);
/// Of those that wait, how many may do so for one id: a burst of copies of one must leave room for all others.
pub(super) const MOST_FOR_ONE: usize = MOST_WAITING / 4;
/// A look-up that is older than this has failed: whoever comes next begins a new one.
pub(crate) const LONGEST: Duration = Duration::from_secs(5);

pub(super) type Ticket = u64;

#[derive(Default)]
pub(super) struct Board {
    /// The look-up that newcomers join. One that was forgotten is in `flights` alone.
    by_id: HashMap<Arc<str>, Ticket>,
    flights: HashMap<Ticket, Flight>,
    numbers: u64,
    familiar: Lane,
    strangers: Lane,
}

#[derive(Default)]
struct Lane {
    running: usize,
    waiting: usize,
    queue: VecDeque<Ticket>,
}

/// Who waits: for which look-up, and under which number.
#[derive(Clone, Copy)]
pub(super) struct Seat {
    pub(super) ticket: Ticket,
    number: u64,
    /// Whether it takes a place among those that wait. What goes on behind an answer takes none.
    counted: bool,
}

/// What a waiter does next.
pub(super) enum Step {
    Over(Outcome),
    /// It is its turn to poll the look-up.
    Poll(Lookup),
    Wait,
}

/// What a look-up was when it ended.
pub(super) struct Ended {
    pub(super) id: Arc<str>,
    pub(super) began: Monotonic,
}

impl Board {
    /// Joins the look-up of this id, or begins one.
    pub(super) fn join(
        &mut self,
        id: &str,
        familiar: bool,
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
        let familiar = flight.map_or(familiar, |flight| flight.familiar);
        let is_crowded = flight.is_some_and(|flight| flight.present >= MOST_FOR_ONE);
        if is_crowded || !self.has_room(familiar) {
            return Err(LookupError::new(Kind::TooManyWaiting));
        }
        let ticket = joined.unwrap_or_else(|| {
            let id: Arc<str> = id.into();
            let lookup = begin(&id);
            self.queue(id, familiar, lookup)
        });
        self.start_queued(now, after);
        self.lane(familiar).waiting += 1;
        if let Some(flight) = self.flights.get_mut(&ticket) {
            flight.present += 1;
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
            return Step::Over(Err(timed_out())); // not while its seat is taken
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

    /// Takes a look-up back that was polled and is not done.
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

    /// It has something to do: whoever polls first does it. All are woken, since any one of them may be dropped before.
    pub(super) fn knock(&mut self, ticket: Ticket, after: &mut Afterwards) {
        if let Some(flight) = self.flights.get_mut(&ticket)
            && flight.outcome.is_none()
        {
            flight.woken = true;
            // While somebody polls it, nobody else can: `put_back` wakes them.
            if flight.lookup.is_some() {
                flight.wake(after);
            }
        }
    }

    /// The id that is looked up.
    pub(super) fn id(&self, ticket: Ticket) -> Option<Arc<str>> {
        self.flights
            .get(&ticket)
            .map(|flight| Arc::clone(&flight.id))
    }

    /// When a look-up began that has not ended.
    pub(super) fn began(&self, ticket: Ticket) -> Option<Monotonic> {
        let flight = self.flights.get(&ticket)?;
        flight.began.filter(|_| flight.outcome.is_none())
    }

    /// Ends a look-up for all who wait. Says what may be remembered: nothing of one that was forgotten, or had ended.
    pub(super) fn end(
        &mut self,
        ticket: Ticket,
        outcome: Outcome,
        now: Monotonic,
        after: &mut Afterwards,
    ) -> Option<Ended> {
        let flight = self.flights.get_mut(&ticket)?;
        if flight.outcome.is_some() {
            return None;
        }
        flight.outcome = Some(outcome);
        flight.wake(after);
        after.drop.extend(flight.lookup.take());
        let (id, familiar, began) = (Arc::clone(&flight.id), flight.familiar, flight.began);
        let lane = self.lane(familiar);
        match began {
            Some(_) => lane.running -= 1,
            None => lane.queue.retain(|queued| *queued != ticket),
        }
        let listed = self.by_id.get(&id) == Some(&ticket);
        if listed {
            self.by_id.remove(&id);
        }
        self.start_queued(now, after);
        began.filter(|_| listed).map(|began| Ended { id, began })
    }

    /// One waits no more. A look-up that nobody waits for ends.
    pub(super) fn leave(&mut self, seat: Seat, now: Monotonic, after: &mut Afterwards) {
        self.uncount(seat);
        let Some(flight) = self.flights.get_mut(&seat.ticket) else {
            return;
        };
        after.spent.extend(flight.wakers.remove(&seat.number));
        flight.present -= 1;
        if flight.present == 0 {
            self.end(seat.ticket, Err(timed_out()), now, after);
            after.over.extend(self.flights.remove(&seat.ticket));
        }
    }

    /// As `leave`, but the last one who waits for a look-up that has begun stays, without a place, if its answer will be
    /// remembered. Says whether it does. One step, so that of two who leave at one moment one is the last.
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

    /// Newcomers don't join this look-up, and its answer is not remembered.
    pub(super) fn unlist(&mut self, id: &str) {
        self.by_id.remove(id);
    }

    pub(super) fn unlist_all(&mut self) {
        self.by_id.clear();
    }

    /// Look-ups under way, and deliveries that wait.
    pub(super) fn counts(&self) -> (usize, usize) {
        let (familiar, strangers) = (&self.familiar, &self.strangers);
        (
            familiar.running + strangers.running,
            familiar.waiting + strangers.waiting,
        )
    }

    fn lane(&mut self, familiar: bool) -> &mut Lane {
        if familiar {
            &mut self.familiar
        } else {
            &mut self.strangers
        }
    }

    fn queue(&mut self, id: Arc<str>, familiar: bool, lookup: Lookup) -> Ticket {
        self.numbers += 1;
        let ticket = self.numbers;
        self.by_id.insert(Arc::clone(&id), ticket);
        let flight = Flight::new(id, familiar, lookup);
        self.flights.insert(ticket, flight);
        self.lane(familiar).queue.push_back(ticket);
        ticket
    }

    fn start_queued(&mut self, now: Monotonic, after: &mut Afterwards) {
        while let Some(ticket) = self.next_in_line() {
            let Some(flight) = self.flights.get_mut(&ticket) else {
                continue; // a look-up leaves its queue when it ends
            };
            flight.began = Some(now);
            flight.woken = true;
            flight.wake(after);
            let familiar = flight.familiar;
            self.lane(familiar).running += 1;
        }
    }

    fn next_in_line(&mut self) -> Option<Ticket> {
        let (running, _) = self.counts();
        if running >= MOST_RUNNING {
            return None;
        }
        if let Some(ticket) = self.familiar.queue.pop_front() {
            return Some(ticket);
        }
        if self.strangers.running >= share_of_strangers(MOST_RUNNING) {
            return None;
        }
        self.strangers.queue.pop_front()
    }

    fn has_room(&self, familiar: bool) -> bool {
        let (_, waiting) = self.counts();
        let strangers = self.strangers.waiting < share_of_strangers(MOST_WAITING);
        waiting < MOST_WAITING && (familiar || strangers)
    }

    fn is_overdue(&self, ticket: Ticket, now: Monotonic) -> bool {
        self.began(ticket)
            .is_some_and(|began| now.saturating_since(began) >= LONGEST)
    }

    fn uncount(&mut self, seat: Seat) {
        let Some(flight) = self.flights.get(&seat.ticket).filter(|_| seat.counted) else {
            return;
        };
        let familiar = flight.familiar;
        self.lane(familiar).waiting -= 1;
    }
}

const fn share_of_strangers(most: usize) -> usize {
    most * FOR_STRANGERS.0 / FOR_STRANGERS.1
}

fn timed_out() -> Arc<LookupError> {
    Arc::new(LookupError::new(Kind::TimedOut))
}
