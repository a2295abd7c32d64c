//! The limits on look-ups and on the deliveries that wait for them, and the order of the queues.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use super::board::Ticket;

/// Look-ups under way at a time.
const MOST_RUNNING: usize = 16;
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
    /// Its last look-up brought no answer.
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
        if let Ok(place) = queue.binary_search(&ticket) {
            queue.remove(place);
        }
    }

    /// Takes the look-up that may begin now out of its queue.
    pub(super) fn next(&mut self) -> Option<Ticket> {
        let (running, _) = self.counts();
        if running >= MOST_RUNNING {
            return None;
        }
        let [familiar, unanswered, strangers] = &mut self.queues;
        if let Some(ticket) = familiar.pop_front() {
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
        let place = self.random.hash_one(number).checked_rem(queued)?;
        longer.get(usize::try_from(place).ok()?).copied()
    }
}
