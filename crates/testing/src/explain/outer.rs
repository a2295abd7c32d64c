//! Changes of a body as bytes, without regard to its content.

use std::ops::ControlFlow;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::cause::{Cause, CauseKind as Kind};
use super::json::Document;

/// Called with the repairs and the repaired bytes; ends the search with `Break`.
pub(super) type Visit<'v> = dyn FnMut(&[Cause], &[u8]) -> ControlFlow<()> + 'v;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The usual sizes of buffers and limits.
const BUFFERS: [usize; 17] = [
    256, 512, 1_000, 1_024, 2_048, 4_096, 8_192, 10_000, 10_240, 16_384, 32_768, 65_535, 65_536,
    102_400, 131_072, 262_144, 1_048_576,
];

/// Visits every body that is one repair away, the likeliest first.
pub(super) fn each(
    body: &[u8],
    announced: Option<usize>,
    visit: &mut Visit<'_>,
) -> ControlFlow<()> {
    ends(body, visit)?;
    encodings(body, visit)?;
    charsets(body, visit)?;
    lengths(body, announced, visit)?;
    visit(&[Cause::new(Kind::BodyLeftOut)], b"")
}

fn ends(body: &[u8], visit: &mut Visit<'_>) -> ControlFlow<()> {
    let mut say = |kind, detail: &str, bytes: &[u8]| match detail {
        "" => visit(&[Cause::new(kind)], bytes),
        detail => visit(&[Cause::with(kind, detail)], bytes),
    };
    if let Some(line) = body.strip_suffix(b"\n") {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        say(Kind::BodyLineBreakAdded, "", line)?;
    }
    say(Kind::BodyLineBreakLost, "LF", &[body, b"\n"].concat())?;
    say(Kind::BodyLineBreakLost, "CRLF", &[body, b"\r\n"].concat())?;
    if body.contains(&b'\n') {
        let without = without_returns(body);
        if without.len() < body.len() {
            say(Kind::BodyLineEndings, "LF was signed", &without)?;
        }
        let with = with_returns(&without);
        say(Kind::BodyLineEndings, "CRLF was signed", &with)?;
    }
    match body.strip_prefix(BOM) {
        Some(text) => say(Kind::BodyBomAdded, "", text)?,
        None => say(Kind::BodyBomLost, "", &[BOM, body].concat())?,
    }
    let around = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    let start = body.iter().position(|byte| !around(byte));
    let end = body.iter().rposition(|byte| !around(byte));
    if let (Some(start), Some(end)) = (start, end)
        && let Some(inner) = body.get(start..=end)
        && inner.len() < body.len()
    {
        say(Kind::BodyWhiteSpace, "", inner)?;
    }
    ControlFlow::Continue(())
}

fn without_returns(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    for (at, &byte) in body.iter().enumerate() {
        if byte != b'\r' || body.get(at + 1) != Some(&b'\n') {
            out.push(byte);
        }
    }
    out
}

fn with_returns(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + body.len() / 32);
    for &byte in body {
        if byte == b'\n' {
            out.push(b'\r');
        }
        out.push(byte);
    }
    out
}

#[expect(clippy::disallowed_methods, reason = "a text is read of it")]
fn encodings(body: &[u8], visit: &mut Visit<'_>) -> ControlFlow<()> {
    if let Some(decoded) = base64_decoded(body) {
        visit(&[Cause::new(Kind::BodyBase64Encoded)], &decoded)?;
    }
    if let Ok(inner) = serde_json::from_slice::<String>(body) {
        visit(&[Cause::new(Kind::BodyJsonString)], inner.as_bytes())?;
    }
    if body.contains(&b'%') {
        form(body, visit)?;
    }
    ControlFlow::Continue(())
}

/// Decodes any form of base64, with or without line breaks. `None` for text that is not base64.
pub(super) fn base64_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    // Most bodies are not base64, and this check finds that quickly.
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=\r\n".contains(byte);
    if text.len() < 4 || !text.iter().all(is_base64) {
        return None;
    }
    let text: Vec<u8> = text
        .iter()
        .copied()
        .filter(|byte| !b"\r\n".contains(byte))
        .collect();
    [alphabet::STANDARD, alphabet::URL_SAFE]
        .iter()
        .find_map(|alphabet| GeneralPurpose::new(alphabet, config).decode(&text).ok())
}

