//! Numbers that keep their text.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Expected, Unexpected};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The maximum length of an integer that fits 128 bits, with its sign. An exponent that needs more zeros is not written out.
const LONGEST_INTEGER: usize = 40;

/// A JSON number in the text it was written in. No conversion rounds silently.
///
/// The reason is amounts of money: `0.1` has no exact 64-bit float, and `18446744073709551617` no 64-bit integer. Give
/// [`as_str`](Self::as_str) to a decimal type, or use one of the conversions, which return `None` rather than another number.
///
/// You can use it in a row type of your own. It can be read from serde_json only, and not below `#[serde(flatten)]`.
///
/// ```
/// use hookgate::event::Number;
///
/// let number = |text| serde_json::from_str::<Number>(text).unwrap();
/// assert_eq!(number("1.10").as_str(), "1.10");
/// assert_eq!(number("1.10").to_f64(), Some(1.1));
/// assert_eq!(number("1e3").to_i64(), Some(1000));
/// assert_eq!(number("1.5").to_i64(), None);
/// assert_eq!(number("18446744073709551617").to_u64(), None);
/// assert_eq!(number("18446744073709551617").to_f64(), None); // would be …616
/// ```
///
/// Two numbers are equal where their texts are: `1.0` is not `1`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Number(Box<str>);

impl Number {
    /// The number as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the number, where it is an integer in range. `1.0` and `1e3` are integers.
    #[must_use]
    pub fn to_i64(&self) -> Option<i64> {
        self.to_integer()
    }

    /// Returns the number, where it is an integer in range that is not negative.
    #[must_use]
    pub fn to_u64(&self) -> Option<u64> {
        self.to_integer()
    }

    /// Returns the 64-bit float that prints as exactly this number, where there is one: the conversion and its reverse lose
    /// no digit. `0.1` has such a float, 2⁵³ + 1 has none.
    #[must_use]
    pub fn to_f64(&self) -> Option<f64> {
        let float = self.to_f64_lossy();
        (normal_form(&format!("{float:e}"))? == normal_form(&self.0)?).then_some(float)
    }

    /// Returns the nearest 64-bit float, rounded where necessary.
    #[must_use]
    pub fn to_f64_lossy(&self) -> f64 {
        // The text is a JSON number, which Rust can always parse.
        self.0.parse().unwrap_or(f64::NAN)
    }

    /// Returns the number, where it is an integer in the range of the type.
    pub(super) fn to_integer<T: FromStr>(&self) -> Option<T> {
        let (mantissa, exponent) = normal_form(&self.0)?;
        let zeros = usize::try_from(exponent).ok()?;
        let is_short = mantissa.len().saturating_add(zeros) <= LONGEST_INTEGER;
        is_short.then(|| (mantissa + &"0".repeat(zeros)).parse().ok())?
    }

    /// Reads a number. The error for any other value names `expected`.
    pub(super) fn read<'de, D: Deserializer<'de>>(
        deserializer: D,
        expected: &dyn Expected,
    ) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        // The first byte shows the kind of a JSON value.
        let found = match raw.get().as_bytes().first() {
            Some(b'-' | b'0'..=b'9') => return Ok(Self(raw.get().into())),
            Some(b'"') => Unexpected::Str(""),
            Some(b'{') => Unexpected::Map,
            Some(b'[') => Unexpected::Seq,
            Some(b'n') => Unexpected::Unit,
            _ => Unexpected::Bool(true),
        };
        Err(D::Error::invalid_type(found, expected))
    }
}

/// Returns the mantissa and the exponent of `mantissa × 10^exponent`, the same for all equal numbers: an integer with no zeros at
/// either end. `None` where the exponent does not fit 64 bits: it is out of range for every conversion.
fn normal_form(text: &str) -> Option<(String, i64)> {
    let (sign, text) = text
        .strip_prefix('-')
        .map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_end_matches('0');
    if digits.is_empty() {
        return Some(("0".into(), 0));
    }
    let exponent = exponent
        .parse::<i64>()
        .ok()?
        .checked_add(i64::try_from(all.len() - digits.len()).ok()?)?
        .checked_sub(i64::try_from(fraction.len()).ok()?)?;
    Some((
        format!("{sign}{}", digits.trim_start_matches('0')),
        exponent,
    ))
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Number({self})")
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        // serde_json takes the text of a number only as a raw value.
        serde_json::from_str::<&RawValue>(&self.0)
            .map_err(S::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(deserializer, &"a number")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn integers_are_exact_or_nothing() {
        for (text, signed, unsigned) in [
            ("0", Some(0), Some(0)),
            ("-0", Some(0), Some(0)),
            ("0e999999999999999999999", Some(0), Some(0)),
            ("-0.0", Some(0), Some(0)),
            ("1.0", Some(1), Some(1)),
            ("100", Some(100), Some(100)),
            ("1e3", Some(1000), Some(1000)),
            ("1.5e1", Some(15), Some(15)),
            ("1500e-2", Some(15), Some(15)),
            ("1.5", None, None),
            ("1e-1", None, None),
            ("-7", Some(-7), None),
            ("9223372036854775807", Some(i64::MAX), Some(i64::MAX as u64)),
            ("-9223372036854775808", Some(i64::MIN), None),
            ("9223372036854775808", None, Some(9_223_372_036_854_775_808)),
            ("18446744073709551615", None, Some(u64::MAX)),
            ("18446744073709551617", None, None),
            ("1e400", None, None),
            ("1e999999999999999999999", None, None),
            ("1e-9223372036854775808", None, None),
        ] {
            assert_eq!(number(text).to_i64(), signed, "{text}");
            assert_eq!(number(text).to_u64(), unsigned, "{text}");
        }
    }

    #[test]
    fn floats_print_back_or_are_nothing() {
        for (text, float) in [
            ("0", Some(0.0)),
            ("0.1", Some(0.1)),
            ("1.10", Some(1.1)),
            ("-2.50e1", Some(-25.0)),
            ("1e23", Some(1e23)),
            ("9007199254740992", Some(9_007_199_254_740_992.0)),
            ("9007199254740993", None),
            ("0.1000000000000000055511151231257827", None),
            ("1e400", None),
            ("1e-400", None),
        ] {
            assert_eq!(number(text).to_f64(), float, "{text}");
        }
        assert_eq!(
            number("9007199254740993").to_f64_lossy(),
            9_007_199_254_740_992.0
        );
    }

    #[test]
    fn only_numbers_are_numbers_and_their_text_survives() {
        assert_eq!(
            serde_json::to_string(&number("1.10e+2")).unwrap(),
            "1.10e+2"
        );
        for other in ["\"1\"", "null", "true", "{}", "[1]"] {
            assert!(serde_json::from_str::<Number>(other).is_err(), "{other}");
        }
    }
}
