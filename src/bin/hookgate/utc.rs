//! Times as they are shown: UTC, ISO 8601.

use hookgate::UnixSeconds;

const SECONDS_PER_DAY: i64 = 86_400;

/// `2026-11-21T09:30:00Z`.
pub(crate) fn iso(time: UnixSeconds) -> String {
    let (year, month, day) = civil(time.as_i64().div_euclid(SECONDS_PER_DAY));
    format!("{year:04}-{month:02}-{day:02}T{}Z", clock(time))
}

/// `09:30:00`, where the day goes without saying.
pub(crate) fn clock(time: UnixSeconds) -> String {
    let second = time.as_i64().rem_euclid(SECONDS_PER_DAY);
    format!(
        "{:02}:{:02}:{:02}",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

/// Year, month and day of the Gregorian calendar, so many days after 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    // Counted from 0000-03-01, so that a leap day is the last of its year; 400 years have 146,097 days.
    let days = days.saturating_add(719_468);
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March on have 153 days in five.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use hookgate::Date;

    use super::*;

    #[test]
    fn what_is_shown_reads_as_the_same_second() {
        for second in [0, 951_782_399, 951_782_400, 951_868_800, 1_763_690_000, 4_107_542_400] {
            let shown = iso(UnixSeconds::new(second));
            assert_eq!(Date::parse(&shown).unwrap().unix_seconds().as_i64(), second, "{shown}");
        }
        // Each day of 800 years, read by the library's own calendar.
        for day in (-135_140..157_054).step_by(1) {
            let time = UnixSeconds::new(day * SECONDS_PER_DAY + 86_399);
            let shown = iso(time);
            assert_eq!(Date::parse(&shown).unwrap().unix_seconds(), time, "{shown}");
        }
    }

    #[test]
    fn no_time_is_too_far_away() {
        for second in [i64::MIN, -1, i64::MAX] {
            assert!(iso(UnixSeconds::new(second)).ends_with('Z'));
        }
    }
}
