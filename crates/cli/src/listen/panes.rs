//! The panes below the list or over it: an open delivery, a text, the help.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::columns::{ID, padded};
use super::item::Verdict;
use super::keys::HELP;
use super::page::Tab;
use super::page_line::PageLine;
use super::palette::Palette;
use super::state::{Open, Text};

pub(crate) fn detail(open: &Open, palette: Palette, frame: &mut Frame<'_>, tabs: Rect, page: Rect) {
    let item = &open.item;
    let mut spans = vec![Span::styled(
        format!(
            " #{} {} ",
            item.number,
            padded(&item.event_id, ID).trim_end()
        ),
        palette.strong(),
    )];
    for tab in Tab::ALL {
        let name = format!(" {} ", tab.name());
        if tab == open.tab {
            spans.push(Span::styled(format!("[{}]", tab.name()), palette.strong()));
        } else {
            spans.push(Span::raw(name));
        }
    }
    let (first, last, rows) = open.page.position();
    spans.push(Span::styled(
        format!("  {first}–{last} of {rows}"),
        palette.quiet(),
    ));
    let line = Line::from(spans).style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_widget(line, tabs);
    lines(open.page.in_sight(), palette, frame, page);
}

fn lines(rows: &[PageLine], palette: Palette, frame: &mut Frame<'_>, area: Rect) {
    let line = |row: &PageLine| {
        let style = palette.line(row.kind);
        let (name, value) = row
            .text
            .split_at_checked(row.name)
            .unwrap_or((&row.text, ""));
        Line::from(vec![
            Span::styled(name.to_owned(), style.patch(palette.quiet())),
            Span::styled(value.to_owned(), style),
        ])
    };
    frame.render_widget(
        Paragraph::new(rows.iter().map(line).collect::<Vec<_>>()),
        area,
    );
}

pub(crate) fn text(shown: &Text, palette: Palette, frame: &mut Frame<'_>, area: Rect) {
    let around = frame_around(area, frame.area());
    frame.render_widget(Clear, around);
    frame.render_widget(Block::bordered().title(&*shown.title), around);
    lines(shown.page.in_sight(), palette, frame, area);
}

pub(crate) fn help(palette: Palette, frame: &mut Frame<'_>, area: Rect) {
    let line = |(keys, what): &(&'static str, &'static str)| {
        Line::from(vec![
            Span::styled(format!(" {keys:14}"), palette.strong()),
            Span::raw(*what),
        ])
    };
    // On a screen of 24 rows the help takes all of them.
    let area = match usize::from(area.height) > HELP.len() + Verdict::ALL.len() {
        true => area,
        false => Block::bordered().inner(frame.area()),
    };
    let mut lines: Vec<_> = HELP.iter().map(line).collect();
    if usize::from(area.height) > HELP.len() + Verdict::ALL.len() {
        lines.push(Line::default());
    }
    for verdict in Verdict::ALL {
        let glyph = Span::styled(format!(" {:14}", verdict.glyph()), palette.verdict(verdict));
        lines.push(Line::from(vec![glyph, Span::raw(verdict.says())]));
    }
    let around = frame_around(area, frame.area());
    frame.render_widget(Clear, around);
    frame.render_widget(Block::bordered().title(" Keys "), around);
    frame.render_widget(Paragraph::new(lines), area);
}

/// One cell further on each side, so far as there is room.
fn frame_around(area: Rect, screen: Rect) -> Rect {
    let around = Rect {
        x: area.x.saturating_sub(1),
        y: area.y.saturating_sub(1),
        width: area.width.saturating_add(2),
        height: area.height.saturating_add(2),
    };
    around.intersection(screen)
}
