//! Dates: the text as written, and the instant that it means, if it means one.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::{Deserialize, Deserializer, Error, Unexpected};
use serde::ser::{Serialize, Serializer};

use super::event_error::{EventError, EventErrorKind};
use super::ids::Name;
use crate::clock::UnixSeconds;
use crate::verify::Malformed;

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// A DATE value: a date, or a date-time with its zone. It keeps the text, and knows the instant
/// that the text means.
///
/// The known forms are common to ISO 8601 and RFC 3339: `YYYY-MM-DD`, or that with `T`, `hh:mm:ss`,
/// an optional fraction of one to nine digits, and `Z` or an offset `±hh:mm`. `T` and `Z` may be in
/// lower case. Days are checked against the calendar.
///
/// A value of a row that begins with a year, such as `2026-`, is read in any other form too,
/// because an event must not fail for a time that its handler may not need. Such a date has its
/// text, and no instant: a leap second (`:60`), a date-time without a zone, an offset without a
/// colon, a day that the calendar does not have. [`unix_seconds`](Self::unix_seconds) and each
/// conversion then return an error that names what the text should have had. [`parse`](Self::parse)
/// takes the known forms alone.
///
/// You can use it in a row type of your own.
///
/// ```
/// use hookgate::{Properties, event::Date};
///
/// let moment = Date::parse("2026-11-21T09:30:00.25+01:00")?;
/// assert_eq!(moment.unix_seconds()?.as_i64(), 1_795_249_800);
/// assert_eq!(moment.unix_nanos()?, 1_795_249_800_250_000_000);
///
/// assert!(Date::parse("2024-02-29")?.is_date_only());
/// assert!(Date::parse("2026-02-29").is_err());
///
/// let row: Properties = serde_json::from_str(r#"{"At":"2026-12-31T23:59:60Z"}"#)?;
/// let leap = row.required().date("At")?;
/// assert_eq!(leap.as_str(), "2026-12-31T23:59:60Z");
/// assert!(leap.unix_seconds().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// With the features `chrono`, `jiff` and `time`, `TryFrom<&Date>` converts a date to the date of
/// those crates, and a date-time to their timestamp. The other two pairs are errors: the day of an
/// instant depends on a zone, and so does the beginning of a day. A `Date` does not know the
/// property that it was read from. Where the error must name it, let the field be a `DateAs`, which
/// reads and converts at once.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Date {
    text: Box<str>,
    /// For a text that means no instant: what it should have had.
    parts: Result<Parts, &'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Parts {
    day: CivilDay,
    time: Option<Time>,
}

/// A valid day of the calendar.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CivilDay {
    pub(super) year: u16,
    pub(super) month: u8,
    pub(super) day: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Time {
    second_of_day: u32,
    nanos: u32,
    offset_seconds: i32,
}

/// An instant since 1970-01-01T00:00:00Z. Its offset is that of the text.
#[derive(Clone, Copy)]
pub(super) struct Instant {
    pub(super) seconds: i64,
    pub(super) nanos: u32,
    /// `None` for a date without a time.
    pub(super) offset_seconds: Option<i32>,
}

