//! The keys that may have signed a delivery.

use zeroize::Zeroizing;

use super::cause::{Cause, CauseKind as Kind};
use super::outer::{base64_decoded, percent_decoded, utf16_decoded};
use super::trial_key::TrialKey;

const PREFIX: &[u8] = b"whsec_";
const BOM: &[u8] = b"\xef\xbb\xbf";
const QUOTES: [&str; 9] = ["\"", "'", "`", "“", "”", "‘", "’", "«", "»"];
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
pub(super) struct KeyVariant {
    pub(super) causes: Vec<Cause>,
    /// The distance from the configured secret: counts as this number of causes.
    pub(super) distance: usize,
    /// The name of the secret from which it is made.
    pub(super) name: String,
    pub(super) key: TrialKey,
}

/// Returns every key to try, those without a mistake first.
pub(super) fn variants(secrets: &[KnownSecret]) -> Vec<KeyVariant> {
    let mut texts: Vec<(Vec<Cause>, &str, Text)> = Vec::new();
    for secret in secrets {
        let causes = match secret.other {
            true => vec![Cause::with(
                Kind::SecretOfAnother,
                format!("that of {}", secret.name),
            )],
            false => Vec::new(),
        };
        texts.push((causes, &secret.name, secret.text.clone()));
    }
    // Two mistakes together too: for example a quoted secret that is also decoded.
    let mut from = 0;
    for _ in 0..2 {
        let until = texts.len();
        for at in from..until {
            let Some((causes, name, text)) = texts.get(at) else {
                continue;
            };
            let (causes, name) = (causes.clone(), *name);
            for (cause, repaired) in repairs(text) {
                let is_new = texts.iter().all(|(_, _, known)| *known != repaired);
                // A repair that gives a known text is skipped, even if that text belongs to another secret.
                if is_new && causes.iter().all(|known| known.kind() != cause.kind()) {
                    texts.push(([&*causes, &[cause]].concat(), name, repaired));
                }
            }
        }
        from = until;
    }
    for empty in ["", "undefined", "null", "None"] {
        let text = Zeroizing::new(empty.as_bytes().to_vec());
        if texts.iter().all(|(_, _, known)| *known != text) {
            texts.push((vec![Cause::new(Kind::SecretEmpty)], "nothing", text));
        }
    }
    let mut variants: Vec<_> = texts
        .into_iter()
        .map(|(causes, name, text)| KeyVariant {
            distance: distance(&causes),
            causes,
            name: name.to_owned(),
            key: TrialKey::new(&text),
        })
        .collect();
    variants.sort_by_key(|variant| variant.distance);
    variants
}

/// Quotes and white space often come together, and count as one.
fn distance(causes: &[Cause]) -> usize {
    let has = |kind| causes.iter().any(|cause| cause.kind() == kind);
    let white = has(Kind::SecretWhiteSpace) || has(Kind::SecretBom);
    let together = has(Kind::SecretQuoted) && white;
    causes.len() - usize::from(together)
}

/// Returns the texts that are one mistake away, the likeliest first.
fn repairs(text: &Text) -> Vec<(Cause, Text)> {
    let mut found = Vec::new();
    let mut say = |kind, bytes: Vec<u8>| {
        let bytes = Zeroizing::new(bytes);
        let cause = match kind {
            Kind::SecretWhiteSpace if text.starts_with(BOM) => {
                let more = text.strip_prefix(BOM) != Some(&bytes);
                let detail = "and with white space or a line break";
                match more {
                    true => Cause::with(Kind::SecretBom, detail),
                    false => Cause::new(Kind::SecretBom),
                }
            }
            kind => Cause::new(kind),
        };
        if bytes != *text && !bytes.is_empty() {
            found.push((cause, bytes));
        }
    };
    if text.len() <= LONGEST {
        pasted(text, &mut say);
        derived(text, &mut say);
    }
    found
}

/// Mistakes in the configured text.
fn pasted(text: &[u8], say: &mut impl FnMut(Kind, Vec<u8>)) {
    if let Some(decoded) = utf16_decoded(text) {
        say(Kind::SecretCharset, decoded.trim().as_bytes().to_vec());
    }
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    say(Kind::SecretWhiteSpace, trimmed(text).as_bytes().to_vec());
    let visible: String = text.chars().filter(|char| !is_invisible(*char)).collect();
    say(Kind::SecretWhiteSpace, visible.into_bytes());
    let mut unquoted = text;
    while let Some(inner) = without_quote(unquoted) {
        unquoted = inner;
    }
    say(Kind::SecretQuoted, unquoted.as_bytes().to_vec());
    prefixed(text, say);
    padded(text, say);
    let is_between = |char: char| char.is_whitespace() || ",;|".contains(char);
    if text.contains(is_between) {
        for part in text.split(is_between) {
            say(Kind::SecretOneOfSeveral, part.as_bytes().to_vec());
        }
    }
    if text.contains('%') {
        say(
            Kind::SecretStoredEncoded,
            percent_decoded(text.as_bytes(), false),
        );
    }
}

