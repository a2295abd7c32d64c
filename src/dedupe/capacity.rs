//! The capacity of a store in memory, and the numbers that it reports.

use std::time::Duration;

use super::running::Nanos;

/// The number of records that a store in memory remembers, and its behaviour when it is full.
///
/// By default a full store forgets the done records that were committed first, and always remembers
/// this number of the newest. Running claims are never forgotten and do not count towards the
/// capacity. Every event is accepted; in return, a late copy of a forgotten event runs again. The
/// other behaviour is [`refusing_when_full`](Self::refusing_when_full).
///
/// Size it by **rate × retention**: 1 event a second, remembered for 48 h, is 172,800 records; ten
/// a second are 1.7 million. A store that is too small forgets events. A forgotten event that is
/// delivered again runs again: watch [`StoreStats::youngest_evicted`].
///
/// ```
/// use hookgate::dedupe::Capacity;
///
/// assert_eq!(Capacity::default(), Capacity::new(262_144));
/// let refusing = Capacity::new(1_000_000).refusing_when_full();
/// assert_eq!(refusing.records(), 1_000_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    records: usize,
    refuses_when_full: bool,
}

impl Default for Capacity {
    fn default() -> Self {
        Self::new(Self::DEFAULT_RECORDS)
    }
}

/// A capacity of this many records that evicts the oldest when full.
impl From<usize> for Capacity {
    fn from(records: usize) -> Self {
        Self::new(records)
    }
}

impl Capacity {
    /// The default number of records: 2<sup>18</sup>, or 48 h of 1.5 events a second.
    pub const DEFAULT_RECORDS: usize = 262_144;

    /// Returns a capacity of this many records, at least one, that evicts the oldest when full.
    #[must_use]
    pub const fn new(records: usize) -> Self {
        Self {
            records: if records == 0 { 1 } else { records },
            refuses_when_full: false,
        }
    }

    /// Returns a capacity for every event of this time at this rate, which evicts the oldest when
    /// full. A rate that is not a number or is below zero counts as zero.
    ///
    /// ```
    /// use std::time::Duration;
    /// use hookgate::dedupe::Capacity;
    ///
    /// let two_days = Duration::from_secs(48 * 3600);
    /// assert_eq!(Capacity::for_rate(10.0, two_days).records(), 1_728_000);
    /// assert_eq!(Capacity::default().time_covered(10.0), Duration::from_secs_f64(26_214.4)); // 7 h: not even the retries
    /// ```
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // this cast saturates, and the value is never negative
    pub fn for_rate(events_per_second: f64, retention: Duration) -> Self {
        let records = events_per_second.max(0.0) * retention.as_secs_f64();
        Self::new(records.ceil() as usize)
    }

    /// Returns how far back a full store that evicts remembers at this rate. This must not be less
    /// than [`RetrySchedule::minimum_retention`](crate::dedupe::RetrySchedule::minimum_retention).
    /// More than the retention is of no use.
    #[must_use]
    pub fn time_covered(&self, events_per_second: f64) -> Duration {
        #[allow(clippy::cast_precision_loss)]
        // A number of records so large that this rounds it fits into no memory.
        let seconds = self.records as f64 / events_per_second.max(0.0);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// Refuses fresh events when full, with
    /// [`StoreErrorKind::Full`](crate::dedupe::StoreErrorKind::Full), which the sender sees as a
    /// 503. Running claims count towards the capacity, so a claim that was admitted can always be
    ///      committed. No record is forgotten; in return, events wait with the sender until records
    ///      expire, and are lost if that takes longer than its retries.
    #[must_use]
    pub const fn refusing_when_full(mut self) -> Self {
        self.refuses_when_full = true;
        self
    }

    /// Returns the number of records.
    #[must_use]
    pub const fn records(&self) -> usize {
        self.records
    }

    /// Returns whether it refuses fresh events when full.
    #[must_use]
    pub const fn refuses_when_full(&self) -> bool {
        self.refuses_when_full
    }
}

/// The numbers that a store in memory reports: for a metric, not for a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStats {
    /// The number of done records held. Those whose retention has ended count until their memory is
    /// freed.
    pub done: usize,
    /// The number of running claims held. Those whose lease has ended count until their memory is
    /// freed.
    pub running: usize,
    /// The number of done records forgotten before their retention ended, since the store was made.
    pub evicted: u64,
    /// The shortest time that an evicted record was remembered, from its commit to its eviction.
    /// Once this is less than
    /// [`RetrySchedule::minimum_retention`](crate::dedupe::RetrySchedule::minimum_retention), the
    /// store is too small for its rate.
    pub youngest_evicted: Option<Duration>,
    /// How long the record evicted last was remembered. Where the oldest is evicted first, this is
    /// how far back the store remembers at the present rate: unlike the shortest time, it grows
    /// again when the rate falls.
    pub last_evicted: Option<Duration>,
    /// The [capacity](Capacity::records), where there is one. [`MemoryStore`](crate::MemoryStore)
    /// may hold an eighth more.
    pub capacity: Option<usize>,
}

impl StoreStats {
    /// Counts an eviction, unless the record's retention had ended.
    pub(super) fn count_eviction(&mut self, committed: Nanos, end: Nanos, now: Nanos) {
        if end > now {
            let age = Duration::from_nanos(now.saturating_sub(committed));
            self.evicted += 1;
            self.last_evicted = Some(age);
            self.youngest_evicted = Some(self.youngest_evicted.map_or(age, |least| least.min(age)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rate_breaks_the_sum() {
        let day = Duration::from_secs(86_400);
        for (rate, records) in [
            (0.0, 1),
            (-1.0, 1),
            (f64::NAN, 1),
            (0.5, 43_200),
            (1e-9, 1),
            (f64::INFINITY, usize::MAX),
        ] {
            assert_eq!(Capacity::for_rate(rate, day).records(), records, "{rate}");
        }
        let capacity = Capacity::new(86_400);
        assert_eq!(capacity.time_covered(1.0), day);
        for rate in [0.0, -1.0, f64::NAN] {
            assert_eq!(capacity.time_covered(rate), Duration::MAX, "{rate}");
        }
        assert_eq!(capacity.time_covered(f64::INFINITY), Duration::ZERO);
    }
}
