//! The limits on look-ups and on the deliveries that wait for them, and the order of the queues.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

/// The number of a look-up: a later one has a greater number.
pub(super) type Ticket = u64;

/// Look-ups under way at a time.
const MOST_RUNNING: usize = 16;
/// The part of it for ids that were found lately, while look-ups of other ids are queued. If the look-ups of known subscriptions
/// fill the database, the first look-up of a new subscription still begins.
const FAMILIAR_RUNNING: usize = MOST_RUNNING - 2;
/// Deliveries that wait for look-ups, queued ones included.
const MOST_WAITING: usize = 1_024;
/// The part of both limits for ids that were not found lately. The rest is kept for ids that were found lately.
const OTHERS_RUNNING: usize = MOST_RUNNING / 4 * 3;
const OTHERS_WAITING: usize = MOST_WAITING / 4 * 3;
/// The part of these waiting places for deliveries that join a look-up. The rest is kept for deliveries that begin a look-up:
/// if all places are taken, some look-ups are then queued and can give up their place.
const OTHERS_JOINING: usize = OTHERS_WAITING / 4 * 3;
/// The most waiters for one id: a burst of copies of one id must leave room for all others.
pub(super) const MOST_FOR_ONE: usize = MOST_WAITING / 4;

/// The state of an id whose keys have to be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It was found lately.
    Familiar,
    /// Its last look-up failed or timed out.
    Unanswered,
    Stranger,
}

#[derive(Default)]
pub(super) struct Places {
    familiar: Lane,
    /// The lane of ids that were not found lately.
    others: Lane,
    /// One queue for each [`Standing`]. Tickets are queued in the order of their numbers.
    queues: [VecDeque<Ticket>; 3],
    /// Whether never-seen ids go before unanswered ids when the next look-up of either begins.
    strangers_first: bool,
    random: RandomState,
}

#[derive(Default)]
pub(super) struct Lane {
    pub(super) running: usize,
    pub(super) waiting: usize,
}

impl Places {
    pub(super) fn lane(&mut self, standing: Standing) -> &mut Lane {
        match standing {
            Standing::Familiar => &mut self.familiar,
            Standing::Unanswered | Standing::Stranger => &mut self.others,
        }
    }

    /// Returns the number of look-ups under way, and of deliveries that wait.
    pub(super) fn counts(&self) -> (usize, usize) {
        let (familiar, others) = (&self.familiar, &self.others);
        (
            familiar.running + others.running,
            familiar.waiting + others.waiting,
        )
    }

    /// Returns whether there is a place for one more waiter, which `joins` a look-up or begins one.
    pub(super) fn has_room(&self, standing: Standing, joins: bool) -> bool {
        let (_, waiting) = self.counts();
        let most = if joins {
            OTHERS_JOINING
        } else {
            OTHERS_WAITING
        };
        waiting < MOST_WAITING && (standing == Standing::Familiar || self.others.waiting < most)
    }

    pub(super) fn queue(&mut self, standing: Standing, ticket: Ticket) {
        self.queues[standing as usize].push_back(ticket);
    }

    pub(super) fn unqueue(&mut self, standing: Standing, ticket: Ticket) {
        let queue = &mut self.queues[standing as usize];
        if let Ok(index) = queue.binary_search(&ticket) {
            queue.remove(index);
        }
    }

    /// Takes the look-up that may begin now out of its queue.
    pub(super) fn next(&mut self) -> Option<Ticket> {
        let (running, _) = self.counts();
        if running >= MOST_RUNNING {
            return None;
        }
        let [familiar, unanswered, strangers] = &mut self.queues;
        let are_others_queued = !(unanswered.is_empty() && strangers.is_empty());
        if !(are_others_queued && self.familiar.running >= FAMILIAR_RUNNING)
            && let Some(ticket) = familiar.pop_front()
        {
            return Some(ticket);
        }
        if self.others.running >= OTHERS_RUNNING {
            return None;
        }
        // The two queues take turns, so that neither blocks the other.
        let (first, second) = if self.strangers_first {
            (strangers, unanswered)
        } else {
            (unanswered, strangers)
        };
        self.strangers_first = !self.strangers_first;
        first.pop_front().or_else(|| second.pop_front())
    }

    /// Returns the look-up that gives up its place if there is no room for one more id that was not found lately: a random one
    /// in the longer queue. If the new look-up were refused instead, it would be refused as long as senders of invented ids
    /// come back at once after each answer. If the oldest gave up its place, senders of bursts would clear the queue of all
    /// others.
    pub(super) fn gives_way(&self, number: u64) -> Option<Ticket> {
        let [_, unanswered, strangers] = &self.queues;
        let longer = if unanswered.len() > strangers.len() {
            unanswered
        } else {
            strangers
        };
        let queued = u64::try_from(longer.len()).ok()?;
        let index = self.random.hash_one(number).checked_rem(queued)?;
        longer.get(usize::try_from(index).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begins all look-ups that may begin now. The tickets below 1,000 are those of ids that were found lately.
    fn begin(places: &mut Places) -> Vec<Ticket> {
        let mut begun = Vec::new();
        while let Some(ticket) = places.next() {
            let standing = if ticket < 1_000 {
                Standing::Familiar
            } else {
                Standing::Stranger
            };
            places.lane(standing).running += 1;
            begun.push(ticket);
        }
        begun
    }

    #[test]
    fn look_ups_of_known_ids_that_fill_all_places_leave_two_to_queued_ones_of_new_ids() {
        let mut places = Places::default();
        for ticket in 0..100 {
            places.queue(Standing::Familiar, ticket);
        }
        // No other look-up is queued: they take all places.
        assert_eq!(begin(&mut places).len(), MOST_RUNNING);
        for standing in [Standing::Stranger, Standing::Unanswered] {
            for ticket in 1_000..1_003 {
                places.queue(standing, ticket);
            }
        }
        let mut begun = Vec::new();
        for _ in 0..4 {
            places.lane(Standing::Familiar).running -= 1;
            begun.extend(begin(&mut places));
        }
        assert_eq!(begun, [1_000, 1_000, 16, 17]);
        let running = (places.familiar.running, places.others.running);
        assert_eq!(running, (FAMILIAR_RUNNING, 2));
        // Each place of a new id goes to the next one, and none of a known id is taken for it.
        for next in [1_001, 1_001, 1_002, 1_002] {
            places.lane(Standing::Stranger).running -= 1;
            assert_eq!(begin(&mut places), [next]);
        }
        // No other look-up is queued any more.
        places.lane(Standing::Stranger).running -= 2;
        assert_eq!(begin(&mut places), [18, 19]);
    }

    #[test]
    fn look_ups_of_new_ids_leave_four_places_to_known_ones() {
        let mut places = Places::default();
        for ticket in 1_000..1_100 {
            places.queue(Standing::Stranger, ticket);
        }
        assert_eq!(begin(&mut places).len(), OTHERS_RUNNING);
        for ticket in 0..100 {
            places.queue(Standing::Familiar, ticket);
        }
        assert_eq!(begin(&mut places), [0, 1, 2, 3]);
    }
}
