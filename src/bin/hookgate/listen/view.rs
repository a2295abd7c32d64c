//! Draws the state. Nothing is decided here but where things stand.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::item::{Item, Verdict};
use super::keys::HELP;
use super::page::{Kind, PageLine, Tab};
use super::state::{Mode, Open, State, Text};

/// Where things stand on a screen of this size.
struct Areas {
    title: Rect,
    heads: Rect,
    list: Rect,
    tabs: Rect,
    page: Rect,
    text: Rect,
    bottom: Rect,
}

/// With fewer rows than this, an open delivery takes the list's place.
const ROOM_FOR_BOTH: u16 = 16;

impl Areas {
    fn of(area: Rect, is_open: bool) -> Self {
        let [title, middle, bottom] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Min(0),
            Constraint::Length(1),
        ])
        .areas(area);
        let list_share = match (is_open, middle.height >= ROOM_FOR_BOTH) {
            (false, _) => Constraint::Percentage(100),
            (true, true) => Constraint::Percentage(35),
            (true, false) => Constraint::Length(0),
        };
        let [above, below] = Layout::vertical([list_share, Constraint::Min(0)]).areas(middle);
        let first_row = [Constraint::Length(1), Constraint::Min(0)];
        let [heads, list] = Layout::vertical(first_row).areas(above);
        let [tabs, page] = Layout::vertical(first_row).areas(below);
        // A margin on the right: what a terminal draws wider than it should must not wrap.
        let page = Rect {
            width: page.width.saturating_sub(1),
            ..page
        };
        let text = Rect {
            x: middle.x.saturating_add(1),
            y: middle.y.saturating_add(1),
            width: middle.width.saturating_sub(3),
            height: middle.height.saturating_sub(2),
        }
        .intersection(area);
        Self {
            title,
            heads,
            list,
            tabs,
            page,
            text,
            bottom,
        }
    }
}

/// Fits the state into a screen of this size. To be called before each [`draw`].
pub(crate) fn lay_out(state: &mut State, area: Rect) {
    let areas = Areas::of(area, state.open.is_some());
    let size = |area: Rect| (area.width, area.height);
    state.lay_out(areas.list.height, size(areas.page), size(areas.text));
}

/// Colours, or none where NO_COLOR asks for it; words and glyphs say the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    pub(crate) colours: bool,
}

