//! Converts Rust's types to SQLite's numbers, and back.

use std::time::Duration;

use crate::inbox::entry::unsigned;

/// Returns milliseconds, limited so that a clock's reading plus this number cannot overflow.
pub(super) fn millis(duration: Duration) -> i64 {
    reading(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Returns a reading of the clock, with the same limit.
pub(super) fn reading(unix_millis: u64) -> i64 {
    i64::try_from(unix_millis).map_or(i64::MAX / 4, |millis| millis.min(i64::MAX / 4))
}

pub(super) fn duration(millis: i64) -> Duration {
    Duration::from_millis(unsigned(millis))
}

pub(super) fn narrow(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}
