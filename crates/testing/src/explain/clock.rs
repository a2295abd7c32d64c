//! Mistakes in the age of a delivery.

use std::time::Duration;

use hookgate::{clock::UnixSeconds, dedupe::RetrySchedule, verify::Window};

use super::cause::{Cause, CauseKind as Kind};

/// The greatest difference from a time zone's offset, in seconds: the way from the sender takes
/// some, and clocks differ a little.
const ZONE_SLACK: u64 = 10;
/// Zones lie whole hours from UTC, at most 14.
const WIDEST_ZONE: u64 = 14;
/// The other zones' offsets, in minutes, east or west: summer time included.
const BROKEN_ZONES: [u64; 11] = [150, 210, 270, 330, 345, 390, 525, 570, 630, 765, 825];

/// Returns the reason why a delivery, signed and received at these times, lies outside the window;
/// `None` where it is inside.
pub(super) fn judge(
    signed: UnixSeconds,
    received: UnixSeconds,
    window: &Window,
    schedule: &RetrySchedule,
) -> Option<Cause> {
    window.check(signed, received).err()?;
    if let Some((unit, off)) = smaller_unit(signed, received, window) {
        return Some(Cause::with(
            Kind::ClockMilliseconds,
            format!("read as {unit}, it is {off}"),
        ));
    }
    let (off, direction, ahead) = match received.since(signed) {
        Some(age) => (age, "old", false),
        None => (signed.since(received).unwrap_or_default(), "ahead", true),
    };
    let seconds = off.as_secs();
    if let Some(attempt) = retry(off, schedule).filter(|_| !ahead) {
        return Some(Cause::with(
            Kind::ClockRetry,
            format!("{seconds} s old, as attempt {attempt} of its event is"),
        ));
    }
    if let Some(zone) = zone(seconds) {
        return Some(Cause::with(
            Kind::ClockTimeZone,
            format!("{seconds} s {direction}, which is {zone}"),
        ));
    }
    let kind = if ahead {
        Kind::ClockAhead
    } else {
        Kind::ClockStale
    };
    let limit = if ahead { window.ahead() } else { window.past() };
    Some(Cause::with(
        kind,
        format!(
            "{seconds} s {direction}, at most {} s are accepted",
            limit.as_secs()
        ),
    ))
}

/// Returns the smaller unit, such as milliseconds, in which the timestamp gives a time inside the
/// window or near it.
fn smaller_unit(
    signed: UnixSeconds,
    received: UnixSeconds,
    window: &Window,
) -> Option<(&'static str, &'static str)> {
    let units = [
        ("milliseconds", 1_000),
        ("microseconds", 1_000_000),
        ("nanoseconds", 1_000_000_000),
    ];
    // A recorded delivery may be judged long after it was signed: a time that is this near is still
    // no coincidence.
    let near = Duration::from_secs(400 * 24 * 3_600);
    let is_far = signed.as_i64() > received.as_i64().saturating_mul(100);
    let found = units.into_iter().find_map(|(unit, a_second)| {
        let seconds = UnixSeconds::new(signed.as_i64() / a_second);
        if window.check(seconds, received).is_ok() {
            return Some((unit, "fresh"));
        }
        let off = seconds.since(received).or(received.since(seconds))?;
        (off < near).then_some((unit, "nearer, and still not fresh"))
    });
    found.filter(|_| is_far)
}

/// Returns the number of the attempt that is made at this age after the first, where there is one.
fn retry(age: Duration, schedule: &RetrySchedule) -> Option<u32> {
    let mut begins = Duration::ZERO;
    for (number, wait) in (2..).zip(schedule.waits()) {
        begins += *wait;
        // Each failed attempt before it took up to its time-out; senders are more often late than
        // early.
        let latest = begins + schedule.attempt_timeout() * number + Duration::from_secs(60);
        let earliest = begins.saturating_sub(Duration::from_secs(5));
        if (earliest..=latest).contains(&age) {
            return Some(number);
        }
    }
    None
}