impl Palette {
    fn colour(self, colour: Color) -> Style {
        if self.colours {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    fn verdict(self, verdict: Verdict) -> Style {
        self.colour(match verdict {
            Verdict::Done => Color::Green,
            Verdict::Again => Color::Cyan,
            Verdict::RunsOn => Color::Magenta,
            Verdict::Failed => Color::Yellow,
            Verdict::Refused => Color::Red,
        })
    }

    fn quiet(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn line(self, kind: Kind) -> Style {
        match kind {
            Kind::Plain => Style::new(),
            Kind::Remark => self.quiet(),
            Kind::Bad => self.colour(Color::Red),
            Kind::Advice => self.colour(Color::Cyan),
        }
    }
}

pub(crate) fn draw(state: &State, palette: Palette, frame: &mut Frame<'_>) {
    let areas = Areas::of(frame.area(), state.open.is_some());
    title(state, palette, frame, areas.title);
    if areas.list.height > 0 {
        heads(palette, frame, areas.heads);
        list(state, palette, frame, areas.list);
    }
    if let Some(open) = &state.open {
        detail(open, palette, frame, areas.tabs, areas.page);
    }
    bottom(state, palette, frame, areas.bottom);
    match (state.mode, &state.text) {
        (Mode::Text, Some(shown)) => text(shown, palette, frame, areas.text),
        (Mode::Help, _) => help(palette, frame, areas.text),
        _ => {}
    }
}

fn title(state: &State, palette: Palette, frame: &mut Frame<'_>, area: Rect) {
    let list = &state.list;
    let mut counts = format!("  {} came", list.came());
    if list.is_filtered() {
        counts.push_str(&format!(", {} shown", list.shown().len()));
    }
    if list.let_go() > 0 {
        counts.push_str(&format!(", the oldest {} let go", list.let_go()));
    }
    if state.unseen > 0 {
        counts.push_str(&format!(", {} too fast to show", state.unseen));
    }
    let mut spans = vec![
        Span::styled("hookgate listen ", palette.strong()),
        Span::raw(&*state.about.url),
    ];
    if let Some(forward) = &state.about.forward {
        spans.push(Span::raw(format!(" → {forward}")));
    }
    spans.push(Span::styled(counts, palette.quiet()));
    frame.render_widget(Line::from(spans), area);
}

/// Widths of the columns up to the id; the id and the reason share what is left.
const COLUMNS: [usize; 4] = [8, 6, 22, 15];
const ID: usize = 20;

fn heads(palette: Palette, frame: &mut Frame<'_>, area: Rect) {
    let [time, status, outcome, kind] = COLUMNS;
    let heads = format!(
        "  {:time$} {:status$} {:outcome$} {:kind$} {:ID$} {:>7}  reason",
        "time", "status", "outcome", "type", "id", "ms"
    );
    frame.render_widget(
        Line::styled(heads, palette.quiet().add_modifier(Modifier::UNDERLINED)),
        area,
    );
}

fn list(state: &State, palette: Palette, frame: &mut Frame<'_>, area: Rect) {
    let list = &state.list;
    if list.shown().len() == 0 {
        let text = if list.kept() == 0 {
            "Nothing has come yet. Try: hookgate send row.created --to "
        } else {
            "The filter takes none of them; Esc clears it."
        };
        let url = if list.kept() == 0 {
            &*state.about.url
        } else {
            ""
        };
        frame.render_widget(
            Line::styled(format!("  {text}{url}"), palette.quiet()),
            area,
        );
        return;
    }
    let cursor = list.cursor();
    let in_sight = list
        .shown()
        .enumerate()
        .skip(list.top())
        .take(area.height.into());
    for ((at, item), y) in in_sight.zip(area.y..) {
        let row = Rect {
            y,
            height: 1,
            ..area
        };
        let is_selected = cursor == Some(at);
        let mut line = list_line(item, palette, is_selected);
        if is_selected {
            line = line.patch_style(Style::new().add_modifier(Modifier::REVERSED));
            frame
                .buffer_mut()
                .set_style(row, Style::new().add_modifier(Modifier::REVERSED));
        }
        frame.render_widget(
            line,
            Rect {
                width: row.width.saturating_sub(1),
                ..row
            },
        );
    }
}

fn list_line(item: &Item, palette: Palette, is_selected: bool) -> Line<'_> {
    let [time, status, outcome, kind] = COLUMNS;
    let verdict = palette.verdict(item.verdict);
    // What no key has signed is somebody's word.
    let hint = if item.authentic {
        Style::new()
    } else {
        palette.quiet()
    };
    let mark = if is_selected { '›' } else { ' ' };
    let status = if item.status == 0 {
        " ".repeat(status)
    } else {
        format!("{:<status$}", item.status)
    };
    Line::from(vec![
        Span::raw(format!("{mark} {} ", padded(&item.time, time))),
        Span::styled(format!("{status} "), verdict),
        Span::styled(
            padded(
                &format!("{} {}", item.verdict.glyph(), item.outcome),
                outcome,
            ),
            verdict,
        ),
        Span::styled(format!(" {} ", padded(&item.event_type, kind)), hint),
        Span::styled(padded(&item.event_id, ID), hint),
        Span::styled(format!(" {:>7.1}  ", item.elapsed_ms), palette.quiet()),
        Span::raw(&*item.reason),
    ])
}

/// Exactly so many columns, cut off with `…` where the text is wider.
fn padded(text: &str, columns: usize) -> String {
    let width = Span::raw(text).width();
    if width <= columns {
        return format!("{text}{}", " ".repeat(columns - width));
    }
    let (mut cut, mut taken) = (String::new(), 0);
    for char in text.chars() {
        let cells = Span::raw(char.to_string()).width();
        if taken + cells + 1 > columns {
            break;
        }
        taken += cells;
        cut.push(char);
    }
    cut.push('…');
    cut.extend(std::iter::repeat_n(' ', columns.saturating_sub(taken + 1)));
    cut
}

fn detail(open: &Open, palette: Palette, frame: &mut Frame<'_>, tabs: Rect, page: Rect) {
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

fn bottom(state: &State, palette: Palette, frame: &mut Frame<'_>, area: Rect) {
    let line = match (&state.mode, &state.notice) {
        (Mode::Filter, _) => Line::from(vec![
            Span::styled("/", palette.strong()),
            Span::raw(format!("{}▏", state.filter_text)),
            Span::styled(
                "   Enter keeps it, Esc gives it up; type:row. outcome:refused",
                palette.quiet(),
            ),
        ]),
        (_, Some(notice)) => {
            let (mark, kind) = if notice.bad {
                ("! ", Kind::Bad)
            } else {
                ("", Kind::Advice)
            };
            Line::styled(format!("{mark}{}", notice.text), palette.line(kind))
        }
        (Mode::Detail, None) => keys(
            "Tab part  w raw  n p next  c curl  r replay  Esc back  ? help  q quit",
            palette,
        ),
        (Mode::Text, None) => keys("s save to a file  Esc back", palette),
        (_, None) => {
            let mut line = keys(
                "Enter open  / filter  c curl  r replay  ? help  q quit",
                palette,
            );
            if !state.filter_text.is_empty() {
                line.spans.insert(
                    0,
                    Span::styled(format!("/{}  ", state.filter_text), palette.strong()),
                );
            }
            let follow = if state.list.follows() {
                "  following"
            } else {
                "  End follows"
            };
            line.spans.push(Span::styled(follow, palette.quiet()));
            line
        }
    };
    frame.render_widget(line, area);
}

fn keys(text: &'static str, palette: Palette) -> Line<'static> {
    Line::styled(text, palette.quiet())
}

fn text(shown: &Text, palette: Palette, frame: &mut Frame<'_>, area: Rect) {
    frame.render_widget(Clear, frame_around(area));
    frame.render_widget(Block::bordered().title(&*shown.title), frame_around(area));
    lines(shown.page.in_sight(), palette, frame, area);
}

fn help(palette: Palette, frame: &mut Frame<'_>, area: Rect) {
    let line = |(keys, what): &(&'static str, &'static str)| {
        Line::from(vec![
            Span::styled(format!(" {keys:14}"), palette.strong()),
            Span::raw(*what),
        ])
    };
    let mut lines: Vec<_> = HELP.iter().map(line).collect();
    lines.push(Line::default());
    for verdict in [
        Verdict::Done,
        Verdict::Again,
        Verdict::RunsOn,
        Verdict::Failed,
        Verdict::Refused,
    ] {
        let glyph = Span::styled(format!(" {:14}", verdict.glyph()), palette.verdict(verdict));
        lines.push(Line::from(vec![glyph, Span::raw(verdict.says())]));
    }
    frame.render_widget(Clear, frame_around(area));
    frame.render_widget(Block::bordered().title(" Keys "), frame_around(area));
    frame.render_widget(Paragraph::new(lines), area);
}

/// One cell further on each side, so far as there is room.
fn frame_around(area: Rect) -> Rect {
    Rect {
        x: area.x.saturating_sub(1),
        y: area.y.saturating_sub(1),
        width: area.width.saturating_add(2),
        height: area.height.saturating_add(2),
    }
}
