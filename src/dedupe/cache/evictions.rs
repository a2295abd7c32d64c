//! The evictions of a full store, counted from the order of commits.

use std::collections::VecDeque;
use std::time::Duration;

use crate::dedupe::capacity::StoreStats;

/// Some of the commits that are still remembered, and the number of those that no longer are. Each list has every n-th commit in
/// the order of commits, so that all lists are equally long, whichever ids a sender chooses.
///
/// A record is evicted once as many commits have followed it as the store remembers, in whichever shard it lies. So the
/// evicted records and their ages follow from the places in that order. A record whose retention had ended before does not count.
#[derive(Debug, Default)]
pub(super) struct Evictions {
    /// The place and the time of each commit, in order.
    remembered: VecDeque<(u64, u64)>,
    /// The retention of the records from each place on. One entry where all retentions are equal, as they are in a
    /// receiver, so that a record takes sixteen bytes here and not twenty-four.
    retentions: VecDeque<(u64, u64)>,
    count: u64,
    youngest: Option<u64>,
    /// The place and the age of the last one counted.
    last: Option<(u64, u64)>,
}

impl Evictions {
    /// Notes a commit. Times are in nanoseconds; `retain` is how long the record is kept.
    pub(super) fn committed(&mut self, place: u64, now: u64, retain: u64) {
        // A commit that a later one overtook on the way here may get its neighbour's retention. This affects only the
        // count.
        if self
            .retentions
            .back()
            .is_none_or(|(_, last)| *last != retain)
        {
            insert(&mut self.retentions, place, retain);
        }
        insert(&mut self.remembered, place, now);
    }

    /// Counts the commits before this place: all of them are forgotten.
    pub(super) fn count_before(&mut self, first: u64, now: u64) {
        while let Some(&(place, committed)) = self.remembered.front()
            && place < first
        {
            self.remembered.pop_front();
            while self
                .retentions
                .get(1)
                .is_some_and(|(from, _)| *from <= place)
            {
                self.retentions.pop_front();
            }
            let retain = self.retentions.front().map_or(0, |(_, retain)| *retain);
            if committed.saturating_add(retain) > now {
                let age = now.saturating_sub(committed);
                self.count += 1;
                self.youngest = Some(self.youngest.map_or(age, |youngest| youngest.min(age)));
                self.last = Some((place, age));
            }
        }
    }

    /// Returns the room that its lists take, in entries.
    #[cfg(all(test, not(shuttle)))]
    pub(super) fn room(&self) -> usize {
        self.remembered.capacity() + self.retentions.capacity()
    }

    /// Adds the counts of this list. `last` is the place and the age of the last eviction in the lists added before.
    pub(super) fn add_to(&self, stats: &mut StoreStats, last: &mut Option<(u64, u64)>) {
        stats.evicted += self.count;
        let ages = [
            stats.youngest_evicted,
            self.youngest.map(Duration::from_nanos),
        ];
        stats.youngest_evicted = ages.into_iter().flatten().min();
        *last = (*last).max(self.last);
        stats.last_evicted = last.map(|(_, age)| Duration::from_nanos(age));
    }
}

/// Inserts by place: nearly always at the end.
fn insert(list: &mut VecDeque<(u64, u64)>, place: u64, value: u64) {
    let before = list.iter().rposition(|(other, _)| *other < place);
    list.insert(before.map_or(0, |at| at + 1), (place, value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_overtaken_within_its_retention_is_counted_with_its_age() {
        let mut evictions = Evictions::default();
        // The retentions differ, and some have ended when the record would be evicted.
        for (place, now, retain) in [
            (0, 10, 10),
            (2, 11, 100),
            (3, 12, 100),
            (7, 13, 7),
            (9, 14, u64::MAX),
        ] {
            evictions.committed(place, now, retain);
        }
        let counted = |evictions: &Evictions| {
            let mut stats = StoreStats::default();
            evictions.add_to(&mut stats, &mut None);
            let nanos = |age: Option<Duration>| age.map(|age| age.as_nanos());
            (
                stats.evicted,
                nanos(stats.youngest_evicted),
                nanos(stats.last_evicted),
            )
        };
        evictions.count_before(0, 15);
        assert_eq!(counted(&evictions), (0, None, None));
        evictions.count_before(3, 20);
        assert_eq!(counted(&evictions), (1, Some(9), Some(9)));
        evictions.count_before(9, 111);
        assert_eq!(counted(&evictions), (2, Some(9), Some(99)));
        evictions.count_before(10, 1_000);
        assert_eq!(counted(&evictions), (3, Some(9), Some(986)));
        evictions.count_before(u64::MAX, 1_000);
        assert_eq!(counted(&evictions), (3, Some(9), Some(986)));
    }

    #[test]
    fn a_commit_that_comes_after_a_later_one_is_counted_in_its_turn() {
        let mut evictions = Evictions::default();
        for (place, now, retain) in [(0, 0, 100), (32, 2, 100), (16, 1, 5), (48, 3, 100)] {
            evictions.committed(place, now, retain);
        }
        evictions.count_before(17, 4);
        let (mut stats, mut last) = (StoreStats::default(), None);
        evictions.add_to(&mut stats, &mut last);
        assert_eq!((stats.evicted, last), (2, Some((16, 3))));
        assert_eq!(evictions.remembered, [(32, 2), (48, 3)]);
    }

    #[test]
    fn the_last_of_all_lists_is_the_one_with_the_last_place() {
        let (mut one, mut other) = (Evictions::default(), Evictions::default());
        one.committed(0, 0, 100);
        other.committed(1, 5, 100);
        one.committed(2, 7, 100);
        for list in [&mut one, &mut other] {
            list.count_before(3, 20);
        }
        for lists in [[&one, &other], [&other, &one]] {
            let (mut stats, mut last) = (StoreStats::default(), None);
            for list in lists {
                list.add_to(&mut stats, &mut last);
            }
            assert_eq!(stats.evicted, 3);
            assert_eq!(stats.youngest_evicted, Some(Duration::from_nanos(13)));
            assert_eq!(stats.last_evicted, Some(Duration::from_nanos(13)));
        }
        let (mut stats, mut last) = (StoreStats::default(), None);
        other.add_to(&mut stats, &mut last);
        assert_eq!(stats.last_evicted, Some(Duration::from_nanos(15)));
    }

    #[test]
    fn equal_retentions_take_one_entry() {
        let mut evictions = Evictions::default();
        for n in 0..1_000 {
            evictions.committed(n, n, 5);
            evictions.count_before(n.saturating_sub(10), n);
        }
        assert_eq!(
            (evictions.retentions.len(), evictions.remembered.len()),
            (1, 11)
        );
    }
}
