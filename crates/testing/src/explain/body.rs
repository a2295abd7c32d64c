//! The bodies that may have been signed: each is one mistake away from the received one.

use std::ops::ControlFlow;

use super::cause::{Cause, CauseKind as Kind};
use super::json::{Layout, Node, Order, Style};
use super::writer::Writer;

/// Called with the mistake and the repaired bytes; ends the search with `Break`.
pub(super) type Visit<'v> = dyn FnMut(Cause, &[u8]) -> ControlFlow<()> + 'v;

const BOM: &[u8] = b"\xef\xbb\xbf";
const LAYOUTS: [Layout; 5] = [
    Layout::Compact,
    Layout::Spaced,
    Layout::Indented("  "),
    Layout::Indented("    "),
    Layout::Indented("\t"),
];

/// Visits every body that is one repair away, the likeliest first. The same bytes may come more
/// than once.
pub(super) fn each(body: &[u8], visit: &mut Visit<'_>) -> ControlFlow<()> {
    ends(body, visit)?;
    written_again(body, visit)?;
    charsets(body, visit)?;
    form(body, visit)
}

fn ends(body: &[u8], visit: &mut Visit<'_>) -> ControlFlow<()> {
    if let Some(line) = body.strip_suffix(b"\n") {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        visit(Cause::new(Kind::BodyLineBreakAdded), line)?;
    }
    for (name, line_break) in [("LF", "\n"), ("CRLF", "\r\n")] {
        let signed = [body, line_break.as_bytes()].concat();
        visit(Cause::with(Kind::BodyLineBreakLost, name), &signed)?;
    }
    match body.strip_prefix(BOM) {
        Some(text) => visit(Cause::new(Kind::BodyBomAdded), text),
        None => visit(Cause::new(Kind::BodyBomLost), &[BOM, body].concat()),
    }
}

/// White space alone first, so that no rewriting is blamed for it.
fn written_again(body: &[u8], visit: &mut Visit<'_>) -> ControlFlow<()> {
    let Some(document) = Node::parse(body) else {
        return ControlFlow::Continue(());
    };
    let mut say = |style: Style| match document.write(&style, body.len()) {
        Some(signed) => visit(cause(&style), &signed),
        None => ControlFlow::Continue(()),
    };
    for layout in LAYOUTS {
        say(Style {
            layout,
            ..Style::COMPACT
        })?;
    }
    let numbers = [
        None,
        Some(Writer::JavaScript),
        Some(Writer::Python),
        Some(Writer::Java),
    ];
    for order in [Order::AsIs, Order::Service, Order::Sorted] {
        for strings in Writer::ALL.map(Some).into_iter().chain([None]) {
            for layout in LAYOUTS {
                for numbers in numbers {
                    say(Style {
                        layout,
                        order,
                        strings,
                        numbers,
                    })?;
                }
            }
        }
    }
    ControlFlow::Continue(())
}

fn cause(style: &Style) -> Cause {
    let layout = match style.layout {
        Layout::Compact => "without white space".to_owned(),
        Layout::Spaced => "with a space behind each comma and colon".to_owned(),
        Layout::Indented("\t") => "indented by tabs".to_owned(),
        Layout::Indented(by) => format!("indented by {} spaces", by.len()),
    };
    let order = match style.order {
        Order::AsIs => "",
        Order::Service => ", the keys in the service's order",
        Order::Sorted => ", the keys sorted",
    };
    let writer = style.strings.or(style.numbers);
    let writer = writer.map_or(String::new(), |writer| {
        let part = if style.strings.is_none() {
            "its numbers "
        } else {
            ""
        };
        format!(", {part}as {} writes it", writer.name())
    });
    let kind = match (style.order, style.strings, style.numbers) {
        (Order::AsIs, None, None) => Kind::BodyIndented,
        _ => Kind::BodyWrittenAgain,
    };
    Cause::with(kind, format!("the signed body is {layout}{order}{writer}"))
}

fn charsets(body: &[u8], visit: &mut Visit<'_>) -> ControlFlow<()> {
    let mut say = |detail, bytes: &[u8]| visit(Cause::with(Kind::BodyCharset, detail), bytes);
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

/// Decodes bytes that look like UTF-16: with a byte order mark at the start, or a NUL in every
/// other byte there.
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

/// A form sends the body as its value, or as a name without a value.
fn form(body: &[u8], visit: &mut Visit<'_>) -> ControlFlow<()> {
    if !body.contains(&b'%') {
        return ControlFlow::Continue(());
    }
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-[]".contains(byte);
    let name = body.iter().position(|byte| *byte == b'=');
    let name = name.filter(|end| body.iter().take(*end).all(is_name));
    let value = name.and_then(|end| body.get(end + 1..)).unwrap_or(body);
    let value = value.strip_suffix(b"=").unwrap_or(value);
    for plus in [true, false] {
        let signed = percent_decoded(value, plus);
        visit(Cause::new(Kind::BodyFormEncoded), &signed)?;
    }
    ControlFlow::Continue(())
}

/// Decodes percent signs, and `+` as a space where a form wrote it.
fn percent_decoded(text: &[u8], plus: bool) -> Vec<u8> {
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
