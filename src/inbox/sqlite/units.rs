//! Converts Rust's types to SQLite's numbers, and back.

use std::time::Duration;

use crate::inbox::engine::EntryState;

/// Returns milliseconds, limited so that a clock's reading plus this number cannot overflow.
pub(super) fn millis(duration: Duration) -> i64 {
    const MOST: i64 = i64::MAX / 4;
    i64::try_from(duration.as_millis()).map_or(MOST, |millis| millis.min(MOST))
}

/// Returns a reading of the clock, with the same limit.
pub(super) fn reading(unix_millis: u64) -> i64 {
    const MOST: i64 = i64::MAX / 4;
    i64::try_from(unix_millis).map_or(MOST, |millis| millis.min(MOST))
}

pub(super) fn duration(millis: i64) -> Duration {
    Duration::from_millis(unsigned(millis))
}

/// Returns the number, or zero if it is negative.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

pub(super) fn narrow(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

pub(super) fn state_number(state: EntryState) -> i64 {
    match state {
        EntryState::Queued => 0,
        EntryState::Running => 1,
        EntryState::Done => 2,
        EntryState::Dead => 3,
    }
}

pub(super) fn state(number: i64) -> Option<EntryState> {
    Some(match number {
        0 => EntryState::Queued,
        1 => EntryState::Running,
        2 => EntryState::Done,
        3 => EntryState::Dead,
        _ => return None,
    })
}
