//! Times on the command line: a number with its unit.

use std::time::Duration;

/// Reads `500ms`, `30s`, `5min`, `48h` or `2d`. A number without a unit is ambiguous, so it is
/// refused.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text
        .find(|char: char| !char.is_ascii_digit() && char != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds_each = match unit.trim() {
        "ms" => 0.001,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return Err("a number and its unit are expected: 500ms, 30s, 5min, 48h or 2d".into()),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| format!("{number:?} is not a number"))?;
    Duration::try_from_secs_f64(number * seconds_each).map_err(|_| "this is too long".into())
}

/// In milliseconds, to the microsecond: finer digits are noise of the clock.
pub(crate) fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// Reads a rate per second: at least one in eleven days, and at most as many as one thread can
/// sign.
pub(crate) fn per_second(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (0.000_001..=100_000.0).contains(&rate) => Ok(rate),
        _ => Err("a number from 0.000001 to 100000 is expected: 10, or 0.5".into()),
    }
}

/// In seconds alone, so that times can be compared: `96390 s`, `0.5 s`.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{} s", (duration.as_secs_f64() * 1e3).round() / 1e3)
}

/// As a person writes it: `26 h 46 min 30 s`.
pub(crate) fn show(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.subsec_millis());
    let parts = [
        (seconds / 3_600, "h"),
        (seconds % 3_600 / 60, "min"),
        (seconds % 60, "s"),
        (u64::from(millis), "ms"),
    ];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(number, _)| *number != 0)
        .map(|(number, unit)| format!("{number} {unit}"))
        .collect();
    match duration.subsec_micros() {
        _ if !parts.is_empty() => parts.join(" "),
        0 => "0 s".into(),
        micros => format!("{:.1} ms", f64::from(micros.max(100)) / 1_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_and_asked_for() {
        for (text, millis) in [
            ("500ms", 500),
            ("4.5s", 4_500),
            ("5min", 300_000),
            ("5m", 300_000),
            ("48h", 172_800_000),
            ("48 h", 172_800_000),
            ("2d", 172_800_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "5",
            "s",
            "5 weeks",
            "-5s",
            "1e999s",
            "1..5s",
            "9999999999999999999999d",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn milliseconds_have_no_noise() {
        for (micros, text) in [
            (591, "0.591"),
            (1_909, "1.909"),
            (4_500_000, "4500"),
            (0, "0"),
        ] {
            assert_eq!(millis(Duration::from_micros(micros)).to_string(), text);
        }
        let nanos = Duration::from_nanos(5_672_019);
        assert_eq!(millis(nanos).to_string(), "5.672");
    }

    #[test]
    fn a_rate_is_one_that_can_be_kept() {
        assert_eq!(per_second("0.5"), Ok(0.5));
        for text in ["", "0", "-1", "1e-300", "1e300", "NaN", "inf", "5/s"] {
            assert!(per_second(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_shown_as_they_are_said() {
        let retention = Duration::from_secs(26 * 3_600 + 46 * 60 + 30);
        assert_eq!(show(retention), "26 h 46 min 30 s");
        assert_eq!(show(Duration::from_millis(4_500)), "4 s 500 ms");
        assert_eq!(show(Duration::ZERO), "0 s");
        assert_eq!(show(Duration::from_micros(1_700)), "1 ms");
        assert_eq!(show(Duration::from_micros(340)), "0.3 ms");
        assert_eq!(show(Duration::from_micros(3)), "0.1 ms");
    }
}
