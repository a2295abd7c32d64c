//! Converts Rust's types to PostgreSQL's numbers, and back.

use std::time::Duration;

/// The longest retention, lease or wait: PostgreSQL can add it to any other time.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

/// Returns seconds for `$n * interval '1 second'`.
pub(super) fn seconds(time: Duration) -> f64 {
    time.min(LONGEST).as_secs_f64()
}

/// Returns the time of this number of seconds, if there is one. A negative number is zero.
pub(super) fn time(seconds: Option<f64>) -> Option<Duration> {
    let seconds = seconds?;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

pub(super) fn at_most(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns a stored count or time; a negative one becomes zero.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
