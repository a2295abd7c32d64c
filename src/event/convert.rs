//! Conversions of [`Date`] into the types of the date libraries, with one feature per library.
//!
//! A date converts to a date, and a date-time to a timestamp. The other two pairs would need a time zone, and the text has
//! none.

use super::Date;
use super::error::{EventError, EventErrorKind};

/// Returns the date, or an error for a date-time.
fn only_date(date: &Date) -> Result<&Date, EventError> {
    if date.is_date_only() {
        Ok(date)
    } else {
        Err(mismatch(
            "found a date-time, expected a date without a time",
        ))
    }
}

/// Returns the offset of a date-time, or an error for a date without a time.
fn only_date_time(date: &Date) -> Result<i32, EventError> {
    date.offset_seconds()
        .ok_or_else(|| mismatch("found a date without a time, expected a date-time"))
}

fn mismatch(reason: &str) -> EventError {
    EventError::new(EventErrorKind::TypeMismatch).because(Some(reason.into()))
}

fn out_of_range() -> EventError {
    mismatch("found a date-time beyond the range of the target type")
}

#[cfg(feature = "chrono")]
mod with_chrono {
    use chrono::{DateTime, FixedOffset, NaiveDate, Utc};

    use super::*;

    /// A date without a time; `TypeMismatch` for a date-time.
    ///
    /// ```
    /// use hookgate::Date;
    ///
    /// let day = chrono::NaiveDate::try_from(&Date::parse("2026-11-21").unwrap())?;
    /// assert_eq!(day.to_string(), "2026-11-21");
    /// # Ok::<(), hookgate::EventError>(())
    /// ```
    impl TryFrom<&Date> for NaiveDate {
        type Error = EventError;

        fn try_from(date: &Date) -> Result<Self, EventError> {
            let day = only_date(date)?.day;
            Self::from_ymd_opt(day.year.into(), day.month.into(), day.day.into())
                .ok_or_else(out_of_range)
        }
    }

    /// A date-time as an instant; `TypeMismatch` for a date without a time.
    impl TryFrom<&Date> for DateTime<Utc> {
        type Error = EventError;

        fn try_from(date: &Date) -> Result<Self, EventError> {
            only_date_time(date)?;
            Self::from_timestamp(date.unix_seconds().as_i64(), date.subsec_nanos())
                .ok_or_else(out_of_range)
        }
    }

    /// A date-time with the offset that it was written with; `TypeMismatch` for a date without a time.
    ///
    /// ```
    /// use hookgate::Date;
    ///
    /// let date = Date::parse("2026-11-21T09:30:00+01:00").unwrap();
    /// let moment = chrono::DateTime::<chrono::FixedOffset>::try_from(&date)?;
    /// assert_eq!(moment.timestamp(), date.unix_seconds().as_i64());
    /// assert_eq!(moment.offset().local_minus_utc(), 3600);
    /// # Ok::<(), hookgate::EventError>(())
    /// ```
    impl TryFrom<&Date> for DateTime<FixedOffset> {
        type Error = EventError;

        fn try_from(date: &Date) -> Result<Self, EventError> {
            let offset = FixedOffset::east_opt(only_date_time(date)?).ok_or_else(out_of_range)?;
            Ok(DateTime::<Utc>::try_from(date)?.with_timezone(&offset))
        }
    }
}

#[cfg(feature = "jiff")]
mod with_jiff {
    use super::*;

    /// A date without a time; `TypeMismatch` for a date-time.
    ///
    /// ```
    /// use hookgate::Date;
    ///
    /// let day = jiff::civil::Date::try_from(&Date::parse("2026-11-21").unwrap())?;
    /// assert_eq!(day, jiff::civil::date(2026, 11, 21));
    /// # Ok::<(), hookgate::EventError>(())
    /// ```
    impl TryFrom<&Date> for jiff::civil::Date {
        type Error = EventError;

        fn try_from(date: &Date) -> Result<Self, EventError> {
            let day = only_date(date)?.day;
            let narrow = |number: u8| i8::try_from(number).map_err(|_| out_of_range());
            let year = i16::try_from(day.year).map_err(|_| out_of_range())?;
            Self::new(year, narrow(day.month)?, narrow(day.day)?).map_err(|_| out_of_range())
        }
    }

    /// A date-time as an instant; `TypeMismatch` for a date without a time, and for the last hours of the year 9999, which are
    /// out of jiff's range.
    ///
    /// ```
    /// use hookgate::Date;
    ///
    /// let moment = jiff::Timestamp::try_from(&Date::parse("2026-11-21T09:30:00+01:00").unwrap())?;
    /// assert_eq!(moment.to_string(), "2026-11-21T08:30:00Z");
    /// # Ok::<(), hookgate::EventError>(())
    /// ```
    impl TryFrom<&Date> for jiff::Timestamp {
        type Error = EventError;

        fn try_from(date: &Date) -> Result<Self, EventError> {
            only_date_time(date)?;
            Self::from_nanosecond(date.unix_nanos()).map_err(|_| out_of_range())
        }
    }
}

#[cfg(feature = "time")]
mod with_time {
    use time::{Month, OffsetDateTime, UtcOffset};

    use super::*;

    /// A date without a time; `TypeMismatch` for a date-time.
    ///
    /// ```
    /// use hookgate::Date;
    ///
    /// let day = time::Date::try_from(&Date::parse("2026-11-21").unwrap())?;
    /// assert_eq!((day.year(), day.ordinal()), (2026, 325));
    /// # Ok::<(), hookgate::EventError>(())
    /// ```
    impl TryFrom<&Date> for time::Date {
        type Error = EventError;

        fn try_from(date: &Date) -> Result<Self, EventError> {
            let day = only_date(date)?.day;
            let month = Month::try_from(day.month).map_err(|_| out_of_range())?;
            Self::from_calendar_date(day.year.into(), month, day.day).map_err(|_| out_of_range())
        }
    }

    /// A date-time with the offset that it was written with; `TypeMismatch` for a date without a time, and for the last hours of
    /// the year 9999 in a zone west of UTC.
    ///
    /// ```
    /// use hookgate::Date;
    ///
    /// let date = Date::parse("2026-11-21T09:30:00+01:00").unwrap();
    /// let moment = time::OffsetDateTime::try_from(&date)?;
    /// assert_eq!((moment.hour(), moment.offset().whole_hours()), (9, 1));
    /// # Ok::<(), hookgate::EventError>(())
    /// ```
    impl TryFrom<&Date> for OffsetDateTime {
        type Error = EventError;

        fn try_from(date: &Date) -> Result<Self, EventError> {
            let offset =
                UtcOffset::from_whole_seconds(only_date_time(date)?).map_err(|_| out_of_range())?;
            Self::from_unix_timestamp_nanos(date.unix_nanos())
                .ok()
                .and_then(|moment| moment.checked_to_offset(offset))
                .ok_or_else(out_of_range)
        }
    }
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
        // The first and the last possible date-time, and values beyond a type's range, cause no panic.
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
}
