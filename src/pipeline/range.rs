//! The range of a duration that is a setting.

use std::time::Duration;

use crate::config::{ConfigError, ConfigErrorKind};

/// The longest deadline or lease.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Checks that a duration is longer than `least` and not longer than `most`.
pub(crate) fn in_range(
    setting: &'static str,
    value: Duration,
    least: Duration,
    most: Duration,
) -> Result<(), ConfigError> {
    // This is longer than any useful value, and small enough that adding it to a reading of a clock does not overflow.
    let most = most.min(LONGEST);
    if value <= least || value > most {
        return Err(ConfigError::new(ConfigErrorKind::OutOfRange {
            setting,
            least,
            most,
        }));
    }
    Ok(())
}
