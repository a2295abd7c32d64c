//! The form of a record in Redis: its key, its value, and its times.

use std::time::Duration;

use hookgate::dedupe::{ClaimToken, EventKey};

/// The approximate number of bytes of the server's memory for a remembered event, with the default
/// prefix: see [sizes](crate#sizes).
pub const BYTES_PER_RECORD: usize = 200;
/// The default prefix of every key.
pub(crate) const PREFIX: &str = "hookgate:";
/// First byte of a running record's value.
pub(crate) const RUNNING: u8 = b'c';
/// First byte of a done record's value.
pub(crate) const DONE: u8 = b'd';
/// A hundred years. Redis refuses a time whose end does not fit into 64 bits of milliseconds;
/// longer times are shortened to this.
const LONGEST: u64 = 100 * 366 * 24 * 3600 * 1000;

/// Returns the prefix and 32 hex digits: a key in `redis-cli` can be compared with an [`EventKey`]
/// as it is shown everywhere else.
pub(crate) fn key(prefix: &str, event: &EventKey) -> String {
    [prefix, &event.to_hex()].concat()
}

/// Returns the state's letter, readable, and the token's 16 raw bytes: hex would take 16 bytes of
/// memory more.
pub(crate) fn value(state: u8, token: ClaimToken) -> [u8; 17] {
    let mut value = [state; 17];
    value[1..].copy_from_slice(token.as_bytes());
    value
}

/// Parses a value. Returns `None` where this crate did not write it.
pub(crate) fn parse(value: &[u8]) -> Option<(u8, ClaimToken)> {
    let (&state, token) = value.split_first()?;
    let token = ClaimToken::from_bytes(token.try_into().ok()?);
    matches!(state, RUNNING | DONE).then_some((state, token))
}

/// Returns whole milliseconds, rounded up, so that no time ends early: Redis refuses zero as an
/// error.
pub(crate) fn millis(time: Duration) -> u64 {
    let millis = time.as_nanos().div_ceil(1_000_000);
    u64::try_from(millis).unwrap_or(LONGEST).clamp(1, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_readable_and_values_short() {
        let event = EventKey::new("default", "evt_1");
        let name = key(PREFIX, &event);
        assert_eq!(name, "hookgate:a355b10ab145bb47668b3dc5cd5e8f7d");
        let token = ClaimToken::from_bytes(*b"0123456789abcdef");
        assert_eq!(&value(RUNNING, token), b"c0123456789abcdef");
        assert_eq!(&value(DONE, token), b"d0123456789abcdef");
    }

    #[test]
    fn values_are_read_back_and_foreign_ones_are_not() {
        let token = ClaimToken::from_bytes([0xff; 16]);
        for state in [RUNNING, DONE] {
            assert_eq!(parse(&value(state, token)), Some((state, token)));
        }
        let foreign: [&[u8]; 5] = [
            b"",
            b"c",
            b"c0123456789abcde",
            b"c0123456789abcdef0",
            b"x0123456789abcdef",
        ];
        for value in foreign {
            assert_eq!(parse(value), None, "{value:?}");
        }
    }

    #[test]
    fn times_are_rounded_up_and_bounded() {
        for (time, expected) in [
            (Duration::ZERO, 1),
            (Duration::from_nanos(1), 1),
            (Duration::from_micros(1000), 1),
            (Duration::from_micros(1001), 2),
            (Duration::from_secs(30), 30_000),
            (Duration::from_secs(48 * 3600), 172_800_000),
            (Duration::from_secs(u64::MAX), LONGEST),
            (Duration::MAX, LONGEST),
        ] {
            assert_eq!(millis(time), expected, "{time:?}");
        }
    }
}