/// Returns the time zone that the difference looks like.
fn zone(seconds: u64) -> Option<String> {
    let minutes = (seconds + 30) / 60;
    let difference = seconds.abs_diff(minutes * 60);
    let is_whole = minutes.is_multiple_of(60) && (1..=WIDEST_ZONE).contains(&(minutes / 60));
    let is_zone = is_whole || BROKEN_ZONES.contains(&minutes);
    (is_zone && difference <= ZONE_SLACK).then(|| {
        let (hours, rest) = (minutes / 60, minutes % 60);
        format!("{hours} h {rest:02} min, within {difference} s")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECEIVED: i64 = 1_763_690_000;

    fn kind(signed: i64) -> Option<(Kind, String)> {
        let cause = judge(
            UnixSeconds::new(signed),
            UnixSeconds::new(RECEIVED),
            &Window::default(),
            &RetrySchedule::default(),
        )?;
        Some((cause.kind(), cause.detail().unwrap().to_owned()))
    }

    // fault X1: a delivery that is late by about a quarter of an hour, or a multiple of it, is explained by a time zone that does not exist
    #[test]
    fn an_age_is_a_zone_only_within_seconds_of_an_offset_that_exists() {
        for (signed, expected, detail) in [
            (RECEIVED - 301, Kind::ClockStale, "301 s old, at most 300 s"),
            (RECEIVED + 301, Kind::ClockAhead, "301 s ahead"),
            (RECEIVED - 361, Kind::ClockRetry, "attempt 3"),
            (RECEIVED - 2_170, Kind::ClockRetry, "attempt 4"),
            (RECEIVED - 9_360, Kind::ClockRetry, "attempt 5"),
            (RECEIVED - 95_780, Kind::ClockRetry, "attempt 6"),
            (
                RECEIVED - 3_601,
                Kind::ClockTimeZone,
                "1 h 00 min, within 1 s",
            ),
            (
                RECEIVED + 19_800,
                Kind::ClockTimeZone,
                "5 h 30 min, within 0 s",
            ),
            (RECEIVED + 361, Kind::ClockAhead, "361 s ahead"),
            (RECEIVED - 1_350, Kind::ClockStale, "1350 s old"),
            (RECEIVED - 30 * 3_600, Kind::ClockStale, "old"),
            (
                RECEIVED * 1_000 + 7,
                Kind::ClockMilliseconds,
                "milliseconds, it is fresh",
            ),
            (
                (RECEIVED - 4_000) * 1_000,
                Kind::ClockMilliseconds,
                "still not fresh",
            ),
            (
                RECEIVED * 1_000_000,
                Kind::ClockMilliseconds,
                "microseconds",
            ),
            (RECEIVED * 50, Kind::ClockAhead, "ahead"),
            (1, Kind::ClockStale, "old"),
        ] {
            let (kind, told) = kind(signed).unwrap();
            assert!(
                kind == expected && told.contains(detail),
                "{signed}: {kind:?} {told}"
            );
        }
        // Offsets that exist, within some seconds; no zone is a quarter of an hour or half an hour
        // from UTC.
        for zone in [3_600, 3_610, 9_000, 20_700, 31_500, 49_500, 50_400] {
            assert_eq!(
                kind(RECEIVED + zone).unwrap().0,
                Kind::ClockTimeZone,
                "{zone}"
            );
            assert_eq!(
                kind(RECEIVED - zone).unwrap().0,
                Kind::ClockTimeZone,
                "{zone}"
            );
        }
        for age in [
            755, 900, 1_005, 1_800, 3_500, 3_611, 4_500, 5_400, 10_000, 54_000,
        ] {
            assert_eq!(kind(RECEIVED + age).unwrap().0, Kind::ClockAhead, "{age}");
            assert_eq!(kind(RECEIVED - age).unwrap().0, Kind::ClockStale, "{age}");
        }
        for fresh in [-300, 0, 300] {
            assert_eq!(kind(RECEIVED + fresh), None);
        }
        for edge in [i64::MIN, -1, 0, i64::MAX] {
            assert!(kind(edge).is_some());
        }
    }
}
