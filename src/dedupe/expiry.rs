//! The order in which records end.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Monotonic;

/// The greatest number of ended records that a call frees. More than one, so that a backlog shrinks; bounded, so that no single
/// call frees the whole backlog.
pub(super) const BATCH: usize = 64;

/// A time of a record, in nanoseconds of the clock's monotonic reading: half the size of a [`Monotonic`].
pub(super) type Nanos = u64;

/// Returns the nanoseconds of this reading. One above 584 years is [`Nanos::MAX`], which no reading passes: a record that ends
/// then has no end.
pub(super) fn nanos(reading: Monotonic) -> Nanos {
    nanos_of(reading.since_start())
}

/// Returns the nanoseconds of this lease or retention.
pub(super) fn nanos_of(time: Duration) -> Nanos {
    u64::try_from(time.as_nanos()).unwrap_or(Nanos::MAX)
}

/// Records in the order in which their leases or retentions end.
///
/// A heap is not needed: leases are equally long, and so are retentions, so a new end is nearly always the last. The rare
/// shorter one is inserted at its place. The owner checks whether an entry is still valid for its record: a record that was
/// renewed, settled or claimed again leaves its old entry behind.
pub(super) struct ExpiryQueue<T>(VecDeque<(Nanos, T)>);

impl<T> Default for ExpiryQueue<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> ExpiryQueue<T> {
    pub(super) fn push(&mut self, end: Nanos, record: T) {
        if self.0.back().is_none_or(|(last, _)| *last <= end) {
            self.0.push_back((end, record));
        } else {
            let place = self.0.partition_point(|(other, _)| *other <= end);
            self.0.insert(place, (end, record));
        }
    }

    /// Returns whether the end of the first entry has come.
    pub(super) fn has_ended(&self, now: Nanos) -> bool {
        self.0.front().is_some_and(|(end, _)| *end <= now)
    }

    /// Removes and returns the first entry, if its end has come.
    pub(super) fn pop_ended(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        self.has_ended(now).then(|| self.0.pop_front())?
    }

    /// Drops entries that are no longer valid for a record, once they outnumber the valid ones. On average each push checks one
    /// entry, so this is amortised O(1).
    pub(super) fn tidy(&mut self, live: usize, is_valid: impl Fn(Nanos, &T) -> bool) {
        const WORTH_IT: usize = 64;
        if self.0.len() > live.saturating_mul(2).saturating_add(WORTH_IT) {
            self.0.retain(|(end, record)| is_valid(*end, record));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_leave_in_the_order_of_their_ends_and_not_before() {
        let mut queue = ExpiryQueue::default();
        for end in [5, 9, 9, 2, 7, 1] {
            queue.push(end, ());
        }
        assert_eq!(queue.pop_ended(0), None);
        let mut ends = Vec::new();
        while let Some((end, _)) = queue.pop_ended(7) {
            ends.push(end);
        }
        assert_eq!(ends, [1, 2, 5, 7]);
        assert_eq!(queue.pop_ended(9).map(|(end, _)| end), Some(9));
    }

    #[test]
    fn few_entries_are_left_alone_and_many_are_dropped_whenever_they_became_too_many() {
        let mut queue = ExpiryQueue::default();
        let key = "evt_1";
        for end in 0..60 {
            queue.push(end, key);
            queue.tidy(0, |_, _| panic!("not worth a look"));
        }
        for end in 60..1000 {
            queue.push(end, key);
            queue.tidy(1000, |_, _| panic!("each speaks for a record"));
        }
        // A thousand records have ended at once.
        queue.tidy(1, |end, _| end == 999);
        assert_eq!(queue.0.len(), 1);
    }

    #[test]
    fn entries_left_behind_are_dropped_once_they_are_the_most() {
        let mut queue = ExpiryQueue::default();
        let key = "evt_1";
        for end in 0..1000 {
            queue.push(end, key);
            queue.tidy(1, |other, _| other == end);
            assert!(queue.0.len() <= 67);
        }
    }

    #[test]
    fn a_time_without_end_has_none() {
        assert_eq!(nanos_of(Duration::from_nanos(7)), 7);
        assert_eq!(nanos(Monotonic::new(Duration::MAX)), Nanos::MAX);
    }
}
