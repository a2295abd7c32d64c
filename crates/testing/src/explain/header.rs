//! The signatures and timestamps in the headers, in any form.

use bytes::Bytes;
use hookgate::{
    clock::UnixSeconds,
    event::Date,
    verify::{EVENT_ID, SIGNATURE, Signature, TIMESTAMP, Timestamp, WEBHOOK_ID},
};
use hookgate_record::LoggedDelivery;

use super::cause::{Cause, CauseKind as Kind};
use super::outer::base64_decoded;

/// The highest number of signatures that are taken out of the headers.
const MAX_CLAIMS: usize = 16;
/// The highest number of timestamps: each of them is tried in every way.
const MAX_TIMESTAMPS: usize = 8;
/// The greatest distance from the time of receipt, in seconds, at which a missing timestamp is searched.
const GUESSES: i64 = 60;

/// A signature that the headers hold.
pub(super) struct Claim {
    pub(super) causes: Vec<Cause>,
    pub(super) signature: [u8; 32],
}

/// A text that may have been signed as the timestamp.
pub(super) struct Stamp {
    pub(super) causes: Vec<Cause>,
    pub(super) distance: usize,
    pub(super) text: Vec<u8>,
    /// The time that the text means.
    pub(super) at: Option<UnixSeconds>,
    /// Whether no header contains it.
    pub(super) guessed: bool,
}

/// Returns every signature in the headers, the correctly written one first.
pub(super) fn claims(delivery: &LoggedDelivery) -> Vec<Claim> {
    let mut claims = Vec::new();
    let own = values(delivery, SIGNATURE);
    for &value in &own {
        let repeated = (own.len() > 1).then(|| Cause::with(Kind::HeaderRepeated, SIGNATURE));
        add(&mut claims, repeated.as_slice(), value);
    }
    for (name, value) in &delivery.headers {
        if own.is_empty() && name.contains("signature") {
            let renamed = Cause::with(Kind::HeaderRenamed, name.clone());
            add(&mut claims, &[renamed], value);
        }
    }
    claims.truncate(MAX_CLAIMS);
    claims
}

pub(super) fn values<'d>(delivery: &'d LoggedDelivery, name: &str) -> Vec<&'d Bytes> {
    let named = delivery
        .headers
        .iter()
        .filter(|(other, _)| other.eq_ignore_ascii_case(name));
    named.map(|(_, value)| value).collect()
}

fn add(claims: &mut Vec<Claim>, causes: &[Cause], value: &[u8]) {
    let mut push = |more: Vec<Cause>, signature| {
        claims.push(Claim {
            causes: [causes, &more].concat(),
            signature,
        });
    };
    if let Some(signature) = as_the_service_writes(value) {
        return push(Vec::new(), signature);
    }
    let text = String::from_utf8_lossy(value);
    if let Some((causes, signature)) = decoded(&text) {
        return push(causes, signature);
    }
    // A list, in which one signature may be right. A part that is not a signature is skipped.
    for part in text.split(|char: char| char.is_whitespace() || ",;".contains(char)) {
        let joined = Cause::new(Kind::HeaderJoined);
        if let Some(signature) = as_the_service_writes(part.as_bytes()) {
            push(vec![joined], signature);
        } else if let Some((causes, signature)) = decoded(part) {
            push([&[joined], causes.as_slice()].concat(), signature);
        }
    }
}

/// Reads a signature in the one form that a receiver accepts.
fn as_the_service_writes(value: &[u8]) -> Option<[u8; 32]> {
    Signature::parse(value).ok()?;
    from_hex(std::str::from_utf8(value.strip_prefix(b"sha256=")?).ok()?)
}

