//! The delivery's timestamp, kept as the bytes that were signed.

use std::fmt;

use super::error::Malformed;
use crate::clock::UnixSeconds;

/// The greatest number of digits of a timestamp: 16, so that it fits `i64` and still covers 300 million years.
const MAX_DIGITS: usize = 16;

/// The value of `X-Service-Timestamp`: Unix time in whole seconds, written `[1-9][0-9]{0,15}`.
///
/// The header's own bytes are kept and signed; the number, which is only for the window, is computed from them. A value that
/// could be written in two ways, such as `+1` or `01`, could be signed in one form and sent in the other. A value with a dot in
/// it would let bytes move between timestamp and body under the same signature. Both are refused.
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
    /// [`Malformed`] for the epoch and before, and beyond sixteen digits: such a time has no valid header.
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
}
