//! The order in which records end.

use std::collections::VecDeque;

use super::key::EventKey;
use crate::clock::Monotonic;

/// The greatest number of ended records that a call frees. More than one, so that a backlog shrinks; bounded, so that no single
/// call frees the whole backlog.
pub(super) const BATCH: usize = 64;

/// Keys in the order in which their leases or retentions end.
///
/// A heap is not needed: leases are equally long, and so are retentions, so a new end is nearly always the last. The rare
/// shorter one is inserted at its place. The owner checks whether an entry is still valid for its record: a record that was
/// renewed, settled or claimed again leaves its old entry behind.
#[derive(Debug, Default)]
pub(super) struct ExpiryQueue(VecDeque<(Monotonic, EventKey)>);

impl ExpiryQueue {
    pub(super) fn push(&mut self, end: Monotonic, key: EventKey) {
        if self.0.back().is_none_or(|(last, _)| *last <= end) {
            self.0.push_back((end, key));
        } else {
            let place = self.0.partition_point(|(other, _)| *other <= end);
            self.0.insert(place, (end, key));
        }
    }

    /// Removes and returns the first entry, if its end has come.
    pub(super) fn pop_ended(&mut self, now: Monotonic) -> Option<(Monotonic, EventKey)> {
        self.0
            .front()
            .is_some_and(|(end, _)| *end <= now)
            .then(|| self.0.pop_front())?
    }

    /// Removes and returns the first entry, ended or not.
    pub(super) fn pop_first(&mut self) -> Option<(Monotonic, EventKey)> {
        self.0.pop_front()
    }

    /// Drops entries that are no longer valid for a record, once they outnumber the valid ones. On average each push checks one
    /// entry, so this is amortised O(1).
    pub(super) fn tidy(&mut self, live: usize, speaks: impl Fn(Monotonic, &EventKey) -> bool) {
        const WORTH_IT: usize = 64;
        if self.0.len() > live.saturating_mul(2).saturating_add(WORTH_IT) {
            self.0.retain(|(end, key)| speaks(*end, key));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::new(Duration::from_secs(seconds))
    }

    #[test]
    fn entries_leave_in_the_order_of_their_ends_and_not_before() {
        let mut queue = ExpiryQueue::default();
        for end in [5, 9, 9, 2, 7, 1] {
            queue.push(at(end), EventKey::new("default", &end.to_string()));
        }
        assert_eq!(queue.pop_ended(at(0)), None);
        let mut ends = Vec::new();
        while let Some((end, _)) = queue.pop_ended(at(7)) {
            ends.push(end.since_start().as_secs());
        }
        assert_eq!(ends, [1, 2, 5, 7]);
        assert_eq!(queue.pop_first().map(|(end, _)| end), Some(at(9)));
    }

    #[test]
    fn few_entries_are_left_alone_and_many_are_dropped_whenever_they_became_too_many() {
        let mut queue = ExpiryQueue::default();
        let key = EventKey::new("default", "evt_1");
        for end in 0..60 {
            queue.push(at(end), key);
            queue.tidy(0, |_, _| panic!("not worth a look"));
        }
        for end in 60..1000 {
            queue.push(at(end), key);
            queue.tidy(1000, |_, _| panic!("each speaks for a record"));
        }
        // A thousand records have ended at once.
        queue.tidy(1, |end, _| end == at(999));
        assert_eq!(queue.0.len(), 1);
    }

    #[test]
    fn entries_left_behind_are_dropped_once_they_are_the_most() {
        let mut queue = ExpiryQueue::default();
        let key = EventKey::new("default", "evt_1");
        for end in 0..1000 {
            queue.push(at(end), key);
            queue.tidy(1, |other, _| other == at(end));
            assert!(queue.0.len() <= 67);
        }
    }
}
