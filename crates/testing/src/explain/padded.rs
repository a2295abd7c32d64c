//! The zeros at the end of fractions, which a program loses when it parses numbers and writes them again: 12.50 becomes 12.5,
//! and 100.00 becomes 100.0 or 100.
//!
//! Nothing in the body shows how many zeros there were. The numbers of one property usually have equally many digits after the
//! point, so the numbers with one key are changed together.

use std::ops::Range;

use super::cause::{Cause, CauseKind};

/// The description of the repair.
pub(super) const DETAIL: &str = "the signed body has zeros at the end of fractions";
/// The same where exponents and the `.0` of integers were taken away first.
pub(super) const PLAIN_DETAIL: &str =
    "the signed body has no exponents, and zeros at the end of fractions alone";

pub(super) fn cause(detail: &'static str) -> Cause {
    Cause::with(CauseKind::BodyNumbersRewritten, detail)
}

/// The highest number of ways that are tried.
const MOST_WAYS: usize = 96;
/// The highest number of keys whose every combination is tried.
const FEW_KEYS: usize = 5;
/// The highest number of keys, and of numbers, that are tried one by one.
const MOST_ALONE: usize = 8;
/// The size of the largest body with which more than the likeliest ways are tried.
const FEW_BYTES: usize = 64 << 10;
/// The usual number of digits after the point, and the others that are tried.
const USUAL: u8 = 2;
const OTHERS: [u8; 3] = [3, 4, 1];

/// The least number of digits after the point, for each number; zero leaves the number as it is.
pub(super) type Way = Vec<u8>;

/// A number with its key, and its place in the body.
type Number<'b> = (&'b [u8], Range<usize>);

/// Returns the ways to put zeros back, the likeliest first.
pub(super) fn ways(body: &[u8], numbers: &[Number<'_>]) -> Vec<Way> {
    let forms: Vec<_> = numbers
        .iter()
        .map(|(_, at)| Form::of(body.get(at.clone()).unwrap_or_default()))
        .collect();
    let mut ways = Ways {
        forms: &forms,
        found: Vec::new(),
    };
    let has_fraction = |index: usize| matches!(forms.get(index), Some(Form::Fraction(_)));
    let keys = keys(numbers, has_fraction);
    ways.add(|index| USUAL * u8::from(has_fraction(index)));
    let with_fraction = keys.iter().filter(|key| key.has_fraction);
    let beside: Vec<_> = with_fraction.flat_map(|key| &key.numbers).collect();
    ways.add(|index| USUAL * u8::from(beside.contains(&&index)));
    ways.add(|_| USUAL);
    if body.len() > FEW_BYTES {
        return ways.found;
    }
    for digits in OTHERS {
        ways.add(|index| digits * u8::from(has_fraction(index)));
    }
    let few = keys.get(..keys.len().min(MOST_ALONE)).unwrap_or_default();
    for key in few {
        ways.add(|index| USUAL * u8::from(key.numbers.contains(&index)));
    }
    for number in 0..numbers.len().min(MOST_ALONE) {
        ways.add(|index| USUAL * u8::from(index == number));
    }
    // Every combination of few keys; beyond them, all fractions and one more key.
    let combined = keys.get(..keys.len().min(FEW_KEYS)).unwrap_or_default();
    for chosen in 0..1_u32 << combined.len() {
        ways.add(|index| {
            let is_chosen =
                |&(at, key): &(usize, &Key)| chosen >> at & 1 == 1 && key.numbers.contains(&index);
            USUAL * u8::from(combined.iter().enumerate().any(|key| is_chosen(&key)))
        });
    }
    for key in few {
        ways.add(|index| USUAL * u8::from(has_fraction(index) || key.numbers.contains(&index)));
    }
    for key in few {
        for digits in OTHERS {
            ways.add(|index| digits * u8::from(key.numbers.contains(&index)));
        }
    }
    // Two keys with different numbers of digits.
    for (at, one) in few.iter().enumerate() {
        for other in few.iter().skip(at + 1) {
            for (first, second) in [(2, 3), (3, 2), (2, 4), (4, 2), (1, 2), (2, 1)] {
                ways.add(|index| {
                    first * u8::from(one.numbers.contains(&index))
                        + second * u8::from(other.numbers.contains(&index))
                });
            }
        }
    }
    ways.found
}

/// Writes the body with these zeros.
pub(super) fn write(body: &[u8], numbers: &[Number<'_>], way: &Way) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + 8 * numbers.len());
    let mut written = 0;
    for ((_, at), &digits) in numbers.iter().zip(way) {
        let number = body.get(at.clone()).unwrap_or_default();
        out.extend_from_slice(body.get(written..at.end).unwrap_or_default());
        written = at.end;
        let missing = Form::of(number).missing(digits);
        if missing > 0 && !number.contains(&b'.') {
            out.push(b'.');
        }
        out.extend(std::iter::repeat_n(b'0', missing));
    }
    out.extend_from_slice(body.get(written..).unwrap_or_default());
    out
}

/// The form of a number.
#[derive(Clone, Copy)]
enum Form {
    Integer,
    /// With this number of digits after the point.
    Fraction(usize),
    /// With an exponent, or longer than the integers that any program takes for a fraction.
    Other,
}

impl Form {
    fn of(number: &[u8]) -> Self {
        const LONGEST: usize = 16;
        let point = number.iter().position(|byte| *byte == b'.');
        match point {
            _ if number.iter().any(|byte| b"eE".contains(byte)) => Self::Other,
            Some(point) => Self::Fraction(number.len() - point - 1),
            None if number.len() <= LONGEST => Self::Integer,
            None => Self::Other,
        }
    }

    /// Returns the number of zeros that are missing from this number of digits.
    fn missing(self, digits: u8) -> usize {
        match self {
            Self::Integer => digits.into(),
            Self::Fraction(there) => usize::from(digits).saturating_sub(there),
            Self::Other => 0,
        }
    }
}

/// The numbers of one key.
struct Key<'b> {
    name: &'b [u8],
    numbers: Vec<usize>,
    has_fraction: bool,
}

/// Returns the keys of the first numbers, those with a fraction first.
fn keys<'b>(numbers: &[Number<'b>], has_fraction: impl Fn(usize) -> bool) -> Vec<Key<'b>> {
    /// With more keys than that, no key is tried by itself.
    const MOST_KEYS: usize = 64;
    let mut keys: Vec<Key<'_>> = Vec::new();
    for (index, (name, _)) in numbers.iter().enumerate() {
        if let Some(key) = keys.iter_mut().find(|key| key.name == *name) {
            key.numbers.push(index);
            key.has_fraction |= has_fraction(index);
        } else if keys.len() < MOST_KEYS {
            keys.push(Key {
                name,
                numbers: vec![index],
                has_fraction: has_fraction(index),
            });
        }
    }
    keys.sort_by_key(|key| !key.has_fraction);
    keys
}

