//! Converts Rust's types to PostgreSQL's numbers.

use std::time::Duration;

/// The longest retention, lease or wait: PostgreSQL can add it to any other time.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

/// Returns seconds for `$n * interval '1 second'`.
pub(super) fn seconds(time: Duration) -> f64 {
    time.min(LONGEST).as_secs_f64()
}

pub(super) fn at_most(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
