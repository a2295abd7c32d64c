//! Mistakes in the age of a delivery.

use std::time::Duration;

use hookgate::{RetrySchedule, UnixSeconds, Window};

use super::cause::{Cause, CauseKind as Kind};

/// The greatest difference from a time zone's offset, in seconds, at which a clock still counts as set to that zone.
const ZONE_SLACK: u64 = 120;
/// Zones lie quarters of an hour apart, up to 14 hours from UTC.
const ZONE_STEP: u64 = 900;
const WIDEST_ZONE: u64 = 14 * 3_600;

/// Returns the reason why a delivery, signed and received at these times, lies outside the window; `None` where it is inside.
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

/// Returns the smaller unit, such as milliseconds, in which the timestamp gives a time inside the window or near it.
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
    let as_unit = |&(_, a_second): &(&'static str, i64)| {
        let seconds = UnixSeconds::new(signed.as_i64() / a_second);
        // A recorded delivery may be judged long after it was signed: a time that is this near is still no coincidence.
        let near = |limit| {
            seconds
                .since(received)
                .or(received.since(seconds))
                .is_some_and(|off| off < limit)
        };
        match window.check(seconds, received).is_ok() {
            true => Some("fresh"),
            false => {
                near(Duration::from_secs(400 * 24 * 3_600)).then_some("nearer, and still not fresh")
            }
        }
    };
    let is_far = signed.as_i64() > received.as_i64().saturating_mul(100);
    let unit = units.iter().find(|unit| as_unit(unit).is_some())?;
    is_far.then(|| (unit.0, as_unit(unit).unwrap_or_default()))
}

/// Returns the number of the attempt that is made at this age after the first, where there is one.
fn retry(age: Duration, schedule: &RetrySchedule) -> Option<u32> {
    let mut begins = Duration::ZERO;
    for (number, wait) in (2..).zip(schedule.waits()) {
        begins += *wait;
        // Each failed attempt before it took up to its time-out; senders are more often late than early.
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
    let steps = (seconds + ZONE_STEP / 2) / ZONE_STEP;
    let exact = steps * ZONE_STEP;
    let is_zone = steps > 0 && exact <= WIDEST_ZONE && seconds.abs_diff(exact) <= ZONE_SLACK;
    is_zone.then(|| {
        format!(
            "{} h {:02} min, to {} s",
            exact / 3_600,
            exact % 3_600 / 60,
            seconds.abs_diff(exact)
        )
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

    #[test]
    fn an_age_is_distinguished_from_a_zone_a_unit_and_a_retry() {
        for (signed, expected, detail) in [
            (RECEIVED - 301, Kind::ClockStale, "301 s old, at most 300 s"),
            (RECEIVED + 301, Kind::ClockAhead, "301 s ahead"),
            (RECEIVED - 361, Kind::ClockRetry, "attempt 3"),
            (RECEIVED - 2_170, Kind::ClockRetry, "attempt 4"),
            (RECEIVED - 9_360, Kind::ClockRetry, "attempt 5"),
            (RECEIVED - 95_780, Kind::ClockRetry, "attempt 6"),
            (RECEIVED - 3_601, Kind::ClockTimeZone, "1 h 00 min, to 1 s"),
            (RECEIVED + 19_800, Kind::ClockTimeZone, "5 h 30 min, to 0 s"),
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
        for fresh in [-300, 0, 300] {
            assert_eq!(kind(RECEIVED + fresh), None);
        }
        for edge in [i64::MIN, -1, 0, i64::MAX] {
            assert!(kind(edge).is_some());
        }
    }
}