impl Date {
    /// Parses a text in one of the known forms.
    ///
    /// # Errors
    /// [`Malformed`] for all other texts.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let date = Self::new(text);
        date.parts.map(|_| date).map_err(|_| Malformed)
    }

    fn new(text: &str) -> Self {
        Self {
            text: text.into(),
            parts: Parts::parse(text),
        }
    }

    /// The text as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether it is a date without a time, of a day that the calendar has.
    #[must_use]
    pub fn is_date_only(&self) -> bool {
        self.parts.is_ok_and(|parts| parts.time.is_none())
    }

    /// The instant in whole seconds, rounded down. For a date without a time it is midnight in UTC.
    ///
    /// # Errors
    /// `TypeMismatch`, with the reason: the text means no instant.
    pub fn unix_seconds(&self) -> Result<UnixSeconds, EventError> {
        self.instant()
            .map(|instant| UnixSeconds::new(instant.seconds))
    }

    /// The instant in nanoseconds since 1970-01-01T00:00:00Z.
    ///
    /// # Errors
    /// As [`unix_seconds`](Self::unix_seconds).
    pub fn unix_nanos(&self) -> Result<i128, EventError> {
        self.instant().map(Instant::unix_nanos)
    }

    /// The written offset from UTC, in seconds east; `None` for a date without a time, and for a
    /// text that means no instant.
    #[must_use]
    pub fn offset_seconds(&self) -> Option<i32> {
        self.instant().ok()?.offset_seconds
    }

    /// The instant as the standard library's type; `None` where the text means no instant, or the
    /// platform's type can't hold it.
    #[must_use]
    pub fn to_system_time(&self) -> Option<SystemTime> {
        let Instant { seconds, nanos, .. } = self.instant().ok()?;
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let second = if seconds < 0 {
            UNIX_EPOCH.checked_sub(whole)
        } else {
            UNIX_EPOCH.checked_add(whole)
        };
        second?.checked_add(Duration::from_nanos(nanos.into()))
    }

    pub(super) fn instant(&self) -> Result<Instant, EventError> {
        let Parts { day, time } = self.parts()?;
        let midnight = day.days_since_epoch() * SECONDS_PER_DAY;
        Ok(Instant {
            seconds: time.map_or(midnight, |time| {
                midnight + i64::from(time.second_of_day) - i64::from(time.offset_seconds)
            }),
            nanos: time.map_or(0, |time| time.nanos),
            offset_seconds: time.map(|time| time.offset_seconds),
        })
    }

    #[cfg(any(test, feature = "chrono", feature = "jiff", feature = "time"))]
    pub(super) fn day(&self) -> Result<CivilDay, EventError> {
        self.parts().map(|parts| parts.day)
    }

    fn parts(&self) -> Result<Parts, EventError> {
        self.parts.map_err(|expected| {
            let reason = format!("found a string that does not fit, expected {expected}");
            EventError::new(EventErrorKind::TypeMismatch).because(Some(reason))
        })
    }
}

impl Instant {
    pub(super) fn unix_nanos(self) -> i128 {
        i128::from(self.seconds) * NANOS_PER_SECOND + i128::from(self.nanos)
    }
}

impl Parts {
    /// The error names the part that the text should have had. It holds nothing of the text.
    fn parse(text: &str) -> Result<Self, &'static str> {
        let mut rest = Rest(text.as_bytes());
        let day = rest.day();
        let day = day.ok_or("a date (YYYY-MM-DD) or a date-time with its zone")?;
        if !(1..=12).contains(&day.month) || !(1..=days_of(day.year, day.month)).contains(&day.day)
        {
            return Err("a day that the calendar has");
        }
        let time = if rest.0.is_empty() {
            None
        } else {
            let time = rest.time();
            Some(time.ok_or("after the day a time with seconds and a zone")?)
        };
        Ok(Self { day, time })
    }
}

impl CivilDay {
    /// Days since 1970-01-01 in the Gregorian calendar, which is extended back to the year 0.
    fn days_since_epoch(self) -> i64 {
        let past_years = i64::from(self.year) - 1;
        let leap_days =
            past_years.div_euclid(4) - past_years.div_euclid(100) + past_years.div_euclid(400);
        let past_months: u16 = (1..self.month)
            .map(|month| u16::from(days_of(self.year, month)))
            .sum();
        // 719,162 days lie between 0001-01-01 and the epoch.
        past_years * 365 + leap_days + i64::from(past_months) + i64::from(self.day) - 1 - 719_162
    }
}

fn days_of(year: u16, month: u8) -> u8 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 31,
    }
}

