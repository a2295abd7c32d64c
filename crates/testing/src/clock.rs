//! A clock that follows tokio's time, and a second as the service writes it.

use hookgate::clock::{Clock, Monotonic, UnixSeconds};
use tokio::time::Instant;

/// Wall and monotonic time from tokio's clock, so that a test in paused time passes days in
/// milliseconds and ages stay correct.
///
/// Clones share their time. Where tokio's clock is not paused, it advances in real time.
///
/// ```
/// use std::time::Duration;
/// use hookgate::clock::{Clock, UnixSeconds};
/// use hookgate_testing::TokioClock;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
/// let clock = TokioClock::starting_at(UnixSeconds::new(1_763_690_000));
/// tokio::time::sleep(Duration::from_secs(24 * 3_600)).await;
/// assert_eq!(clock.now(), UnixSeconds::new(1_763_690_000 + 24 * 3_600));
/// assert!(clock.monotonic().since_start() >= Duration::from_secs(24 * 3_600));
/// tokio::time::sleep(Duration::from_millis(250)).await;
/// assert!(clock.unix_millis() % 1_000 >= 250);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    start: Instant,
    wall: UnixSeconds,
}

impl TokioClock {
    /// Returns a clock that shows `wall` now.
    #[must_use]
    pub fn starting_at(wall: UnixSeconds) -> Self {
        Self {
            start: Instant::now(),
            wall,
        }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> UnixSeconds {
        let passed = i64::try_from(self.start.elapsed().as_secs()).unwrap_or(i64::MAX);
        UnixSeconds::new(self.wall.as_i64().saturating_add(passed))
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::new(self.start.elapsed())
    }

    fn unix_millis(&self) -> u64 {
        let wall = u64::try_from(self.wall.as_i64()).unwrap_or_default();
        let passed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        wall.saturating_mul(1_000).saturating_add(passed)
    }
}

/// Returns the second in UTC in ISO 8601 form, such as `2026-11-21T09:30:00Z`: the form of
/// `createdAt` in the service's events.
///
/// ```
/// use hookgate::clock::UnixSeconds;
/// use hookgate_testing::iso8601;
///
/// assert_eq!(iso8601(UnixSeconds::new(1_795_253_400)), "2026-11-21T09:30:00Z");
/// assert_eq!(iso8601(UnixSeconds::new(-1)), "1969-12-31T23:59:59Z");
/// ```
#[must_use]
pub fn iso8601(second: UnixSeconds) -> String {
    const DAY: i64 = 86_400;
    let (days, of_day) = (
        second.as_i64().div_euclid(DAY),
        second.as_i64().rem_euclid(DAY),
    );
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Returns the date of a day counted from 1970-01-01, in the Gregorian calendar. Years begin with
/// March here, so that the leap day is the last day of its year; 400 of them are 146,097 days.
fn civil(days: i64) -> (i64, i64, i64) {
    let since_march_of_0 = days + 719_468;
    let era = since_march_of_0.div_euclid(146_097);
    let day_of_era = since_march_of_0.rem_euclid(146_097);
    let leaps = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookgate::event::Date;

    /// The crate's own parser, which counts days in another way, reads each text that is written
    /// here.
    #[test]
    fn every_day_of_four_hundred_years_is_read_as_it_was_written() {
        let seconds = |text: &str| Date::parse(text).unwrap().unix_seconds().unwrap();
        let last = seconds("2300-03-01T23:59:59Z").as_i64();
        let mut second = seconds("1900-01-01").as_i64();
        while second <= last {
            let text = iso8601(UnixSeconds::new(second));
            assert_eq!(seconds(&text).as_i64(), second);
            second += 86_399; // another time of the day each time
        }
        for text in [
            "0000-01-01T00:00:00Z",
            "0000-02-29T00:00:00Z",
            "9999-12-31T23:59:59Z",
        ] {
            assert_eq!(iso8601(seconds(text)), text);
        }
    }

    #[test]
    fn no_second_overflows() {
        // Far beyond the times that the service writes: the function only must not panic.
        for second in [i64::MIN, i64::MAX] {
            assert!(iso8601(UnixSeconds::new(second)).ends_with('Z'));
        }
    }
}