/// Reads one signature, in any form.
fn decoded(text: &str) -> Option<(Vec<Cause>, [u8; 32])> {
    let around = |char: char| char.is_whitespace() || char.is_control() || "\"'`<>".contains(char);
    let inner = text.trim_matches(around);
    let mut causes = Vec::new();
    if inner.len() < text.len() {
        causes.push(Cause::new(Kind::HeaderWhiteSpace));
    }
    let digits = match inner.strip_prefix("sha256=") {
        Some(digits) => digits,
        None => match other_prefix(inner) {
            Some((prefix, digits)) => {
                causes.push(Cause::with(Kind::HeaderOtherPrefix, format!("`{prefix}`")));
                digits
            }
            None => {
                causes.push(Cause::new(Kind::HeaderWithoutPrefix));
                inner
            }
        },
    };
    let visible = digits.trim_matches(around);
    if visible.len() < digits.len()
        && !causes
            .iter()
            .any(|cause| cause.kind() == Kind::HeaderWhiteSpace)
    {
        causes.push(Cause::new(Kind::HeaderWhiteSpace));
    }
    let bytes = match from_hex(visible) {
        Some(bytes) => {
            if visible.bytes().any(|byte| byte.is_ascii_uppercase()) {
                causes.push(Cause::new(Kind::HeaderUpperCase));
            }
            bytes
        }
        None => {
            causes.push(Cause::new(Kind::HeaderBase64));
            let bytes = base64_decoded(visible.as_bytes())?;
            let text = std::str::from_utf8(&bytes).ok().and_then(from_hex);
            // The base64 form of the digest, or of its hex digits.
            text.or_else(|| bytes.try_into().ok())?
        }
    };
    Some((causes, bytes))
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

/// A short prefix and a sign after it: `v1=`, `v1,`, `SHA256=`, `hmac-sha256:`, `HMAC-SHA256 `.
fn other_prefix(text: &str) -> Option<(&str, &str)> {
    let word =
        text.find(|char: char| !char.is_ascii_alphanumeric() && char != '-' && char != '_')?;
    let (name, rest) = text.split_at_checked(word)?;
    let digits = rest.strip_prefix(['=', ',', ':', ' '])?;
    let is_prefix = (1..=16).contains(&name.len()) && digits.len() >= 40;
    is_prefix.then(|| (text.get(..=word).unwrap_or_default(), digits))
}

/// Returns every text that may be the timestamp. Where no header has one, the seconds around the receipt, the nearest first.
pub(super) fn stamps(delivery: &LoggedDelivery) -> Vec<Stamp> {
    let headers = values(delivery, TIMESTAMP);
    let mut stamps = Vec::new();
    for value in headers.iter().take(MAX_TIMESTAMPS) {
        let repeated = (headers.len() > 1).then(|| Cause::with(Kind::HeaderRepeated, TIMESTAMP));
        let at = meant(value);
        let mut push = |malformed: bool, text: Vec<u8>| {
            let malformed = malformed.then(|| Cause::new(Kind::TimestampMalformed));
            stamps.push(Stamp {
                causes: repeated.iter().cloned().chain(malformed).collect(),
                distance: 0,
                text,
                at,
                guessed: false,
            });
        };
        let malformed = Timestamp::parse(value).is_err();
        push(malformed, value.to_vec());
        if malformed {
            cleaned(value).into_iter().for_each(|text| push(true, text));
        }
    }
    if headers.is_empty() {
        let received = delivery.received_at.as_i64();
        let nearest =
            (0..=GUESSES).flat_map(|by| [received.saturating_sub(by), received.saturating_add(by)]);
        let guess = |seconds: i64| Stamp {
            causes: vec![Cause::with(
                Kind::TimestampMissing,
                format!("{seconds} was signed, as trying has shown"),
            )],
            distance: 1,
            text: seconds.to_string().into_bytes(),
            at: Some(UnixSeconds::new(seconds)),
            guessed: true,
        };
        stamps.extend(nearest.skip(1).map(guess));
    }
    stamps
}

/// Returns a timestamp without the characters that may surround it.
fn inner(value: &[u8]) -> String {
    let around = |char: char| char.is_whitespace() || char.is_control() || "\"'`+".contains(char);
    let text = String::from_utf8_lossy(value);
    text.trim_matches(around).to_owned()
}

/// Returns the time that a timestamp means, in any form.
fn meant(value: &[u8]) -> Option<UnixSeconds> {
    let inner = inner(value);
    let integer = || inner.parse().ok().map(UnixSeconds::new);
    let date = || Date::parse(&inner).ok()?.unix_seconds().ok();
    let number = || {
        inner
            .replace(',', ".")
            .parse()
            .ok()
            .and_then(whole)
            .map(UnixSeconds::new)
    };
    integer().or_else(date).or_else(number)
}

/// Returns the texts that may have been signed in place of a timestamp that is not written in digits alone.
fn cleaned(value: &[u8]) -> Vec<Vec<u8>> {
    let inner = inner(value);
    let mut found: Vec<_> = meant(value)
        .map(|time| time.to_string())
        .into_iter()
        .collect();
    found.extend(inner.split(['.', ',']).next().map(str::to_owned));
    found.push(inner);
    found.retain(|text| !text.is_empty() && text.as_bytes() != value);
    found.sort();
    found.dedup();
    found.into_iter().map(String::into_bytes).collect()
}

#[allow(clippy::cast_possible_truncation)] // the cast saturates, and the value is only tried
fn whole(seconds: f64) -> Option<i64> {
    seconds.is_finite().then_some(seconds as i64)
}

/// Returns the ids that a sender may include in the signed string.
#[expect(clippy::disallowed_methods, reason = "a text is read of it")]
pub(super) fn ids(delivery: &LoggedDelivery) -> Vec<Vec<u8>> {
    let mut ids: Vec<_> = [EVENT_ID, WEBHOOK_ID, "webhook-id", "svix-id"]
        .iter()
        .flat_map(|name| values(delivery, name))
        .map(|value| value.to_vec())
        .collect();
    #[derive(serde::Deserialize)]
    struct Id {
        id: String,
    }
    let body = delivery.body.as_deref().unwrap_or_default();
    ids.extend(
        serde_json::from_slice(body)
            .map(|Id { id }| id.into_bytes())
            .ok(),
    );
    ids.dedup();
    ids.truncate(8);
    ids
}
