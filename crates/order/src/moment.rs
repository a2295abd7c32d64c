//! `createdAt`, with the resolution in which it was written.

use std::cmp::Ordering;

use hookgate::event::Date;

/// The instant of an event. The specification does not say how exact `createdAt` is, so a moment
/// knows how exactly it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Since 1970.
    micros: i64,
    /// In microseconds: 1,000,000 where the text has whole seconds.
    resolution: u32,
}

const SECOND: u32 = 1_000_000;

impl Moment {
    /// Returns `None` for a text that is not a date, and for a date without a time: it may be any
    /// moment of that day.
    pub(super) fn read(text: &str) -> Option<Self> {
        let date = Date::parse(text).ok().filter(|date| !date.is_date_only())?;
        let fraction = date.as_str().split_once('.').map_or("", |(_, rest)| rest);
        let digits = fraction
            .bytes()
            .take_while(u8::is_ascii_digit)
            .take(6)
            .count();
        let resolution = (0..digits).fold(SECOND, |resolution, _| resolution / 10);
        let micros = i64::try_from(date.unix_nanos().ok()? / 1_000).ok()?;
        Some(Self { micros, resolution })
    }

    /// Returns `None` if the two are too close to tell: closer than the coarser of the two was
    /// written.
    pub(super) fn compare(self, other: Self) -> Option<Ordering> {
        let coarser = self.resolution.max(other.resolution);
        let is_apart = self.micros.abs_diff(other.micros) >= coarser.into();
        is_apart.then(|| self.micros.cmp(&other.micros))
    }

    /// Returns a moment for two that are too close to tell: another one is later than it only if it
    /// is later than both.
    pub(super) fn spanning(self, other: Self) -> Self {
        Self {
            micros: self.micros.max(other.micros),
            resolution: self.resolution.max(other.resolution),
        }
    }

    pub(super) fn to_parts(self) -> (i64, u32) {
        (self.micros, self.resolution)
    }

    pub(super) fn from_parts(micros: i64, resolution: u32) -> Option<Self> {
        let is_known = (0..=6).any(|digits| SECOND / 10_u32.pow(digits) == resolution);
        is_known.then_some(Self { micros, resolution })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_compared_as_exactly_as_the_coarser_was_written() {
        use Ordering::{Greater, Less};
        for (one, other, expected) in [
            ("2026-11-21T09:30:00Z", "2026-11-21T09:30:00Z", None),
            ("2026-11-21T09:30:00Z", "2026-11-21T09:30:01Z", Some(Less)),
            ("2026-11-21T09:30:00Z", "2026-11-21T10:30:00+01:00", None),
            ("2026-11-21T09:30:00Z", "2026-11-21T09:30:00.9Z", None),
            ("2026-11-21T09:30:00Z", "2026-11-21T09:30:01.0Z", Some(Less)),
            ("2026-11-21T09:30:00.999Z", "2026-11-21T09:30:01Z", None),
            (
                "2026-11-21T09:30:00.250Z",
                "2026-11-21T09:30:00.249Z",
                Some(Greater),
            ),
            ("2026-11-21T09:30:00.25Z", "2026-11-21T09:30:00.255Z", None),
            (
                "2026-11-21T09:30:00.000001Z",
                "2026-11-21T09:30:00.000002Z",
                Some(Less),
            ),
            (
                "2026-11-21T09:30:00.000000001Z",
                "2026-11-21T09:30:00.000000002Z",
                None,
            ),
            ("1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", Some(Less)),
        ] {
            let (one, other) = (Moment::read(one).unwrap(), Moment::read(other).unwrap());
            assert_eq!(one.compare(other), expected);
            assert_eq!(
                other.compare(one),
                expected.map(Ordering::reverse),
                "{one:?} {other:?}"
            );
        }
    }

    #[test]
    fn a_text_that_is_not_a_moment_is_none() {
        for text in ["", "now", "2026-11-21", "2026-11-21T09:30:00", "1763717400"] {
            assert_eq!(Moment::read(text), None, "{text}");
        }
    }
}