/// The part of the text that is not read yet. The day may be one that the calendar does not have.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn day(&mut self) -> Option<CivilDay> {
        let year = u16::from(self.two_digits(99)?) * 100 + u16::from(self.two_digits(99)?);
        self.one_of(b"-")?;
        let month = self.two_digits(99)?;
        self.one_of(b"-")?;
        let day = self.two_digits(99)?;
        Some(CivilDay { year, month, day })
    }

    fn time(&mut self) -> Option<Time> {
        self.one_of(b"Tt")?;
        let hours = self.two_digits(23)?;
        self.one_of(b":")?;
        let minutes = self.two_digits(59)?;
        self.one_of(b":")?;
        let seconds = self.two_digits(59)?;
        let nanos = match self.one_of(b".") {
            Some(_) => self.fraction()?,
            None => 0,
        };
        let offset_seconds = self.offset()?;
        let second_of_day = u32::from(hours) * 3600 + u32::from(minutes) * 60 + u32::from(seconds);
        self.0.is_empty().then_some(Time {
            second_of_day,
            nanos,
            offset_seconds,
        })
    }

    fn offset(&mut self) -> Option<i32> {
        let sign = match self.one_of(b"Zz+-")? {
            b'+' => 1,
            b'-' => -1,
            _ => return Some(0),
        };
        let hours = self.two_digits(23)?;
        self.one_of(b":")?;
        let minutes = self.two_digits(59)?;
        Some(sign * (i32::from(hours) * 3600 + i32::from(minutes) * 60))
    }

    fn fraction(&mut self) -> Option<u32> {
        let is_digit = |byte: &&u8| byte.is_ascii_digit();
        let length = self.0.iter().take_while(is_digit).count();
        let (digits, rest) = self.0.split_at(length);
        self.0 = rest;
        let scale = 10_u32.pow(9_u32.checked_sub(u32::try_from(length).ok()?)?);
        let digits = std::str::from_utf8(digits).ok()?;
        Some(digits.parse::<u32>().ok()? * scale)
    }

    fn two_digits(&mut self, most: u8) -> Option<u8> {
        let (&[tens, ones], rest) = self.0.split_first_chunk()?;
        if !tens.is_ascii_digit() || !ones.is_ascii_digit() {
            return None;
        }
        self.0 = rest;
        Some((tens - b'0') * 10 + (ones - b'0')).filter(|&number| number <= most)
    }

    fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        bytes.contains(&first).then(|| {
            self.0 = rest;
            first
        })
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Date({self})")
    }
}

impl Serialize for Date {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Name(text) = Name::deserialize(deserializer)?;
        let date = Self::new(&text);
        match date.parts {
            Err(expected) if !begins_with_a_year(&text) => {
                Err(D::Error::invalid_value(Unexpected::Str(""), &expected))
            }
            _ => Ok(date),
        }
    }
}

fn begins_with_a_year(text: &str) -> bool {
    let year = text.as_bytes().split_first_chunk::<4>();
    year.is_some_and(|(year, rest)| {
        year.iter().all(u8::is_ascii_digit) && rest.first() == Some(&b'-')
    })
}

/// A date that is kept as text without a check: `createdAt`.
///
/// The specification does not define its precision, and an event must not fail because of a field
/// that its handler may not need. So any text is accepted, and [`date`](Self::date) parses it on
/// demand.
#[derive(Clone, PartialEq, Eq, Hash, serde::Deserialize, serde::Serialize)]
#[serde(transparent)]
pub struct DateText(Box<str>);

impl DateText {
    pub(super) fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The text as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses the instant.
    ///
    /// # Errors
    /// [`Malformed`], as [`Date::parse`].
    pub fn date(&self) -> Result<Date, Malformed> {
        Date::parse(&self.0)
    }
}

impl fmt::Display for DateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Shows the text only where it is a date: any other text could hold confidential data.
impl fmt::Debug for DateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.date() {
            Ok(date) => write!(f, "DateText({date})"),
            Err(Malformed) => f.write_str("DateText(no date)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_right() {
        for (text, seconds, nanos) in [
            ("1970-01-01", 0, 0),
            ("1970-01-01T00:00:00Z", 0, 0),
            ("1969-12-31T23:59:59.5Z", -1, 500_000_000),
            ("2000-02-29T12:00:00Z", 951_825_600, 0),
            ("2026-11-21t09:30:00.000000001z", 1_795_253_400, 1),
            ("2026-11-21T09:30:00+05:30", 1_795_233_600, 0),
            ("2026-11-21T09:30:00-00:00", 1_795_253_400, 0),
            ("0000-01-01", -62_167_219_200, 0),
            ("0001-01-01", -62_135_596_800, 0),
            (
                "9999-12-31T23:59:59.999999999Z",
                253_402_300_799,
                999_999_999,
            ),
            ("9999-12-31T23:59:59-23:59", 253_402_387_139, 0),
        ] {
            let date = Date::parse(text).unwrap();
            assert_eq!(date.unix_seconds().unwrap().as_i64(), seconds, "{text}");
            let whole = i128::from(seconds) * NANOS_PER_SECOND;
            assert_eq!(
                date.unix_nanos().unwrap(),
                whole + i128::from(nanos),
                "{text}"
            );
            assert_eq!(date.is_date_only(), text.len() == 10);
            let since = date
                .to_system_time()
                .map(|time| match time.duration_since(UNIX_EPOCH) {
                    Ok(after) => i128::try_from(after.as_nanos()).unwrap(),
                    Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap(),
                });
            // A platform may be unable to represent the time, but must never give another time.
            assert!(
                since.is_none_or(|since| since == date.unix_nanos().unwrap()),
                "{text}"
            );
        }
    }

