//! The strings that may have been signed, besides the body.

use hookgate::clock::UnixSeconds;

use super::cause::{Cause, CauseKind as Kind};
use super::header::Stamp;

const SEPARATORS: [(&str, &str); 9] = [
    ("", "none"),
    (":", "a colon"),
    ("\n", "a line break"),
    ("|", "a bar"),
    (",", "a comma"),
    (";", "a semicolon"),
    ("-", "a hyphen"),
    ("_", "an underscore"),
    (" ", "a space"),
];

/// The bytes before the body and after it.
pub(super) struct SignedString {
    /// The causes in the timestamp's header, and in the signed string.
    pub(super) causes: Vec<Cause>,
    /// The distance from the right form: counts as this number of causes.
    pub(super) distance: usize,
    pub(super) before: Vec<u8>,
    pub(super) after: Vec<u8>,
    /// The time that the timestamp means, which may be a guessed one.
    pub(super) at: Option<UnixSeconds>,
}

/// Returns every signed string to try, the right one first.
pub(super) fn variants(stamps: &[Stamp], ids: &[Vec<u8>]) -> Vec<SignedString> {
    let mut variants = Vec::new();
    for stamp in stamps {
        let mut say = |cause: Option<Cause>, distance: usize, before: Vec<u8>, after: &[u8]| {
            variants.push(SignedString {
                causes: stamp.causes.iter().cloned().chain(cause).collect(),
                distance: stamp.distance + distance,
                before,
                after: after.to_vec(),
                at: stamp.at,
            });
        };
        let time = stamp.text.as_slice();
        let text = String::from_utf8_lossy(time);
        say(None, 0, [time, b"."].concat(), b"");
        if stamp.guessed {
            continue;
        }
        for (unit, other) in other_units(&text) {
            let cause = Cause::with(Kind::SignedInAnotherUnit, unit);
            say(Some(cause), 1, format!("{other}.").into_bytes(), b"");
        }
        for (separator, name) in SEPARATORS {
            let cause = Cause::with(Kind::SignedWithAnotherSeparator, name);
            say(Some(cause), 1, [time, separator.as_bytes()].concat(), b"");
        }
        for id in ids {
            for separator in [".", ":"] {
                let cause = Cause::new(Kind::SignedWithAnId);
                let separator = separator.as_bytes();
                say(
                    Some(cause),
                    1,
                    [id, separator, time, separator].concat(),
                    b"",
                );
            }
        }
        for version in ["v0:", "v1:", "v1."] {
            let separator = version.get(2..).unwrap_or_default();
            let cause = Cause::with(Kind::SignedWithAVersion, format!("`{version}`"));
            say(
                Some(cause),
                1,
                [version.as_bytes(), time, separator.as_bytes()].concat(),
                b"",
            );
        }
        for separator in [".", "", ":", "\n", "|", ","] {
            let cause = Cause::new(Kind::SignedBodyFirst);
            say(
                Some(cause),
                1,
                Vec::new(),
                &[separator.as_bytes(), time].concat(),
            );
        }
    }
    // Nothing of the header is signed here, so its value does not matter.
    let header = stamps.iter().find(|stamp| !stamp.guessed);
    let mut causes = match header {
        Some(stamp) => stamp.causes.clone(),
        None => vec![Cause::new(Kind::TimestampMissing)],
    };
    causes.push(Cause::new(Kind::SignedWithoutTimestamp));
    variants.push(SignedString {
        causes,
        distance: 1,
        before: Vec::new(),
        after: Vec::new(),
        at: header.and_then(|stamp| stamp.at),
    });
    variants.sort_by_key(|variant| variant.distance);
    variants
}

fn other_units(text: &str) -> Vec<(&'static str, String)> {
    let mut units = Vec::new();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        if text.len() > 11 {
            for seconds in [&text[..10], &text[..11]] {
                units.push(("seconds were signed", seconds.to_owned()));
            }
        }
        for (zeros, unit) in [
            ("000", "milliseconds were signed"),
            ("000000", "microseconds were signed"),
            ("000000000", "nanoseconds were signed"),
            (".0", "seconds with a fraction were signed"),
        ] {
            units.push((unit, format!("{text}{zeros}")));
        }
    }
    units
}
