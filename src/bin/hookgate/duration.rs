//! Durations on the command line: `500ms`, `6s`, `5m`, `2h`.

use std::time::Duration;

/// A whole number and its unit; for clap.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let advice = || format!("{text:?} is no duration: write 500ms, 6s, 5m or 2h");
    let number: u64 = number.parse().map_err(|_| advice())?;
    let in_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(advice()),
    };
    number
        .checked_mul(in_ms)
        .map(Duration::from_millis)
        .ok_or_else(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_needs_its_unit() {
        for (text, ms) in [
            ("0s", 0),
            ("500ms", 500),
            ("6s", 6_000),
            ("5m", 300_000),
            ("2h", 7_200_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)));
        }
        for text in [
            "",
            "6",
            "s",
            "-1s",
            "1.5s",
            "6 s",
            "6sec",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
