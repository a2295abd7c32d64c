//! The signatures and timestamps in the headers.

use bytes::Bytes;
use hookgate::{
    clock::UnixSeconds,
    verify::{DeliveryHeaders, SIGNATURE, TIMESTAMP, Timestamp},
};
use hookgate_record::LoggedDelivery;

use super::cause::{Cause, CauseKind as Kind};

/// The highest number of signatures that are taken out of the headers.
const MAX_CLAIMS: usize = 16;
/// The highest number of timestamps: each of them is tried in every way.
const MAX_TIMESTAMPS: usize = 8;
/// The greatest distance from the header's time, or from that of receipt, in seconds, at which
/// another one is searched.
const GUESSES: i64 = 60;

/// A signature that the headers hold.
pub(super) struct Claim {
    pub(super) causes: Vec<Cause>,
    pub(super) signature: [u8; 32],
}

/// A text that may have been signed as the timestamp.
pub(super) struct Stamp {
    pub(super) causes: Vec<Cause>,
    /// 0 for a header's own text, 1 for another.
    pub(super) distance: usize,
    pub(super) text: Vec<u8>,
    /// The time that the text means.
    pub(super) at: Option<UnixSeconds>,
}

/// Returns every signature in the headers.
pub(super) fn claims(delivery: &LoggedDelivery) -> Vec<Claim> {
    let values = values(delivery, SIGNATURE);
    let repeated = (values.len() > 1).then(|| Cause::with(Kind::HeaderRepeated, SIGNATURE));
    let claims = values.iter().filter_map(|value| {
        let text = std::str::from_utf8(value).ok()?;
        let digits = text.strip_prefix("sha256=");
        let mut signature = [0; 32];
        hex::decode_to_slice(digits.unwrap_or(text), &mut signature).ok()?;
        let bare = digits.is_none().then_some(Kind::HeaderWithoutPrefix);
        let is_upper = value.iter().any(u8::is_ascii_uppercase);
        let upper = is_upper.then_some(Kind::HeaderUpperCase);
        let causes = bare.into_iter().chain(upper).map(Cause::new);
        Some(Claim {
            causes: repeated.iter().cloned().chain(causes).collect(),
            signature,
        })
    });
    claims.take(MAX_CLAIMS).collect()
}

/// Returns the only signature and the only timestamp to try of another scheme, whose verifier reads
/// the headers itself. None where they can't be read.
pub(super) fn of_scheme(head: Option<&DeliveryHeaders<'_>>) -> (Vec<Claim>, Vec<Stamp>) {
    let claim = head.map(|_| Claim {
        causes: Vec::new(),
        signature: [0; 32],
    });
    let stamp = head.map(|head| Stamp {
        causes: Vec::new(),
        distance: 0,
        text: Vec::new(),
        at: head.timestamp().map(|at| at.seconds()),
    });
    (claim.into_iter().collect(), stamp.into_iter().collect())
}

fn values<'d>(delivery: &'d LoggedDelivery, name: &str) -> Vec<&'d Bytes> {
    let headers = delivery.headers.iter();
    let named = headers.filter(|(other, _)| other.eq_ignore_ascii_case(name));
    named.map(|(_, value)| value).collect()
}

/// Returns every text that may be the timestamp: those of the headers first, then those of other
/// units and times, the nearest first.
pub(super) fn stamps(delivery: &LoggedDelivery) -> Vec<Stamp> {
    let headers = values(delivery, TIMESTAMP);
    let repeated = (headers.len() > 1).then(|| Cause::with(Kind::HeaderRepeated, TIMESTAMP));
    let (mut stamps, mut others) = (Vec::new(), Vec::new());
    for value in headers.iter().take(MAX_TIMESTAMPS) {
        let text = String::from_utf8_lossy(value);
        let at = text.trim().parse().ok().map(UnixSeconds::new);
        let is_malformed = Timestamp::parse(value).is_err();
        let malformed = is_malformed.then(|| Cause::new(Kind::TimestampMalformed));
        stamps.push(Stamp {
            causes: repeated.iter().cloned().chain(malformed).collect(),
            distance: 0,
            text: value.to_vec(),
            at,
        });
        let Some(at) = at.filter(|_| !is_malformed) else {
            continue;
        };
        let seconds = at.as_i64();
        for (unit, signed) in [
            ("milliseconds were signed", seconds.saturating_mul(1_000)),
            ("seconds were signed", seconds / 1_000),
        ] {
            others.push(other(Kind::TimestampInMilliseconds, unit, signed, at));
        }
        others.extend(around(seconds).map(|signed| {
            let detail = format!("{signed} was signed, as trying has shown");
            let at = UnixSeconds::new(signed);
            other(Kind::TimestampOfAnotherTime, detail, signed, at)
        }));
    }
    if headers.is_empty() {
        let received = delivery.received_at.as_i64();
        let seconds = std::iter::once(received).chain(around(received));
        others.extend(seconds.map(|signed| {
            let detail = format!("{signed} was signed, as trying has shown");
            let at = UnixSeconds::new(signed);
            other(Kind::TimestampMissing, detail, signed, at)
        }));
    }
    stamps.extend(others);
    stamps
}

fn other(kind: Kind, detail: impl Into<String>, signed: i64, at: UnixSeconds) -> Stamp {
    Stamp {
        causes: vec![Cause::with(kind, detail)],
        distance: 1,
        text: signed.to_string().into_bytes(),
        at: Some(at),
    }
}

fn around(seconds: i64) -> impl Iterator<Item = i64> {
    let either = move |by| [seconds.saturating_sub(by), seconds.saturating_add(by)];
    (1..=GUESSES).flat_map(either)
}
