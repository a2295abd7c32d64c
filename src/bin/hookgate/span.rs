//! Spans of time as they are typed: `400s`, `5m`, `1h30m`.

use std::time::Duration;

/// A span of time: numbers with the units ms, s, m, h or d, one behind the other. A number alone counts seconds.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let fault = || format!("`{text}` is no span of time: write 400s, 5m, 1h30m or 250ms");
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return Err(fault());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit());
        let (number, behind) = rest.split_at(digits.unwrap_or(rest.len()));
        let unit_ends = behind.find(|c: char| c.is_ascii_digit());
        let (unit, behind) = behind.split_at(unit_ends.unwrap_or(behind.len()));
        let number: u64 = number.parse().map_err(|_| fault())?;
        let millis_each = match unit {
            "ms" => 1,
            "s" => 1_000,
            "" if rest == text.trim() && behind.is_empty() => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(fault()),
        };
        let millis = number.checked_mul(millis_each).ok_or_else(fault)?;
        total = total
            .checked_add(Duration::from_millis(millis))
            .ok_or_else(fault)?;
        rest = behind;
    }
    Ok(total)
}

/// The same, in whole seconds and in either direction: `-30s` lies ahead.
pub(crate) fn signed_seconds(text: &str) -> Result<i64, String> {
    let text = text.trim();
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let seconds = i64::try_from(span(text)?.as_secs()).unwrap_or(i64::MAX);
    Ok(sign * seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_in_every_unit() {
        for (text, millis) in [
            ("400s", 400_000),
            ("400", 400_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("2d", 172_800_000),
            ("250ms", 250),
            ("1s250ms", 1_250),
            (" 0s ", 0),
        ] {
            assert_eq!(span(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "s",
            "5x",
            "1h30",
            "-5s",
            "1.5h",
            "5 m",
            "99999999999999999999s",
            "300000000d9d",
            "18446744073709551615d",
        ] {
            assert!(span(text).is_err(), "{text}");
        }
        assert_eq!(signed_seconds("-30s"), Ok(-30));
        assert_eq!(signed_seconds("+5m"), Ok(300));
        assert!(signed_seconds("--1s").is_err());
    }
}
