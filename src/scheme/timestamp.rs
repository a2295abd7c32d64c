//! When a delivery was signed, how old, or how far ahead, it may be, and what is signed in front of
//! its body.

use std::fmt;
use std::time::Duration;

use super::{Malformed, Part, Scheme, StaleTimes, VerifyError, VerifyErrorKind};
use crate::clock::UnixSeconds;

/// The greatest number of digits of a timestamp: 16, so that it fits `i64` and still covers 300
/// million years.
const MAX_DIGITS: usize = 16;

/// The value of `X-Service-Timestamp`: Unix time in whole seconds, written `[1-9][0-9]{0,15}`.
///
/// The header's own bytes are kept and signed; the number, which is only for the window, is
/// computed from them. A value that could be written in two ways, such as `+1` or `01`, could be
/// signed in one form and sent in the other. A value with a dot in it would let bytes move between
/// timestamp and body under the same signature. Both are refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Timestamp {
    /// The digits, then zeros.
    digits: [u8; MAX_DIGITS],
    length: u8,
}

impl Timestamp {
    /// Parses the header's bytes.
    ///
    /// # Errors
    /// [`Malformed`] for all but one to sixteen ASCII digits without a leading zero.
    ///
    /// ```
    /// use hookgate::verify::Timestamp;
    ///
    /// assert_eq!(Timestamp::parse(b"1763690000").unwrap().seconds().as_i64(), 1_763_690_000);
    /// for bad in ["", "0", "01", "+1", "-1", " 1", "1.0", "1e9", "99999999999999999"] {
    ///     assert!(Timestamp::parse(bad.as_bytes()).is_err(), "{bad}");
    /// }
    /// ```
    #[inline]
    pub fn parse(header: &[u8]) -> Result<Self, Malformed> {
        if header.is_empty() || header.len() > MAX_DIGITS || header[0] == b'0' {
            return Err(Malformed);
        }
        if !header.iter().all(u8::is_ascii_digit) {
            return Err(Malformed);
        }
        let mut digits = [0; MAX_DIGITS];
        digits[..header.len()].copy_from_slice(header);
        Ok(Self {
            digits,
            #[allow(clippy::cast_possible_truncation)] // at most MAX_DIGITS, checked above
            length: header.len() as u8,
        })
    }

    /// Returns the timestamp that a sender would write at `time`, for signing.
    ///
    /// # Errors
    /// [`Malformed`] for the epoch and before, and beyond sixteen digits: such a time has no valid
    /// header.
    pub fn at(time: UnixSeconds) -> Result<Self, Malformed> {
        Self::parse(time.to_string().as_bytes())
    }

    /// Returns the point in time, as a number.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the time that the sender has signed"
    )]
    #[inline]
    pub fn seconds(&self) -> UnixSeconds {
        let values = self.as_bytes().iter().map(|digit| i64::from(digit & 0xf));
        UnixSeconds::new(values.fold(0, |number, value| number * 10 + value))
    }

    /// Returns the bytes that were received and signed.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.digits[..usize::from(self.length)]
    }

    /// Returns the bytes as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // The bytes are always digits, so the fallback is never used.
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({self})")
    }
}

/// What is signed in front of the body.
#[derive(Clone, Debug)]
pub(crate) struct SignedHead {
    pub(crate) parts: &'static [Part],
    pub(crate) timestamp: Option<Timestamp>,
    /// The id of a header that is signed.
    pub(crate) id: Option<Box<str>>,
}

impl SignedHead {
    /// Returns what a sender signs in front of a body.
    pub(crate) fn of(scheme: &Scheme, timestamp: Timestamp, id: &str) -> Self {
        Self {
            parts: scheme.signed,
            timestamp: scheme.timestamp.map(|_| timestamp),
            id: scheme.signed_id_header().map(|_| id.into()),
        }
    }

    /// Calls `take` with each piece, in order.
    #[inline]
    pub(crate) fn pieces(&self, mut take: impl FnMut(&[u8])) {
        for part in self.parts {
            match (part, &self.timestamp, &self.id) {
                (Part::Timestamp, Some(timestamp), _) => take(timestamp.as_bytes()),
                (Part::Id, _, Some(id)) => take(id.as_bytes()),
                (Part::Text(text), ..) => take(text.as_bytes()),
                _ => {}
            }
        }
    }

    /// Returns what was signed in front of a stored body.
    ///
    /// # Errors
    /// `HeaderMalformed`: the stored timestamp or id has a form that no delivery has.
    pub(crate) fn of_stored(
        scheme: &Scheme,
        timestamp: &str,
        id: &str,
    ) -> Result<Self, VerifyError> {
        let malformed =
            |name| move |Malformed| VerifyError::new(VerifyErrorKind::HeaderMalformed(name));
        let timestamp = scheme
            .has_timestamp()
            .then(|| Timestamp::parse(timestamp.as_bytes()))
            .transpose()
            .map_err(malformed(scheme.timestamp_header()))?;
        // As on arrival: a longer id with a shorter body could be signed by the same bytes.
        let id = scheme
            .signed_id_header()
            .map(|name| signed_id(scheme, id.as_bytes()).map_err(malformed(name)))
            .transpose()?;
        Ok(Self {
            parts: scheme.signed,
            timestamp,
            id: id.map(Into::into),
        })
    }
}

