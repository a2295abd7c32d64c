//! Converts Rust's times to SQLite's numbers, and back.

use std::time::Duration;

/// Returns milliseconds, limited so that a clock's reading plus this number cannot overflow.
pub(crate) fn millis(duration: Duration) -> i64 {
    reading(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Returns a reading of the clock, with the same limit.
pub(crate) fn reading(unix_millis: u64) -> i64 {
    i64::try_from(unix_millis).map_or(i64::MAX / 4, |millis| millis.min(i64::MAX / 4))
}

/// Returns the time of this number of milliseconds. A negative number is none.
pub(crate) fn duration(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}

/// Returns a stored count or time; a negative one becomes zero.
#[cfg(feature = "inbox")]
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
