//! Sums of time, as `clock/advance` takes them.

use std::time::Duration;

const DAY: u64 = 86_400;
/// A longer sum is a slip of the keyboard.
const LONGEST: u64 = 3_650 * DAY;

/// Reads a sum such as `90s`, `5m`, `26h36m` or `2d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || {
        // A long text is not repeated in the message.
        let shown: String = text.chars().take(40).collect();
        format!("{shown:?} is not a duration, expected a sum such as 90s, 5m, 26h36m or 2d")
    };
    let mut total = 0_u64;
    let mut rest = text;
    loop {
        let digits = rest.find(|char: char| !char.is_ascii_digit());
        let (number, behind) = rest.split_at(digits.ok_or_else(wrong)?);
        let unit = behind.chars().next().ok_or_else(wrong)?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => DAY,
            _ => return Err(wrong()),
        };
        let number: u64 = match number.parse() {
            Ok(number) => number,
            Err(_) if number.is_empty() => return Err(wrong()),
            Err(_) => u64::MAX,
        };
        total = total.saturating_add(number.saturating_mul(seconds));
        rest = &behind[unit.len_utf8()..];
        if rest.is_empty() {
            break;
        }
    }
    if total > LONGEST {
        return Err("a duration is at most 3650d".to_owned());
    }
    Ok(Duration::from_secs(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_read() {
        for (text, seconds) in [
            ("90s", 90),
            ("5m", 300),
            ("26h36m", 95_760),
            ("2d", 172_800),
            ("1d2h3m4s", 93_784),
            ("30s1m", 90),
            ("0s", 0),
            ("3650d", LONGEST),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_form() {
        for text in [
            "", "5", "s", "5 m", " 5m", "5m ", "-5m", "+5m", "1.5h", "5ms", "5w", "m5", "5M",
            "５m", "5é", "5m5",
        ] {
            let told = duration(text).unwrap_err();
            assert!(told.contains("26h36m"), "{text:?}: {told}");
        }
        for text in ["3650d1s", "18446744073709551616s", "18446744073709551615d"] {
            assert!(duration(text).unwrap_err().contains("3650d"), "{text}");
        }
        let long = "x".repeat(100_000);
        assert!(duration(&long).unwrap_err().len() < 200);
    }
}
