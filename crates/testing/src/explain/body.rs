//! The bodies that may have been signed.

use std::ops::ControlFlow;

use super::cause::{Cause, CauseKind as Kind};
use super::json::{Document, Layout, Order, Style};
use super::numbers::{self, Numbers};
use super::outer::{self, Visit};
use super::padded;
use super::strings::{Strings, Writer};

/// The received body, and the bodies that may have been signed in its place.
pub(super) struct Bodies<'b> {
    received: &'b [u8],
    /// The value of Content-Length, where there is one.
    announced: Option<usize>,
}

const LAYOUTS: [Layout; 6] = [
    Layout::Compact,
    Layout::Pretty("  "),
    Layout::Spaced,
    Layout::Pretty("    "),
    Layout::Pretty("\t"),
    Layout::AsIs,
];
const ORDERS: [Order; 4] = [Order::Service, Order::Sorted, Order::ByLength, Order::AsIs];

impl<'b> Bodies<'b> {
    /// The highest number of repairs of one body that are tried together.
    const DEEPEST: usize = 3;

    pub(super) fn new(received: &'b [u8], announced: Option<usize>) -> Self {
        Self {
            received,
            announced,
        }
    }

    /// Visits every body at this number of repairs, the likeliest first. The same bytes may come more than once. Each is
    /// combined with `others`, the number of repairs of secret and signed string.
    pub(super) fn each(
        &self,
        repairs: usize,
        others: usize,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        match repairs {
            0 => visit(&[], self.received),
            1 => {
                outer::each(self.received, self.announced, visit)?;
                styled(self.received, 1, &ANY, visit)?;
                padded(self.received, 1, others, visit)
            }
            2 => {
                styled(self.received, 2, &ANY, visit)?;
                padded(self.received, 2, others, visit)?;
                outer::each(self.received, self.announced, &mut |first, bytes| {
                    let mut both = both(first, visit);
                    styled(bytes, 1, &ANY, &mut both)?;
                    outer::each(bytes, None, &mut both)
                })?;
                styled(self.received, 1, &ANY, &mut |first, bytes| {
                    outer::each(bytes, None, &mut both(first, visit))
                })
            }
            Self::DEEPEST => {
                styled(self.received, 3, &ANY, visit)?;
                padded(self.received, 3, others, visit)?;
                outer::each(self.received, self.announced, &mut |first, bytes| {
                    styled(bytes, 2, &ANY, &mut both(first, visit))
                })
            }
            4 => padded(self.received, 4, others, visit),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Adds the first repairs to those of the second step.
fn both<'v>(
    first: &[Cause],
    visit: &'v mut Visit<'_>,
) -> impl FnMut(&[Cause], &[u8]) -> ControlFlow<()> + 'v {
    let first = first.to_vec();
    move |second, bytes| visit(&[&first, second].concat(), bytes)
}

/// Puts back the zeros at the end of fractions, with this number of changes in all: the others are those of a program that
/// writes JSON again. The likeliest ways are combined with more repairs of secret and signed string than the others.
fn padded(body: &[u8], changes: usize, others: usize, visit: &mut Visit<'_>) -> ControlFlow<()> {
    padded_from(body, padded::DETAIL, changes, others, visit)?;
    let Some(plain) = plain(body) else {
        return ControlFlow::Continue(());
    };
    if changes == 1 {
        visit(&[padded::cause(padded::PLAIN_DETAIL)], &plain)?;
    }
    padded_from(&plain, padded::PLAIN_DETAIL, changes, others, visit)
}

/// Returns the body with its fractions in their shortest form and without exponents, where that is another body: Java writes
/// 12345678.50 as 1.23456785E7, a `BigDecimal` of 100.00 becomes 1E+2, and Gson reads 3 and writes 3.0.
fn plain(body: &[u8]) -> Option<Vec<u8>> {
    let document = Document::parse(body)?;
    let style = Style {
        numbers: Numbers::Plain,
        ..Style::AS_IS
    };
    let is_written_by_a_program = document.numbers().iter().any(|(_, at)| {
        let number = body.get(at.clone()).unwrap_or_default();
        numbers::is_float_of_a_program(number)
    });
    is_written_by_a_program.then(|| document.write(&style))?
}

fn padded_from(
    body: &[u8],
    detail: &'static str,
    changes: usize,
    others: usize,
    visit: &mut Visit<'_>,
) -> ControlFlow<()> {
    let Some(document) = Document::parse(body) else {
        return ControlFlow::Continue(());
    };
    let numbers = document.numbers();
    for (rank, way) in padded::ways(body, &numbers).iter().enumerate() {
        let most = match changes {
            1 => 1 + usize::from(rank < 3),
            _ => usize::from(rank < 3),
        };
        if others > most {
            break;
        }
        let bytes = padded::write(body, &numbers, way);
        let cause = [padded::cause(detail)];
        match changes {
            0 | 1 => visit(&cause, &bytes)?,
            _ => styled(
                &bytes,
                changes - 1,
                &WRITTEN_AGAIN,
                &mut both(&cause, visit),
            )?,
        }
    }
    ControlFlow::Continue(())
}

/// The styles to try.
struct Styles {
    layouts: &'static [Layout],
    orders: &'static [Order],
    strings: &'static [Strings],
    numbers: &'static [Numbers],
}

const ANY: Styles = Styles {
    layouts: &LAYOUTS,
    orders: &ORDERS,
    strings: &Strings::ALL,
    numbers: &Numbers::ALL,
};

/// The differences that remain where a program has parsed a body and written it again, besides its numbers.
const WRITTEN_AGAIN: Styles = Styles {
    layouts: &[
        Layout::Compact,
        Layout::Pretty("  "),
        Layout::Spaced,
        Layout::AsIs,
    ],
    orders: &[Order::Service, Order::AsIs],
    strings: &[
        Strings::UnicodeUnescaped,
        Strings::SlashesUnescaped,
        Strings::HtmlUnescaped,
        // Several of these at once, such as PHP's escapes of slashes and of characters.
        Strings::By(Writer::JavaScript),
        Strings::AsIs,
    ],
    numbers: &[Numbers::AsIs],
};

/// Writes JSON again with this number of changes among layout, order, strings and numbers.
fn styled(body: &[u8], changes: usize, styles: &Styles, visit: &mut Visit<'_>) -> ControlFlow<()> {
    let Some(document) = Document::parse(body) else {
        return ControlFlow::Continue(());
    };
    let own = own_layout(&document, body);
    for &layout in styles.layouts {
        for &order in styles.orders {
            for &strings in styles.strings {
                for &numbers in styles.numbers {
                    let mut style = Style {
                        layout,
                        order,
                        strings,
                        numbers,
                    };
                    let causes = causes(&style);
                    // Members can be moved only in a known layout.
                    let movable = order == Order::AsIs || layout != Layout::AsIs || own.is_some();
                    if causes.len() != changes || !movable {
                        continue;
                    }
                    if let (Layout::AsIs, false, Some(own)) = (layout, order == Order::AsIs, own) {
                        style.layout = own;
                    }
                    if let Some(written) = document.write(&style) {
                        visit(&causes, &written)?;
                    }
                }
            }
        }
    }
    ControlFlow::Continue(())
}

/// The layout that the body has now.
fn own_layout(document: &Document<'_>, body: &[u8]) -> Option<Layout> {
    LAYOUTS.into_iter().find(|&layout| {
        let style = Style {
            layout,
            ..Style::AS_IS
        };
        layout != Layout::AsIs && document.write(&style).as_deref() == Some(body.trim_ascii())
    })
}

fn causes(style: &Style) -> Vec<Cause> {
    let layout = match style.layout {
        Layout::AsIs => None,
        Layout::Compact => Some(Cause::new(Kind::BodyCompact)),
        Layout::Spaced => Some(Cause::new(Kind::BodySpaced)),
        Layout::Pretty("\t") => Some(Cause::with(Kind::BodyPretty, "by tabs")),
        Layout::Pretty(indent) => Some(Cause::with(
            Kind::BodyPretty,
            format!("by {} spaces", indent.len()),
        )),
    };
    let order = match style.order {
        Order::AsIs => None,
        Order::Service => Some(Cause::new(Kind::BodyKeysReordered)),
        Order::Sorted => Some(Cause::new(Kind::BodyKeysSorted)),
        Order::ByLength => Some(Cause::new(Kind::BodyKeysByLength)),
    };
    let numbers = match style.numbers {
        Numbers::AsIs => None,
        numbers => Some(Cause::with(
            Kind::BodyNumbersRewritten,
            format!("the signed body has {}", numbers.name()),
        )),
    };
    [layout, order, style.strings.cause(), numbers]
        .into_iter()
        .flatten()
        .collect()
}
