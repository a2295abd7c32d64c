//! Conversions of [`Date`] into the types of the date libraries, with one feature per library.
//!
//! A date converts to a date, and a date-time to a timestamp. The other two pairs would need a time
//! zone, and the text has none.

use serde::de::{Deserialize, Deserializer, Error};

use super::date::{CivilDay, Date, Instant};
use super::event_error::{EventError, EventErrorKind};

/// A DATE value, read as a type of `chrono`, `jiff` or `time`. An error has the property's path and
/// the reason.
///
/// `TryFrom<&Date>` knows no path. The types' own `Deserialize` has rules and messages of its own;
/// a message that may hold the value is left out of an [`EventError`]. Use `DateAs` in a row type
/// of your own, also inside an `Option`, or with [`Value::to`](super::Value::to) and
/// [`Required::to`](super::Required::to).
///
#[cfg_attr(feature = "chrono", doc = "```")]
#[cfg_attr(not(feature = "chrono"), doc = "```ignore")]
/// use chrono::NaiveDate;
/// use hookgate::{Properties, event::DateAs};
///
/// #[derive(serde::Deserialize)]
/// struct Order {
///     #[serde(rename = "Due")]
///     due: DateAs<NaiveDate>,
/// }
///
/// let properties: Properties =
/// serde_json::from_str(r#"{"Due":"2026-11-21","At":"2026-11-21T09:30:00Z"}"#)?;
/// assert_eq!(properties.to::<Order>()?.due.0.to_string(), "2026-11-21");
///
/// let error = properties.required().to::<DateAs<NaiveDate>>("At").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "data.properties.At does not fit: found a date-time, expected a date without a time",
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateAs<T>(pub T);

impl<'de, T> Deserialize<'de> for DateAs<T>
where
    T: for<'a> TryFrom<&'a Date, Error = EventError>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let date = Date::deserialize(deserializer)?;
        // In the form of serde's own messages, of which an `EventError` keeps the parts that hold
        // no value.
        T::try_from(&date).map(Self).map_err(|error| {
            let reason = error.reason().unwrap_or_default();
            let found = reason.strip_prefix("found ").unwrap_or(reason);
            D::Error::custom(format_args!("invalid type: {found}"))
        })
    }
}

impl TryFrom<&Date> for CivilDay {
    type Error = EventError;

    fn try_from(date: &Date) -> Result<Self, EventError> {
        let reason = "found a date-time, expected a date without a time";
        match date.instant()?.offset_seconds {
            Some(_) => Err(mismatch(reason)),
            None => date.day(),
        }
    }
}

/// The instant of a date-time.
struct Moment {
    instant: Instant,
    offset_seconds: i32,
}

impl TryFrom<&Date> for Moment {
    type Error = EventError;

    fn try_from(date: &Date) -> Result<Self, EventError> {
        let reason = "found a date without a time, expected a date-time";
        let instant = date.instant()?;
        let offset_seconds = instant.offset_seconds.ok_or_else(|| mismatch(reason))?;
        Ok(Self {
            instant,
            offset_seconds,
        })
    }
}

fn mismatch(reason: &str) -> EventError {
    EventError::new(EventErrorKind::TypeMismatch).because(Some(reason.into()))
}

