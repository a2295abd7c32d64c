//! The times at which records end.

use std::time::Duration;

use crate::clock::Monotonic;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_end_has_none() {
        assert_eq!(nanos_of(Duration::from_nanos(7)), 7);
        assert_eq!(nanos(Monotonic::new(Duration::MAX)), Nanos::MAX);
    }
}