/// Returns an id of a header: 1 to 256 visible characters of ASCII, without the first character of
/// the text that follows it in what is signed. Otherwise bytes could move between the id and what
/// follows, under the same signature.
pub(crate) fn signed_id<'h>(scheme: &Scheme, header: &'h [u8]) -> Result<&'h str, Malformed> {
    let text = std::str::from_utf8(header).map_err(|_| Malformed)?;
    let is_behind = |pair: &&[Part]| pair[0] == Part::Id;
    let ends = match scheme.parts().windows(2).find(is_behind) {
        Some([_, Part::Text(end)]) => end.chars().next().is_none_or(|first| text.contains(first)),
        _ => true,
    };
    let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
    let is_usable = (1..=256).contains(&text.len()) && is_visible && !ends;
    is_usable.then_some(text).ok_or(Malformed)
}

/// The ages that are accepted. There are two limits, since a clock that is ahead and a delivery
/// that was delayed are two faults.
///
/// The service asks receivers to refuse an age that **exceeds** 300 s (service specification,
/// *Events*, *Signature*, rule 3): 300 s is accepted, 301 s is not. It says nothing about
/// timestamps ahead of the receiver's clock; the default refuses beyond 300 s of those too, since
/// in each of these seconds a copied delivery can be replayed.
///
/// ```
/// use std::time::Duration;
/// use hookgate::verify::Window;
///
/// let window = Window::default().with_ahead(Duration::from_secs(30));
/// assert_eq!(window.past(), Duration::from_secs(300));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    past: Duration,
    ahead: Duration,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            past: Duration::from_secs(300),
            ahead: Duration::from_secs(300),
        }
    }
}

impl Window {
    /// Accepts ages up to `past`, in whole seconds.
    ///
    /// # Security
    /// A copied delivery can be replayed for as long as it is accepted and not remembered.
    /// Retention must cover a longer time than the window:
    /// [`ReceiverBuilder::build`](crate::ReceiverBuilder::build) refuses one that does not.
    #[must_use]
    pub fn with_past(mut self, past: Duration) -> Self {
        self.past = past;
        self
    }

    /// Accepts timestamps up to `ahead` of the receiver's clock, in whole seconds.
    ///
    /// # Security
    /// A delivery that was signed ahead of time stays fresh for that much longer, and can be
    /// replayed for as long.
    #[must_use]
    pub fn with_ahead(mut self, ahead: Duration) -> Self {
        self.ahead = ahead;
        self
    }

    /// Returns the greatest age that is accepted.
    #[must_use]
    pub fn past(&self) -> Duration {
        self.past
    }

    /// Returns how far ahead a timestamp may be.
    #[must_use]
    pub fn ahead(&self) -> Duration {
        self.ahead
    }

    /// Checks the age of a timestamp.
    ///
    /// ```
    /// use hookgate::{clock::UnixSeconds, verify::Window};
    ///
    /// let signed = UnixSeconds::new(1_763_690_000);
    /// assert!(Window::default().check(signed, UnixSeconds::new(1_763_690_300)).is_ok());
    /// assert!(Window::default().check(signed, UnixSeconds::new(1_763_690_301)).is_err());
    /// ```
    ///
    /// # Errors
    /// `Stale` or `Ahead`, with both times and the limit.
    #[inline]
    pub fn check(&self, timestamp: UnixSeconds, now: UnixSeconds) -> Result<(), VerifyError> {
        let times = |limit| StaleTimes {
            timestamp,
            now,
            limit,
        };
        let kind = if now.since(timestamp).is_some_and(|age| age > self.past) {
            VerifyErrorKind::Stale(times(self.past))
        } else if timestamp.since(now).is_some_and(|ahead| ahead > self.ahead) {
            VerifyErrorKind::Ahead(times(self.ahead))
        } else {
            return Ok(());
        };
        Err(VerifyError::new(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_bytes_and_the_number() {
        for text in ["1", "10", "1763690000", "9999999999999999"] {
            let timestamp = Timestamp::parse(text.as_bytes()).unwrap();
            assert_eq!(timestamp.as_str(), text);
            assert_eq!(timestamp.seconds().as_i64(), text.parse::<i64>().unwrap());
        }
    }

    #[test]
    fn a_time_without_a_valid_header_cannot_be_signed() {
        for seconds in [i64::MIN, -1, 0, 10_000_000_000_000_000] {
            assert!(Timestamp::at(UnixSeconds::new(seconds)).is_err());
        }
    }

    #[test]
    fn both_limits_are_inclusive() {
        let now = 1_763_690_000;
        for (age, accepted) in [
            (0, true),
            (300, true),
            (301, false),
            (-300, true),
            (-301, false),
            (i64::MAX / 2, false),
            (i64::MIN / 2, false),
        ] {
            let result =
                Window::default().check(UnixSeconds::new(now - age), UnixSeconds::new(now));
            assert_eq!(result.is_ok(), accepted, "age {age}");
        }
    }

    #[test]
    fn no_clock_reading_overflows() {
        for now in [i64::MIN, -1, 0, i64::MAX] {
            for timestamp in [i64::MIN, 0, 1, i64::MAX] {
                let _ = Window::default().check(UnixSeconds::new(timestamp), UnixSeconds::new(now));
            }
        }
    }
}
