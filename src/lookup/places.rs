//! The limits on look-ups and on the deliveries that wait for them, and the order of the queues.

use std::collections::VecDeque;

use super::cache::IdHistory;

/// The number of a look-up: a later one has a greater number.
pub(super) type LookupId = u64;

/// Look-ups under way at a time.
const MAX_RUNNING: usize = 16;
/// The part of it for ids that were found lately, while look-ups of other ids are queued. If the look-ups of known subscriptions
/// fill the database, the first look-up of a new subscription still begins.
const FOUND_RUNNING: usize = MAX_RUNNING - 2;
/// Deliveries that wait for look-ups, queued ones included.
const MAX_WAITING: usize = 1_024;
/// The part of both limits for ids that were not found lately. The rest is kept for ids that were found lately.
const OTHERS_RUNNING: usize = MAX_RUNNING / 4 * 3;
const OTHERS_WAITING: usize = MAX_WAITING / 4 * 3;
/// The part of these waiting places for deliveries that join a look-up. The rest is kept for deliveries that begin a look-up:
/// if all places are taken, some look-ups are then queued and can give up their place.
const OTHERS_JOINING: usize = OTHERS_WAITING / 4 * 3;
/// The most waiters for one id: a burst of copies of one id must leave room for all others.
pub(super) const MAX_FOR_ONE: usize = MAX_WAITING / 4;

#[derive(Default)]
pub(super) struct Places {
    found: Usage,
    /// The usage of ids that were not found lately.
    others: Usage,
    /// One queue for each [`IdHistory`].
    queues: [VecDeque<LookupId>; 3],
    /// Whether never-seen ids go before failed ids when the next look-up of either begins.
    new_first: bool,
}

#[derive(Default)]
pub(super) struct Usage {
    pub(super) running: usize,
    pub(super) waiting: usize,
}

impl Places {
    pub(super) fn usage(&mut self, history: IdHistory) -> &mut Usage {
        match history {
            IdHistory::Found => &mut self.found,
            IdHistory::Failed | IdHistory::New => &mut self.others,
        }
    }

    /// Returns the number of look-ups under way, and of deliveries that wait.
    pub(super) fn counts(&self) -> (usize, usize) {
        let (found, others) = (&self.found, &self.others);
        (
            found.running + others.running,
            found.waiting + others.waiting,
        )
    }

    /// Returns whether there is a place for one more waiter, which `joins` a look-up or begins one.
    pub(super) fn has_room(&self, history: IdHistory, joins: bool) -> bool {
        let (_, waiting) = self.counts();
        let most = if joins {
            OTHERS_JOINING
        } else {
            OTHERS_WAITING
        };
        waiting < MAX_WAITING && (history == IdHistory::Found || self.others.waiting < most)
    }

    pub(super) fn queue(&mut self, history: IdHistory, lookup_id: LookupId) {
        self.queues[history as usize].push_back(lookup_id);
    }

    pub(super) fn unqueue(&mut self, history: IdHistory, lookup_id: LookupId) {
        self.queues[history as usize].retain(|queued| *queued != lookup_id);
    }

    /// Takes the look-up that may begin now out of its queue.
    pub(super) fn next(&mut self) -> Option<LookupId> {
        let (running, _) = self.counts();
        if running >= MAX_RUNNING {
            return None;
        }
        let [found, failed, new] = &mut self.queues;
        let are_others_queued = !(failed.is_empty() && new.is_empty());
        if !(are_others_queued && self.found.running >= FOUND_RUNNING)
            && let Some(lookup_id) = found.pop_front()
        {
            return Some(lookup_id);
        }
        if self.others.running >= OTHERS_RUNNING {
            return None;
        }
        // The two queues take turns, so that neither blocks the other.
        let (first, second) = if self.new_first {
            (new, failed)
        } else {
            (failed, new)
        };
        self.new_first = !self.new_first;
        first.pop_front().or_else(|| second.pop_front())
    }

    /// Returns the look-up that gives up its place if there is no room for one more id that was not found lately: the last one
    /// in the longer queue. If the new look-up were refused instead, it would be refused as long as senders of invented ids
    /// come back at once after each answer. If the first gave up its place, senders of bursts would clear the queue of all
    /// others.
    pub(super) fn last_queued(&self) -> Option<LookupId> {
        let [_, failed, new] = &self.queues;
        let longer = if failed.len() > new.len() {
            failed
        } else {
            new
        };
        longer.back().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begins all look-ups that may begin now. The tickets below 1,000 are those of ids that were found lately.
    fn begin(places: &mut Places) -> Vec<LookupId> {
        let mut started = Vec::new();
        while let Some(lookup_id) = places.next() {
            let history = if lookup_id < 1_000 {
                IdHistory::Found
            } else {
                IdHistory::New
            };
            places.usage(history).running += 1;
            started.push(lookup_id);
        }
        started
    }

    #[test]
    fn look_ups_of_known_ids_that_fill_all_places_leave_two_to_queued_ones_of_new_ids() {
        let mut places = Places::default();
        for lookup_id in 0..100 {
            places.queue(IdHistory::Found, lookup_id);
        }
        // No other look-up is queued: they take all places.
        assert_eq!(begin(&mut places).len(), MAX_RUNNING);
        for history in [IdHistory::New, IdHistory::Failed] {
            for lookup_id in 1_000..1_003 {
                places.queue(history, lookup_id);
            }
        }
        let mut started = Vec::new();
        for _ in 0..4 {
            places.usage(IdHistory::Found).running -= 1;
            started.extend(begin(&mut places));
        }
        assert_eq!(started, [1_000, 1_000, 16, 17]);
        let running = (places.found.running, places.others.running);
        assert_eq!(running, (FOUND_RUNNING, 2));
        // Each place of a new id goes to the next one, and none of a known id is taken for it.
        for next in [1_001, 1_001, 1_002, 1_002] {
            places.usage(IdHistory::New).running -= 1;
            assert_eq!(begin(&mut places), [next]);
        }
        // No other look-up is queued any more.
        places.usage(IdHistory::New).running -= 2;
        assert_eq!(begin(&mut places), [18, 19]);
    }

    #[test]
    fn look_ups_of_new_ids_leave_four_places_to_known_ones() {
        let mut places = Places::default();
        for lookup_id in 1_000..1_100 {
            places.queue(IdHistory::New, lookup_id);
        }
        assert_eq!(begin(&mut places).len(), OTHERS_RUNNING);
        for lookup_id in 0..100 {
            places.queue(IdHistory::Found, lookup_id);
        }
        assert_eq!(begin(&mut places), [0, 1, 2, 3]);
    }
}
