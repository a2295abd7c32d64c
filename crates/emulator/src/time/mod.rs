//! The emulator's time: a base clock and an offset that `clock/advance` adds to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hookgate::{Clock, Monotonic, UnixSeconds};

/// Which time deliveries are signed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SigningTime {
    /// That of the base clock: a receiver in another process reads a real clock.
    Real,
    /// That of the emulator: the receiver shares its clock.
    Emulated,
}

/// The clock of one emulator. Clones share their time.
#[derive(Clone, Debug)]
pub struct EmulatorClock {
    base: Arc<dyn Clock>,
    offset_millis: Arc<AtomicU64>,
    signatures: SigningTime,
}

impl EmulatorClock {
    pub(crate) fn new(base: Arc<dyn Clock>, signatures: SigningTime) -> Self {
        Self {
            base,
            offset_millis: Arc::default(),
            signatures,
        }
    }

    /// Returns the time in ISO 8601 form.
    #[must_use]
    pub fn iso(&self) -> String {
        hookgate_testing::iso8601(self.now())
    }

    pub(crate) fn signing_time(&self) -> UnixSeconds {
        match self.signatures {
            SigningTime::Real => self.base.now(),
            SigningTime::Emulated => self.now(),
        }
    }

    pub(crate) fn offset(&self) -> Duration {
        Duration::from_millis(self.offset_millis.load(Ordering::SeqCst))
    }

    pub(crate) fn set_offset(&self, offset: Duration) {
        let millis = u64::try_from(offset.as_millis()).unwrap_or(u64::MAX);
        self.offset_millis.store(millis, Ordering::SeqCst);
    }
}

impl Clock for EmulatorClock {
    fn now(&self) -> UnixSeconds {
        let millis = self.unix_millis();
        UnixSeconds::new(i64::try_from(millis / 1_000).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Monotonic {
        self.base.monotonic().saturating_add(self.offset())
    }

    fn unix_millis(&self) -> u64 {
        let offset = self.offset_millis.load(Ordering::SeqCst);
        self.base.unix_millis().saturating_add(offset)
    }
}

/// Reads a sum such as `90s`, `5m`, `26h36m` or `2d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration, expected a sum such as 90s, 5m, 26h36m or 2d");
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest
            .find(|char: char| !char.is_ascii_digit())
            .ok_or_else(wrong)?;
        let number: u64 = rest[..end].parse().map_err(|_| wrong())?;
        let unit = match &rest[end..=end] {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return Err(wrong()),
        };
        let seconds = number.checked_mul(unit).ok_or_else(wrong)?;
        total = total
            .checked_add(Duration::from_secs(seconds))
            .ok_or_else(wrong)?;
        rest = &rest[end + 1..];
    }
    if text.is_empty() {
        Err(wrong())
    } else {
        Ok(total)
    }
}