/// Implements the conversion into a type of a library: from the day of a date, or from the moment
/// of a date-time. `None` is a value beyond the type's range.
macro_rules! conversions {
    ($($(#[$docs:meta])* $feature:literal: $target:ty, |$part:ident: $kind:ident| $convert:expr;)*) => {
        $(
            $(#[$docs])*
            #[cfg(feature = $feature)]
            impl TryFrom<&Date> for $target {
                type Error = EventError;

                fn try_from(date: &Date) -> Result<Self, EventError> {
                    let convert = |$part: $kind| -> Option<Self> { $convert };
                    let reason =
                        "found a date out of range, expected one in the range of the target type";
                    convert($kind::try_from(date)?).ok_or_else(|| mismatch(reason))
                }
            }
        )*
    };
}

conversions! {
    /// A date without a time; `TypeMismatch` for a date-time.
    ///
    /// ```
    /// use hookgate::event::Date;
    ///
    /// let day = chrono::NaiveDate::try_from(&Date::parse("2026-11-21").unwrap())?;
    /// assert_eq!(day.to_string(), "2026-11-21");
    /// # Ok::<(), hookgate::event::EventError>(())
    /// ```
    "chrono": chrono::NaiveDate, |day: CivilDay| {
        Self::from_ymd_opt(day.year.into(), day.month.into(), day.day.into())
    };

    /// A date-time as an instant; `TypeMismatch` for a date without a time.
    "chrono": chrono::DateTime<chrono::Utc>, |moment: Moment| {
        Self::from_timestamp(moment.instant.seconds, moment.instant.nanos)
    };

    /// A date-time with the offset that it was written with; `TypeMismatch` for a date without a
    /// time.
    ///
    /// ```
    /// use hookgate::event::Date;
    ///
    /// let date = Date::parse("2026-11-21T09:30:00+01:00").unwrap();
    /// let moment = chrono::DateTime::<chrono::FixedOffset>::try_from(&date)?;
    /// assert_eq!(moment.timestamp(), date.unix_seconds()?.as_i64());
    /// assert_eq!(moment.offset().local_minus_utc(), 3600);
    /// # Ok::<(), hookgate::event::EventError>(())
    /// ```
    "chrono": chrono::DateTime<chrono::FixedOffset>, |moment: Moment| {
        let Instant { seconds, nanos, .. } = moment.instant;
        let offset = chrono::FixedOffset::east_opt(moment.offset_seconds)?;
        let utc = chrono::DateTime::<chrono::Utc>::from_timestamp(seconds, nanos)?;
        Some(utc.with_timezone(&offset))
    };

    /// A date without a time; `TypeMismatch` for a date-time.
    ///
    /// ```
    /// use hookgate::event::Date;
    ///
    /// let day = jiff::civil::Date::try_from(&Date::parse("2026-11-21").unwrap())?;
    /// assert_eq!(day, jiff::civil::date(2026, 11, 21));
    /// # Ok::<(), hookgate::event::EventError>(())
    /// ```
    "jiff": jiff::civil::Date, |day: CivilDay| {
        let (month, number) = (day.month.try_into().ok()?, day.day.try_into().ok()?);
        Self::new(day.year.try_into().ok()?, month, number).ok()
    };

    /// A date-time as an instant; `TypeMismatch` for a date without a time, and for the last hours
    /// of the year 9999, which are out of jiff's range.
    ///
    /// ```
    /// use hookgate::event::Date;
    ///
    /// let moment = jiff::Timestamp::try_from(&Date::parse("2026-11-21T09:30:00+01:00").unwrap())?;
    /// assert_eq!(moment.to_string(), "2026-11-21T08:30:00Z");
    /// # Ok::<(), hookgate::event::EventError>(())
    /// ```
    "jiff": jiff::Timestamp, |moment: Moment| {
        Self::from_nanosecond(moment.instant.unix_nanos()).ok()
    };

    /// A date without a time; `TypeMismatch` for a date-time.
    ///
    /// ```
    /// use hookgate::event::Date;
    ///
    /// let day = time::Date::try_from(&Date::parse("2026-11-21").unwrap())?;
    /// assert_eq!((day.year(), day.ordinal()), (2026, 325));
    /// # Ok::<(), hookgate::event::EventError>(())
    /// ```
    "time": time::Date, |day: CivilDay| {
        let month = time::Month::try_from(day.month).ok()?;
        Self::from_calendar_date(day.year.into(), month, day.day).ok()
    };

    /// A date-time with the offset that it was written with; `TypeMismatch` for a date without a
    /// time, and for the last hours of the year 9999 in a zone west of UTC.
    ///
    /// ```
    /// use hookgate::event::Date;
    ///
    /// let date = Date::parse("2026-11-21T09:30:00+01:00").unwrap();
    /// let moment = time::OffsetDateTime::try_from(&date)?;
    /// assert_eq!((moment.hour(), moment.offset().whole_hours()), (9, 1));
    /// # Ok::<(), hookgate::event::EventError>(())
    /// ```
    "time": time::OffsetDateTime, |moment: Moment| {
        let offset = time::UtcOffset::from_whole_seconds(moment.offset_seconds).ok()?;
        let utc = Self::from_unix_timestamp_nanos(moment.instant.unix_nanos()).ok()?;
        utc.checked_to_offset(offset)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<D, T>()
    where
        D: for<'a> TryFrom<&'a Date, Error = EventError>,
        T: for<'a> TryFrom<&'a Date, Error = EventError>,
    {
        let day = Date::parse("2024-02-29").unwrap();
        let moment = Date::parse("2024-02-29T23:59:59.999999999-23:59").unwrap();
        assert!(D::try_from(&day).is_ok() && T::try_from(&moment).is_ok());
        let errors = [D::try_from(&moment).err(), T::try_from(&day).err()];
        assert!(
            errors
                .iter()
                .flatten()
                .all(|error| error.kind() == EventErrorKind::TypeMismatch)
        );
        assert_eq!(errors.iter().flatten().count(), 2);
        // The first and the last possible date-time, and values beyond a type's range, cause no
        // panic.
        for text in ["0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"] {
            let _ = T::try_from(&Date::parse(text).unwrap());
        }
    }

    #[test]
    fn dates_lead_to_dates_and_date_times_to_timestamps() {
        #[cfg(feature = "chrono")]
        {
            check::<chrono::NaiveDate, chrono::DateTime<chrono::Utc>>();
            check::<chrono::NaiveDate, chrono::DateTime<chrono::FixedOffset>>();
        }
        #[cfg(feature = "jiff")]
        check::<jiff::civil::Date, jiff::Timestamp>();
        #[cfg(feature = "time")]
        check::<time::Date, time::OffsetDateTime>();
    }

    #[cfg(all(feature = "chrono", feature = "jiff", feature = "time"))]
    // fault F33: a date that does not convert is an error without its property and its reason
    #[test]
    fn a_date_that_does_not_convert_is_named_with_its_path_and_the_reason() {
        use crate::{
            Properties,
            event::{Change, Changes},
        };

        fn message<T>(properties: &Properties, name: &str) -> String
        where
            DateAs<T>: serde::de::DeserializeOwned + std::fmt::Debug,
        {
            let error = properties.required().to::<DateAs<T>>(name).unwrap_err();
            assert_eq!(error.kind(), EventErrorKind::TypeMismatch);
            assert_eq!(error.path(), Some(&*format!("data.properties.{name}")));
            let message = error.to_string();
            message.split_once(": ").unwrap().1.to_owned()
        }

        #[derive(Debug, serde::Deserialize)]
        struct Order {
            #[serde(rename = "Day")]
            _day: Option<DateAs<jiff::civil::Date>>,
            #[serde(rename = "Days")]
            days: Vec<DateAs<time::Date>>,
        }

        let row = r#"{"Day":"2026-11-21","At":"2026-11-21T09:30:00Z","Month":"2026-13-01","Zone":"2026-11-21T09:30:00",
            "Last":"9999-12-31T23:59:59Z","Word":"SECRET","Days":["2026-11-21"],"None":null}"#;
        let properties: Properties = serde_json::from_str(row).unwrap();
        let required = properties.required();
        let day = required.to::<DateAs<chrono::NaiveDate>>("Day").unwrap();
        assert_eq!(day.0.to_string(), "2026-11-21");
        assert!(required.to::<DateAs<jiff::Timestamp>>("At").is_ok());
        assert_eq!(properties.to::<Order>().unwrap().days.len(), 1);

        for (found, reason) in [
            (
                message::<chrono::NaiveDate>(&properties, "At"),
                "found a date-time, expected a date without a time",
            ),
            (
                message::<time::OffsetDateTime>(&properties, "Day"),
                "found a date without a time, expected a date-time",
            ),
            (
                message::<jiff::Timestamp>(&properties, "Last"),
                "found a date out of range, expected one in the range of the target type",
            ),
            (
                message::<jiff::civil::Date>(&properties, "Month"),
                "found a string that does not fit, expected a day that the calendar has",
            ),
            (
                message::<jiff::Timestamp>(&properties, "Zone"),
                "found a string that does not fit, expected after the day a time with seconds and a zone",
            ),
            (
                message::<time::Date>(&properties, "Word"),
                "found a string that does not fit, expected a date (YYYY-MM-DD) or a date-time with its zone",
            ),
        ] {
            assert!(found.starts_with(reason), "{found}");
            assert!(
                !found.contains("13") && !found.contains("SECRET"),
                "{found}"
            );
        }

        // Below `flatten`, and in an untagged enum, serde buffers the text first.
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Either {
            Day {
                #[serde(rename = "Day")]
                day: Option<DateAs<chrono::NaiveDate>>,
            },
        }
        #[derive(serde::Deserialize)]
        struct Flattened {
            #[serde(flatten)]
            due: Either,
        }
        let Either::Day { day } = properties.to::<Flattened>().unwrap().due;
        assert_eq!(day.unwrap().0.to_string(), "2026-11-21");

        let row = row.replace(
            r#""Days":["2026-11-21"]"#,
            r#""Days":["2026-11-21","2026-11-21T09:30:00Z"]"#,
        );
        let properties: Properties = serde_json::from_str(&row).unwrap();
        let error = properties.to::<Order>().unwrap_err();
        assert_eq!(error.path(), Some("data.properties.Days[1]"));

        let changes: Changes =
            serde_json::from_str(r#"{"Due":{"before":"2026-11-21","after":"2026-02-30"}}"#)
                .unwrap();
        let error = changes
            .after("Due")
            .to::<DateAs<chrono::NaiveDate>>()
            .unwrap_err();
        assert_eq!(error.path(), Some("data.changes.Due.after"));
        #[derive(Debug, serde::Deserialize)]
        struct Due {
            #[serde(rename = "Due")]
            _due: Change<DateAs<chrono::NaiveDate>>,
        }
        let error = changes.to::<Due>().unwrap_err();
        assert_eq!(error.path(), Some("data.changes.Due.after"));
        assert!(
            error
                .to_string()
                .contains("expected a day that the calendar has"),
            "{error}"
        );
    }
}
