//! A line of an open delivery, and its rows in the width of a terminal.

use hookgate_record::LoggedDelivery;

/// A line, and its meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageLine {
    pub(crate) kind: Kind,
    /// The number of bytes of the name at the beginning of the text.
    pub(crate) name: usize,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Data that was sent or found.
    Plain,
    /// A remark about the shown data, and not part of it.
    Remark,
    /// An error.
    Bad,
    /// The next step for the user.
    Advice,
}

pub(crate) fn line(kind: Kind, text: impl Into<String>) -> PageLine {
    PageLine {
        kind,
        name: 0,
        text: text.into(),
    }
}

pub(crate) fn field(name: &str, value: impl AsRef<str>) -> PageLine {
    let text = format!("{name}: {}", value.as_ref());
    PageLine {
        kind: Kind::Plain,
        name: name.len() + 1,
        text,
    }
}

pub(crate) fn unread(delivery: &LoggedDelivery) -> PageLine {
    let text = match delivery.cut_off_at {
        Some(bytes) => format!(
            "The body was incomplete or too long: {bytes} bytes were received, and none is kept."
        ),
        None => "Refused before the body was read.".to_owned(),
    };
    line(Kind::Remark, text)
}

/// The rows that these lines need in this width: wide characters are never cut in two, and no row of a text is empty.
pub(crate) fn wrapped(lines: &[PageLine], width: u16) -> Vec<PageLine> {
    let width = usize::from(width.max(2));
    let mut rows = Vec::with_capacity(lines.len());
    for line in lines {
        let (mut begin, mut taken, mut name) = (0, 0, line.name);
        for (at, char) in line.text.char_indices() {
            let cells = columns(char);
            if taken + cells > width {
                rows.push(PageLine {
                    kind: line.kind,
                    name,
                    text: line.text[begin..at].to_owned(),
                });
                name = name.saturating_sub(at - begin);
                (begin, taken) = (at, 0);
            }
            taken += cells;
        }
        rows.push(PageLine {
            kind: line.kind,
            name,
            text: line.text[begin..].to_owned(),
        });
    }
    rows
}

/// The number of columns that a terminal gives this character.
fn columns(char: char) -> usize {
    ratatui::text::Span::raw(char.encode_utf8(&mut [0; 4]) as &str).width()
}