/// Mistakes in the prefix, and in the text before it.
fn prefixed(text: &str, say: &mut impl FnMut(Kind, Vec<u8>)) {
    let Some(at) = text.rfind("whsec_") else {
        let whole = [PREFIX, text.as_bytes()].concat();
        return say(Kind::SecretPrefixMissing, whole);
    };
    let (front, from) = text.split_at(at);
    let is_part = |char: char| char.is_ascii_alphanumeric() || "_-+/=.".contains(char);
    let end = from.find(|char| !is_part(char)).unwrap_or(from.len());
    let (secret, behind) = from.split_at(end);
    // White space and quotes are separate mistakes. Where there are two secrets, one of them is meant.
    let says_more = |text: &str| {
        let quotes = QUOTES.concat();
        text.chars()
            .any(|char| !is_invisible(char) && !quotes.contains(char))
    };
    if front == "whsec_" {
        say(Kind::SecretPrefixRepeated, secret.as_bytes().to_vec());
    } else if !front.contains("whsec_") && (says_more(front) || says_more(behind)) {
        say(Kind::SecretPastedWithMore, secret.as_bytes().to_vec());
    }
}

/// Base64 whose padding was lost: a reader of settings that splits lines at each `=` drops it.
fn padded(text: &str, say: &mut impl FnMut(Kind, Vec<u8>)) {
    let random = text.strip_prefix("whsec_").unwrap_or(text);
    let is_base64 = |char: char| char.is_ascii_alphanumeric() || "+/-_".contains(char);
    if random.is_empty() || !random.trim_end_matches('=').chars().all(is_base64) {
        return;
    }
    say(Kind::SecretPaddingLost, format!("{text}=").into_bytes());
    if random.len() % 4 == 2 {
        say(Kind::SecretPaddingLost, format!("{text}==").into_bytes());
    }
}

/// Mistakes of the code that made a key from the text, of the receiver's or of the signing one.
fn derived(text: &[u8], say: &mut impl FnMut(Kind, Vec<u8>)) {
    let random = text.strip_prefix(PREFIX);
    if let Some(random) = random {
        say(Kind::SecretPrefixStripped, random.to_vec());
        say(Kind::SecretPrefixAdded, [PREFIX, text].concat());
    }
    for encoded in [random, Some(text)].into_iter().flatten() {
        for (kind, decoded) in [
            (Kind::SecretBase64Decoded, base64_decoded(encoded)),
            (Kind::SecretHexDecoded, hex::decode(encoded).ok()),
        ] {
            if let Some(decoded) = decoded {
                // If the decoded text is a secret's text, the secret was stored encoded. Otherwise the key itself was decoded.
                let is_secret = trimmed_bytes(&decoded).starts_with(PREFIX);
                let kind = if is_secret {
                    Kind::SecretStoredEncoded
                } else {
                    kind
                };
                say(kind, decoded);
            }
        }
    }
    say(Kind::SecretLineBreak, [text, b"\n"].concat());
    say(Kind::SecretLineBreak, [text, b"\r\n"].concat());
}

/// Whether a text looks like the bytes of a decoded secret: no UTF-8, U+FFFD where something read it as UTF-8, or control characters.
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

/// Removes white space and invisible characters at both ends, also a line break that is written as `\n`.
fn trimmed(text: &str) -> &str {
    let mut text = text.trim_matches(is_invisible);
    for written in ["\\n", "\\r"] {
        text = text.trim_end_matches(written);
    }
    text.trim_matches(is_invisible)
}

fn trimmed_bytes(text: &[u8]) -> &[u8] {
    text.strip_prefix(BOM).unwrap_or(text).trim_ascii()
}

/// Removes one quote on either side, or on one side only.
fn without_quote(text: &str) -> Option<&str> {
    let opened = QUOTES.iter().find_map(|quote| text.strip_prefix(quote));
    let rest = opened.unwrap_or(text);
    let closed = QUOTES.iter().find_map(|quote| rest.strip_suffix(quote));
    closed.or(opened)
}