    #[test]
    fn days_follow_each_other_through_the_whole_calendar() {
        let mut expected = Date::parse("0000-01-01")
            .unwrap()
            .day()
            .unwrap()
            .days_since_epoch();
        for year in 0..=9999 {
            for month in 1..=12 {
                for day in 1..=days_of(year, month) {
                    assert_eq!(CivilDay { year, month, day }.days_since_epoch(), expected);
                    expected += 1;
                }
            }
        }
    }

    #[test]
    fn a_date_of_a_row_that_means_no_instant_keeps_its_text_and_says_why() {
        const ZONE: &str = "expected after the day a time with seconds and a zone";
        const DAY: &str = "expected a day that the calendar has";
        const FORM: &str = "expected a date (YYYY-MM-DD) or a date-time with its zone";
        for (text, reason) in [
            ("2026-12-31T23:59:60Z", ZONE),
            ("2026-11-21T09:30:00+0100", ZONE),
            ("2026-11-21T09:30:00+01", ZONE),
            ("2026-11-21T09:30:00", ZONE),
            ("2026-11-21T09:30Z", ZONE),
            ("2026-11-21T24:00:00Z", ZONE),
            ("2026-11-21 09:30:00Z", ZONE),
            ("2026-11-21T09:30:00,5Z", ZONE),
            ("2026-11-21T09:30:00.0000000001Z", ZONE),
            ("2026-02-30", DAY),
            ("2026-13-01T00:00:00Z", DAY),
            ("2026-W47-6", FORM),
            ("2026-325", FORM),
            ("2026-11", FORM),
        ] {
            assert!(Date::parse(text).is_err(), "{text}");
            let date: Date = serde_json::from_str(&format!("\"{text}\"")).unwrap();
            assert_eq!(date.as_str(), text);
            assert_eq!(serde_json::to_string(&date).unwrap(), format!("\"{text}\""));
            assert!(
                !date.is_date_only() && date.to_system_time().is_none(),
                "{text}"
            );
            assert_eq!(date.offset_seconds(), None);
            let errors = [date.unix_seconds().err(), date.unix_nanos().err()];
            for error in errors.map(Option::unwrap) {
                assert_eq!(error.kind(), EventErrorKind::TypeMismatch);
                let message = error.to_string();
                assert!(
                    message.ends_with(reason) && !message.contains("2026"),
                    "{message}"
                );
            }
        }
        for other in [
            "",
            "open",
            "20261121",
            "21.11.2026",
            " 2026-11-21",
            "202-11-21",
        ] {
            assert!(
                serde_json::from_str::<Date>(&format!("\"{other}\"")).is_err(),
                "{other}"
            );
        }
    }

    #[test]
    fn everything_else_is_malformed() {
        for text in [
            "",
            "2026",
            "2026-11",
            "2026-11-00",
            "2026-00-01",
            "2026-13-01",
            "2026-04-31",
            "1900-02-29",
            "26-11-21",
            "+2026-11-21",
            "2026-11-21 ",
            "2026-11-21T09:30:00",
            "2026-11-21 09:30:00Z",
            "2026-11-21T09:30Z",
            "2026-11-21T24:00:00Z",
            "2026-11-21T23:59:60Z",
            "2026-11-21T09:30:00.Z",
            "2026-11-21T09:30:00,5Z",
            "2026-11-21T09:30:00.0000000001Z",
            "2026-11-21T09:30:00+0100",
            "2026-11-21T09:30:00+24:00",
            "2026-11-21T09:30:00ZZ",
            "٢٠٢٦-11-21",
        ] {
            assert!(Date::parse(text).is_err(), "{text}");
        }
    }
}
