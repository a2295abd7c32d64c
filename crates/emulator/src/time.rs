//! The emulator's time: a base clock, and an offset that `clock/advance` adds to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hookgate::clock::{Clock, Monotonic, UnixSeconds};
use hookgate_testing::iso8601;

/// Which time deliveries are signed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SigningTime {
    /// That of the base clock: a receiver in another process reads a real clock.
    Real,
    /// That of the emulator: the receiver shares its clock.
    Emulated,
}

/// A point of the emulator's monotonic time: it stands still or goes forward, also where the base
/// clock's wall is set.
pub(crate) type Moment = Duration;

/// The clock of one emulator: its base clock, plus the time that `advance` has added. Clones share
/// their time.
///
/// A receiver in the same process uses it as its own clock, so that later retries are not ahead of
/// the receiver:
///
/// ```text
/// Receiver::builder().clock(emulator.clock()).store(MemoryStore::default().with_clock(emulator.clock()))
/// ```
#[derive(Clone, Debug)]
pub struct EmulatorClock {
    base: Arc<dyn Clock>,
    offset_nanos: Arc<AtomicU64>,
    signatures: SigningTime,
}

impl EmulatorClock {
    pub(crate) fn new(base: Arc<dyn Clock>, signatures: SigningTime) -> Self {
        Self {
            base,
            offset_nanos: Arc::default(),
            signatures,
        }
    }

    /// Returns the time in ISO 8601 form.
    #[must_use]
    pub fn iso(&self) -> String {
        iso8601(self.now())
    }

    /// Returns the time to sign at.
    pub(crate) fn signing_time(&self) -> UnixSeconds {
        match self.signatures {
            SigningTime::Real => self.base.now(),
            SigningTime::Emulated => self.now(),
        }
    }

    /// Returns the time that a signature has now whose first attempt was signed at `first`, when
    /// the offset was `offset`. For a receiver that reads a real clock it has become older by what
    /// `advance` has passed since.
    pub(crate) fn aged(&self, first: UnixSeconds, offset: Duration) -> UnixSeconds {
        let passed = match self.signatures {
            SigningTime::Real => self.offset().saturating_sub(offset).as_secs(),
            SigningTime::Emulated => 0,
        };
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        UnixSeconds::new(first.as_i64().saturating_sub(passed))
    }

    pub(crate) fn moment(&self) -> Moment {
        self.monotonic().since_start()
    }

    /// Returns the base clock's reading, which `advance` does not change: what an attempt takes is
    /// measured by it.
    pub(crate) fn base_moment(&self) -> Moment {
        self.base.monotonic().since_start()
    }

    /// Returns the wall clock at a moment, in milliseconds since 1970-01-01T00:00:00Z.
    pub(crate) fn millis_at(&self, moment: Moment) -> u64 {
        let (wall, now) = (self.unix_millis(), self.moment());
        let apart = |ahead: Duration| u64::try_from(ahead.as_millis()).unwrap_or(u64::MAX);
        match moment.checked_sub(now) {
            Some(ahead) => wall.saturating_add(apart(ahead)),
            None => wall.saturating_sub(apart(now - moment)),
        }
    }

    pub(crate) fn offset(&self) -> Duration {
        Duration::from_nanos(self.offset_nanos.load(Ordering::SeqCst))
    }

    /// Sets the offset, for a reset and a restore. Time may go backward.
    pub(crate) fn set_offset(&self, offset: Duration) {
        let nanos = u64::try_from(offset.as_nanos()).unwrap_or(u64::MAX);
        self.offset_nanos.store(nanos, Ordering::SeqCst);
    }

    /// Passes time up to this moment; none where it is over.
    pub(crate) fn pass_to(&self, moment: Moment) {
        let ahead = moment.saturating_sub(self.moment());
        self.set_offset(self.offset().saturating_add(ahead));
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
        let offset = u64::try_from(self.offset().as_millis()).unwrap_or(u64::MAX);
        self.base.unix_millis().saturating_add(offset)
    }
}

/// Writes a time of the log: ISO 8601 with milliseconds.
pub(crate) fn iso_millis(millis: u64) -> String {
    let second = UnixSeconds::new(i64::try_from(millis / 1_000).unwrap_or(i64::MAX));
    let whole = iso8601(second);
    format!("{}.{:03}Z", whole.trim_end_matches('Z'), millis % 1_000)
}

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
    use hookgate::clock::ManualClock;

    use super::*;

    const START: UnixSeconds = UnixSeconds::new(1_795_253_400);

    fn clock(signatures: SigningTime) -> (ManualClock, EmulatorClock) {
        let base = ManualClock::at(START);
        (base.clone(), EmulatorClock::new(Arc::new(base), signatures))
    }

    #[test]
    fn passed_time_is_on_top_of_the_base_and_not_in_real_signatures() {
        let (base, clock) = clock(SigningTime::Real);
        base.advance(Duration::from_millis(1_500));
        clock.pass_to(clock.moment() + Duration::from_secs(60));
        assert_eq!(clock.now().as_i64(), START.as_i64() + 61);
        assert_eq!(clock.signing_time().as_i64(), START.as_i64() + 1);
        assert_eq!(clock.moment(), Duration::from_millis(61_500));
        assert_eq!(clock.iso(), "2026-11-21T09:31:01Z");
        clock.pass_to(Duration::ZERO);
        assert_eq!(clock.moment(), Duration::from_millis(61_500));

        let (_, shared) = self::clock(SigningTime::Emulated);
        shared.pass_to(Duration::from_secs(60));
        assert_eq!(shared.signing_time(), shared.now());
    }

    #[test]
    fn a_first_signature_ages_by_the_emulated_time() {
        let (_, clock) = clock(SigningTime::Real);
        let (first, offset) = (clock.signing_time(), clock.offset());
        assert_eq!(clock.aged(first, offset), first);
        clock.pass_to(Duration::from_secs(360));
        assert_eq!(
            clock.signing_time().since(clock.aged(first, offset)),
            Some(Duration::from_secs(360))
        );
        let (_, shared) = self::clock(SigningTime::Emulated);
        shared.pass_to(Duration::from_secs(360));
        assert_eq!(shared.aged(first, offset), first);
    }

    #[test]
    fn moments_have_wall_times() {
        let (_, clock) = clock(SigningTime::Real);
        clock.pass_to(Duration::from_secs(10));
        let wall = u64::try_from(START.as_i64()).unwrap() * 1_000;
        assert_eq!(clock.millis_at(Duration::from_millis(3_250)), wall + 3_250);
        assert_eq!(clock.millis_at(Duration::from_secs(70)), wall + 70_000);
        assert_eq!(iso_millis(wall + 7), "2026-11-21T09:30:00.007Z");
        clock.set_offset(Duration::MAX);
        clock.pass_to(Duration::MAX);
        assert!(clock.unix_millis() > wall);
    }

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
