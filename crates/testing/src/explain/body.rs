//! The bodies that may have been signed.

use std::ops::ControlFlow;

use super::cause::{Cause, CauseKind as Kind};
use super::json::{Document, Layout, Order, Style};
use super::numbers::Numbers;
use super::outer::{self, Visit};
use super::strings::Strings;

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

    /// Visits every body at this number of repairs, the likeliest first. The same bytes may come more than once.
    pub(super) fn each(&self, repairs: usize, visit: &mut Visit<'_>) -> ControlFlow<()> {
        match repairs {
            0 => visit(&[], self.received),
            1 => {
                outer::each(self.received, self.announced, visit)?;
                styled(self.received, 1, visit)
            }
            2 => {
                styled(self.received, 2, visit)?;
                outer::each(self.received, self.announced, &mut |first, bytes| {
                    let mut both = both(first, visit);
                    styled(bytes, 1, &mut both)?;
                    outer::each(bytes, None, &mut both)
                })?;
                styled(self.received, 1, &mut |first, bytes| {
                    outer::each(bytes, None, &mut both(first, visit))
                })
            }
            Self::DEEPEST => {
                styled(self.received, 3, visit)?;
                outer::each(self.received, self.announced, &mut |first, bytes| {
                    styled(bytes, 2, &mut both(first, visit))
                })
            }
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

/// Writes JSON again with this number of changes among layout, order, strings and numbers.
fn styled(body: &[u8], changes: usize, visit: &mut Visit<'_>) -> ControlFlow<()> {
    let Some(document) = Document::parse(body) else {
        return ControlFlow::Continue(());
    };
    let own = own_layout(&document, body);
    for layout in LAYOUTS {
        for order in ORDERS {
            for strings in Strings::ALL {
                for numbers in Numbers::ALL {
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