struct Ways<'f> {
    forms: &'f [Form],
    found: Vec<Way>,
}

impl Ways<'_> {
    /// Adds the way that gives each number this many digits, if it changes a number and is new.
    fn add(&mut self, digits: impl Fn(usize) -> u8) {
        let digits_of = |(index, form): (usize, &Form)| match digits(index) {
            wanted if form.missing(wanted) > 0 => wanted,
            _ => 0,
        };
        let way: Way = self.forms.iter().enumerate().map(digits_of).collect();
        let changes = way.iter().any(|&digits| digits > 0);
        if changes && self.found.len() < MOST_WAYS && !self.found.contains(&way) {
            self.found.push(way);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::json::Document;
    use super::*;

    fn bodies(body: &str) -> Vec<String> {
        let document = Document::parse(body.as_bytes()).unwrap();
        let numbers = document.numbers();
        ways(body.as_bytes(), &numbers)
            .iter()
            .map(|way| String::from_utf8(write(body.as_bytes(), &numbers, way)).unwrap())
            .collect()
    }

    #[test]
    fn zeros_are_put_back_to_all_numbers_or_to_those_of_some_keys() {
        let found = bodies(r#"{"a":12.5,"b":[0.1,100.0,7],"n":3,"c":{"before":1.25,"after":2}}"#);
        for expected in [
            r#"{"a":12.50,"b":[0.10,100.00,7],"n":3,"c":{"before":1.25,"after":2}}"#,
            r#"{"a":12.50,"b":[0.10,100.00,7.00],"n":3,"c":{"before":1.25,"after":2.00}}"#,
            r#"{"a":12.50,"b":[0.1,100.0,7],"n":3,"c":{"before":1.25,"after":2}}"#,
            r#"{"a":12.5,"b":[0.1,100.0,7],"n":3,"c":{"before":1.25,"after":2.00}}"#,
            r#"{"a":12.500,"b":[0.10,100.00,7.00],"n":3,"c":{"before":1.25,"after":2}}"#,
            r#"{"a":12.5,"b":[0.10,100.0,7],"n":3,"c":{"before":1.25,"after":2}}"#,
        ] {
            assert!(found.iter().any(|body| body == expected), "{expected}");
        }
        assert_eq!(
            found[0],
            r#"{"a":12.50,"b":[0.10,100.00,7],"n":3,"c":{"before":1.25,"after":2}}"#
        );
    }

    #[test]
    fn the_ways_are_bounded_and_none_is_tried_twice() {
        let many: Vec<_> = (0..500).map(|at| format!("\"k{at}\":{at}.5")).collect();
        let found = bodies(&format!("{{{}}}", many.join(",")));
        assert!(
            found.len() > 20 && found.len() <= MOST_WAYS,
            "{}",
            found.len()
        );
        let large = format!("{{\"t\":\"{}\",\"a\":1.5,\"b\":2}}", "x".repeat(FEW_BYTES));
        assert_eq!(bodies(&large).len(), 2);
        for whole in [
            "{}",
            "[1e3,2.25E7,12345678901234567]",
            "\"1.5\"",
            "[1.2345]",
        ] {
            assert_eq!(bodies(whole), [""; 0], "{whole}");
        }
    }
}
