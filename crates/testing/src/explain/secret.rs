//! The keys that may have signed a delivery.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use zeroize::Zeroizing;

use super::body::utf16_decoded;
use super::cause::{Cause, CauseKind as Kind};
use super::trial_key::TrialKey;

const PREFIX: &[u8] = b"whsec_";
const QUOTES: [char; 9] = ['"', '\'', '`', '“', '”', '‘', '’', '«', '»'];
/// The length of the longest text that is examined. A longer text is a wrong file, not a secret.
const LONGEST: usize = 4_096;

/// Bytes of a key, wiped when they are dropped.
type Text = Zeroizing<Vec<u8>>;

/// A secret as it is configured, mistakes included.
pub(super) struct KnownSecret {
    pub(super) name: String,
    pub(super) text: Text,
    /// Whether the receiver does not hold this secret.
    pub(super) other: bool,
}

/// A key to try.
pub(super) struct KeyVariant<'h> {
    pub(super) causes: Vec<Cause>,
    /// 0 for a secret that the receiver holds, 1 for any other.
    pub(super) distance: usize,
    /// The name of the secret from which it is made.
    pub(super) name: String,
    pub(super) key: TrialKey<'h>,
}

/// Returns every key to try, those without a mistake first. A text of which `key_of` makes no key
/// is left out.
pub(super) fn variants<'h>(
    secrets: &[KnownSecret],
    key_of: impl Fn(&[u8]) -> Option<TrialKey<'h>>,
) -> Vec<KeyVariant<'h>> {
    let mut texts: Vec<(Vec<Cause>, &str, Text)> = Vec::new();
    // A text that is known already is skipped, even if it belongs to another secret.
    let mut add = |causes: Vec<Cause>, name, text: Text| {
        if texts.iter().all(|(_, _, known)| *known != text) {
            texts.push((causes, name, text));
        }
    };
    for secret in secrets {
        let other = || Cause::with(Kind::SecretOfAnother, format!("that of {}", secret.name));
        let causes: Vec<_> = secret.other.then(other).into_iter().collect();
        add(causes.clone(), &secret.name, secret.text.clone());
        if secret.other {
            // A file has a line break at its end, which is no mistake of this receiver.
            let line = Zeroizing::new(secret.text.trim_ascii_end().to_vec());
            add(causes, &secret.name, line);
        }
    }
    for secret in secrets.iter().filter(|secret| !secret.other) {
        for (causes, repaired) in repairs(&secret.text) {
            add(causes, &secret.name, repaired);
        }
    }
    let variants = texts.into_iter().filter_map(|(causes, name, text)| {
        Some(KeyVariant {
            distance: usize::from(!causes.is_empty()),
            causes,
            name: name.to_owned(),
            key: key_of(&text)?,
        })
    });
    variants.collect()
}

/// Returns the texts that are one mistake away, the likeliest first. Quotes and white space often
/// come together, and count as one.
fn repairs(text: &Text) -> Vec<(Vec<Cause>, Text)> {
    let mut found = Vec::new();
    if text.len() > LONGEST {
        return found;
    }
    let mut say = |causes: Vec<Cause>, bytes: Vec<u8>| {
        let bytes = Zeroizing::new(bytes);
        if bytes != *text && !bytes.is_empty() {
            found.push((causes, bytes));
        }
    };
    if let Ok(text) = std::str::from_utf8(text) {
        around(text, &mut say);
        padded(text, &mut say);
    }
    let mut say = |kind, bytes| say(vec![Cause::new(kind)], bytes);
    let random = text.strip_prefix(PREFIX);
    // Either side may have the mistake.
    let (lost, added) = match random {
        Some(random) if random.starts_with(PREFIX) => {
            (Kind::SecretPrefixRepeated, Kind::SecretPrefixRepeated)
        }
        Some(_) => (Kind::SecretPrefixMissing, Kind::SecretPrefixRepeated),
        None => (Kind::SecretPrefixMissing, Kind::SecretPrefixMissing),
    };
    say(lost, random.unwrap_or_default().to_vec());
    say(added, [PREFIX, text].concat());
    for encoded in [random, Some(text)].into_iter().flatten() {
        say(
            Kind::SecretBase64Decoded,
            base64_decoded(encoded).unwrap_or_default(),
        );
        say(
            Kind::SecretHexDecoded,
            hex::decode(encoded).unwrap_or_default(),
        );
    }
    say(Kind::SecretLineBreak, [text, b"\n".as_slice()].concat());
    say(Kind::SecretLineBreak, [text, b"\r\n".as_slice()].concat());
    found
}

/// White space, quotes and a byte order mark around the configured text, and invisible characters
/// in it.
fn around(text: &str, say: &mut impl FnMut(Vec<Cause>, Vec<u8>)) {
    let bare = text.strip_prefix('\u{feff}').unwrap_or(text);
    let trimmed = bare.trim_matches(|char| is_invisible(char) || QUOTES.contains(&char));
    // A line break that is written as `\n` too.
    let trimmed = trimmed.trim_end_matches("\\n").trim_end_matches("\\r");
    let visible: String = trimmed
        .chars()
        .filter(|char| !is_invisible(*char))
        .collect();
    let has_quotes = bare.contains(QUOTES);
    let unquoted = bare.trim_matches(QUOTES);
    let mut causes = Vec::new();
    if bare.len() < text.len() {
        let is_more = bare.contains(is_invisible);
        let detail = "and with white space or a line break";
        causes.push(match is_more {
            true => Cause::with(Kind::SecretBom, detail),
            false => Cause::new(Kind::SecretBom),
        });
    } else if visible.len() < unquoted.len() {
        causes.push(Cause::new(Kind::SecretWhiteSpace));
    }
    if has_quotes {
        causes.push(Cause::new(Kind::SecretQuoted));
    }
    say(causes, visible.into_bytes());
}

/// Base64 whose padding was lost: a reader of settings that splits lines at each `=` drops it.
fn padded(text: &str, say: &mut impl FnMut(Vec<Cause>, Vec<u8>)) {
    let random = text.strip_prefix("whsec_").unwrap_or(text);
    let is_base64 = |char: char| char.is_ascii_alphanumeric() || "+/-_".contains(char);
    if random.trim_end_matches('=').chars().all(is_base64) {
        let cause = || vec![Cause::new(Kind::SecretPaddingLost)];
        say(cause(), format!("{text}=").into_bytes());
        say(cause(), format!("{text}==").into_bytes());
    }
}

/// Decodes either alphabet of base64, with its padding or without.
fn base64_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    [alphabet::STANDARD, alphabet::URL_SAFE]
        .iter()
        .find_map(|alphabet| GeneralPurpose::new(alphabet, config).decode(text).ok())
}

/// Whether a text looks like the bytes of a decoded secret: no UTF-8, U+FFFD where something read
/// it as UTF-8, or control characters.
pub(super) fn looks_decoded(text: &[u8]) -> bool {
    if text.len() > LONGEST || utf16_decoded(text).is_some() {
        return false;
    }
    let Ok(text) = std::str::from_utf8(text) else {
        return true;
    };
    let is_of_bytes =
        |char: char| char == '\u{fffd}' || (char.is_control() && !char.is_ascii_whitespace());
    text.trim_matches('\0').contains(is_of_bytes)
}

fn is_invisible(char: char) -> bool {
    char.is_whitespace()
        || char.is_control()
        || matches!(char, '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2060}')
}