fn form(body: &[u8], visit: &mut Visit<'_>) -> ControlFlow<()> {
    let mut say = |bytes: &[u8]| visit(&[Cause::new(Kind::BodyFormEncoded)], bytes);
    let name_end = body.iter().position(|byte| *byte == b'=');
    let value = name_end.filter(|end| {
        let name = body.get(..*end).unwrap_or_default();
        name.iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-[]".contains(byte))
    });
    let value = value.and_then(|end| body.get(end + 1..)).unwrap_or(body);
    // A form parser reads a whole text as a name without a value.
    let value = value.strip_suffix(b"=").unwrap_or(value);
    say(&percent_decoded(value, true))?;
    say(&percent_decoded(value, false))
}

/// Decodes percent signs, and `+` as a space where a form wrote it.
pub(super) fn percent_decoded(text: &[u8], plus: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|_| byte == b'%');
        let decoded = digits.and_then(|digits| hex::decode(digits).ok()?.first().copied());
        match decoded {
            Some(decoded) => {
                out.push(decoded);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                out.push(if plus && byte == b'+' { b' ' } else { byte });
                rest = behind;
            }
        }
    }
    out
}

fn charsets(body: &[u8], visit: &mut Visit<'_>) -> ControlFlow<()> {
    let mut say = |detail, bytes: &[u8]| visit(&[Cause::with(Kind::BodyCharset, detail)], bytes);
    if let Some(text) = utf16_decoded(body) {
        say("it arrived as UTF-16", text.as_bytes())?;
    }
    if body.is_ascii() {
        return ControlFlow::Continue(());
    }
    match std::str::from_utf8(body) {
        Ok(text) => {
            let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
            match bytes {
                Ok(bytes) => say("UTF-8 was taken for Latin-1", &bytes),
                Err(_) => ControlFlow::Continue(()),
            }
        }
        Err(_) => {
            let text: String = body.iter().map(|&byte| char::from(byte)).collect();
            say("it arrived as Latin-1", text.as_bytes())
        }
    }
}

/// Decodes bytes that look like UTF-16: with a byte order mark at the start, or a NUL in every other byte there.
pub(super) fn utf16_decoded(bytes: &[u8]) -> Option<String> {
    let (little, text) = match bytes {
        [0xff, 0xfe, text @ ..] => (true, text),
        [0xfe, 0xff, text @ ..] => (false, text),
        [first, 0, ..] if *first != 0 => (true, bytes),
        [0, second, ..] if *second != 0 => (false, bytes),
        _ => return None,
    };
    let (pairs, rest) = text.as_chunks::<2>();
    let units = pairs.iter().map(|&pair| match little {
        true => u16::from_le_bytes(pair),
        false => u16::from_be_bytes(pair),
    });
    let decoded: Result<String, _> = char::decode_utf16(units).collect();
    decoded.ok().filter(|_| rest.is_empty())
}

fn lengths(body: &[u8], announced: Option<usize>, visit: &mut Visit<'_>) -> ControlFlow<()> {
    if let Some(tail) = Document::missing_tail(body) {
        let cause = Cause::with(Kind::BodyTailLost, format!("{} bytes", tail.len()));
        visit(&[cause], &[body, &tail].concat())?;
    }
    let characters = std::str::from_utf8(body)
        .ok()
        .map(|text| text.chars().count());
    let cuts = [
        (announced, "what Content-Length announces was signed"),
        (characters, "as many bytes as it has characters were signed"),
    ];
    let buffers = BUFFERS.map(|size| (Some(size), "as much as a buffer holds was signed"));
    for (length, why) in cuts.into_iter().chain(buffers) {
        if let Some(length) = length.filter(|length| *length < body.len()) {
            let cause = Cause::with(Kind::BodyTooLong, format!("{why}: {length} bytes"));
            visit(&[cause], body.get(..length).unwrap_or_default())?;
        }
    }
    ControlFlow::Continue(())
}
