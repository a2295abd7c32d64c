//! How many look-ups run and how many deliveries wait for them, who is next, and who gives way.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use super::board::Ticket;

/// Look-ups under way at a time.
const MOST_RUNNING: usize = 16;
/// Deliveries that wait for look-ups, queued ones included.
const MOST_WAITING: usize = 1_024;
/// How much of both ids get that were not found lately. The rest is kept for those that were.
const OTHERS_RUNNING: usize = MOST_RUNNING / 4 * 3;
const OTHERS_WAITING: usize = MOST_WAITING / 4 * 3;
/// Of the latter's places, how many those get that join a look-up. The rest is kept for those that begin one: where all places are
/// taken, some of the look-ups are then queued and can give way.
const OTHERS_JOINING: usize = OTHERS_WAITING / 4 * 3;
/// Of those that wait, how many may do so for one id: a burst of copies of one must leave room for all others.
pub(super) const MOST_FOR_ONE: usize = MOST_WAITING / 4;

/// What is known of an id whose keys have to be looked up.
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
    /// Of ids that were not found lately.
    others: Lane,
    /// By [`Standing`]. Tickets are queued as they are numbered.
    queues: [VecDeque<Ticket>; 3],
    /// Whether strangers go before unanswered ids when the next look-up of either begins.
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

    /// Look-ups under way, and deliveries that wait.
    pub(super) fn counts(&self) -> (usize, usize) {
        let (familiar, others) = (&self.familiar, &self.others);
        (
            familiar.running + others.running,
            familiar.waiting + others.waiting,
        )
    }

    /// Whether there is a place for one more, who `joins` a look-up or begins one.
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

    /// Takes the look-up out of its queue that may begin now.
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
        // In turns, so that neither keeps the other from being looked up.
        let (first, second) = if self.strangers_first {
            (strangers, unanswered)
        } else {
            (unanswered, strangers)
        };
        self.strangers_first = !self.strangers_first;
        first.pop_front().or_else(|| second.pop_front())
    }

    /// The look-up that gives way where there is no room for one more id that was not found lately: any one in the longer queue, at random.
    /// If the newcomer were refused instead, it would be refused for as long as senders of invented ids come back at once when they
    /// are answered; if the oldest gave way, those who come in bursts would clear the queue of all others.
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
