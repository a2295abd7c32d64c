//! Draws the state. This module decides only the layout.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::action::Mode;
use super::columns::{ID, padded};
use super::item::Item;
use super::page_line::Kind;
use super::palette::Palette;
use super::panes;
use super::state::State;

/// The layout on a screen of this size.
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
        // A margin on the right: text that a terminal draws too wide must not wrap.
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

/// Fits the state to a screen of this size. Call it before each [`draw`].
pub(crate) fn lay_out(state: &mut State, area: Rect) {
    let areas = Areas::of(area, state.open.is_some());
    let size = |area: Rect| (area.width, area.height);
    state.lay_out(areas.list.height, size(areas.page), size(areas.text));
}

pub(crate) fn draw(state: &State, palette: Palette, frame: &mut Frame<'_>) {
    let areas = Areas::of(frame.area(), state.open.is_some());
    title(state, palette, frame, areas.title);
    if areas.list.height > 0 {
        heads(palette, frame, areas.heads);
        list(state, palette, frame, areas.list);
    }
    if let Some(open) = &state.open {
        panes::detail(open, palette, frame, areas.tabs, areas.page);
    }
    bottom(state, palette, frame, areas.bottom);
    match (state.mode, &state.text) {
        (Mode::Text, Some(shown)) => panes::text(shown, palette, frame, areas.text),
        (Mode::Help, _) => panes::help(palette, frame, areas.text),
        _ => {}
    }
}

fn title(state: &State, palette: Palette, frame: &mut Frame<'_>, area: Rect) {
    let list = &state.list;
    let mut counts = format!("  {} came", list.received());
    if list.is_filtered() {
        counts.push_str(&format!(", {} shown", list.shown().len()));
    }
    if list.evicted() > 0 {
        counts.push_str(&format!(", the oldest {} let go", list.evicted()));
    }
    if state.unseen > 0 {
        counts.push_str(&format!(", {} too fast to show", state.unseen));
    }
    let mut spans = vec![
        Span::styled("hookgate listen ", palette.strong()),
        Span::raw(&*state.facts.url),
    ];
    if let Some(forward) = &state.facts.forward {
        spans.push(Span::raw(format!(" → {forward}")));
    }
    if let Some(page) = &state.facts.page {
        spans.push(Span::raw(format!("  page {page}/")));
    }
    spans.push(Span::styled(counts, palette.quiet()));
    frame.render_widget(Line::from(spans), area);
}

/// Widths of the columns up to the id; the id and the reason share the rest.
const COLUMNS: [usize; 4] = [8, 6, 18, 14];
/// The mark, the columns up to the id, and the time taken: with this width and the id's, no reason is shown.
const BESIDE_ID: usize = 2 + COLUMNS[0] + COLUMNS[1] + COLUMNS[2] + COLUMNS[3] + 4 + 8;
const SHORTEST_ID: usize = 8;

/// The width of the id's column: on a narrow screen the id gives way, and the time taken stays in sight.
fn id_width(area: Rect) -> usize {
    // A margin on the right, as in a row.
    let room = usize::from(area.width.saturating_sub(1));
    room.saturating_sub(BESIDE_ID).clamp(SHORTEST_ID, ID)
}

fn heads(palette: Palette, frame: &mut Frame<'_>, area: Rect) {
    let [time, status, outcome, kind] = COLUMNS;
    let id = id_width(area);
    let heads = format!(
        "  {:time$} {:status$} {:outcome$} {:kind$} {:id$} {:>7}  reason",
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
            &*state.facts.url
        } else {
            ""
        };
        let whole = format!("  {text}{url}");
        // On a narrow screen the command has a line of its own, so that it can be copied whole.
        let lines = match text.split_once("Try: ") {
            Some((before, command)) if Span::raw(&*whole).width() > area.width.into() => {
                vec![format!("  {before}Try:"), format!("  {command}{url}")]
            }
            _ => vec![whole],
        };
        let lines = lines
            .into_iter()
            .map(|line| Line::styled(line, palette.quiet()));
        frame.render_widget(
            Paragraph::new(lines.collect::<Vec<_>>()).wrap(Wrap { trim: false }),
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
        let mut line = list_line(item, id_width(area), palette, is_selected);
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

fn list_line(item: &Item, id: usize, palette: Palette, is_selected: bool) -> Line<'_> {
    let [time, status, outcome, kind] = COLUMNS;
    let verdict = palette.verdict(item.verdict);
    // Without a valid signature the text is only a claim of the sender.
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
        Span::styled(padded(&item.event_id, id), hint),
        Span::styled(format!(" {:>7.1}  ", item.elapsed_ms), palette.quiet()),
        Span::raw(item.short_reason()),
    ])
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
            "Tab part  w raw  n p next  e explain  c curl  r replay  Esc back  ? help  q quit",
            palette,
        ),
        (Mode::Text, None) => keys("s save to a file  Esc back", palette),
        (_, None) => {
            let mut line = keys(
                "Enter open  / filter  e explain  c curl  r replay  ? help  q quit",
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

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::style::Color;

    use super::super::action::Action;
    use super::super::item::Verdict;
    use super::super::item::tests::{delivery, handled};
    use super::super::state::Facts;
    use super::*;

    fn state() -> State {
        let facts = Facts {
            url: "http://127.0.0.1:8787/webhooks".into(),
            ..Facts::default()
        };
        State::new(facts, 4)
    }

    fn full() -> State {
        let mut state = state();
        state.push(handled("evt_let_go"));
        state.push(handled("evt_1"));
        state.push(delivery(
            r#"{"id":"evt_1","type":"row.deleted"}"#,
            200,
            "replayed",
        ));
        let mut refused = delivery(
            r#"{"id":"evt_2","type":"page.created"}"#,
            401,
            "not_authentic",
        );
        refused.answer.as_mut().unwrap().reason =
            Some("the signature is not that of these bytes".into());
        refused.answer.as_mut().unwrap().claimed_subscription = Some("wh_1".into());
        state.push(refused);
        state.push(delivery(
            r#"{"id":"evt_3","type":"row.created"}"#,
            503,
            "runs_on",
        ));
        state
    }

    fn buffer(
        state: &mut State,
        width: u16,
        height: u16,
        colours: bool,
    ) -> ratatui::buffer::Buffer {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        lay_out(state, Rect::new(0, 0, width, height));
        terminal
            .draw(|frame| draw(state, Palette { colours }, frame))
            .unwrap();
        terminal.backend().buffer().clone()
    }

    fn drawn(state: &mut State, width: u16, height: u16) -> Vec<String> {
        let buffer = buffer(state, width, height, true);
        let row = |y| {
            let mut line = String::new();
            let mut skipped = 0;
            for x in 0..width {
                let symbol = buffer[(x, y)].symbol();
                if skipped == 0 {
                    line.push_str(symbol);
                }
                skipped = Span::raw(symbol).width().max(skipped).saturating_sub(1);
            }
            line.trim_end().to_owned()
        };
        (0..height).map(row).collect()
    }

    #[test]
    fn an_empty_list_says_what_to_try() {
        let lines = drawn(&mut state(), 100, 6);
        assert_eq!(
            lines[0],
            "hookgate listen http://127.0.0.1:8787/webhooks  0 came"
        );
        assert!(lines[2].contains("hookgate send row.created --to http://127.0.0.1:8787/webhooks"));
    }

    #[test]
    fn a_list_says_each_verdict_in_words() {
        assert_eq!(
            drawn(&mut full(), 132, 8),
            [
                "hookgate listen http://127.0.0.1:8787/webhooks  5 came, the oldest 1 let go",
                "  time     status outcome            type           id                        ms  reason",
                "  01:53:20 204    ✓ handled          row.deleted    evt_1                    1.2",
                "  01:53:20 200    = replayed         row.deleted    evt_1                    1.2",
                "  01:53:20 401    ✗ not_authentic    page.created   evt_2                    1.2  the signature is not that of these bytes",
                "› 01:53:20 503    … runs_on          row.created    evt_3                    1.2",
                "",
                "Enter open  / filter  e explain  c curl  r replay  ? help  q quit  following",
            ]
        );
    }

    #[test]
    fn at_eighty_columns_the_hint_the_help_and_the_time_taken_are_whole() {
        let mut empty = state();
        empty.facts.url = "http://127.0.0.1:8787/webhooks/of/this/service".into();
        let lines = drawn(&mut empty, 80, 8);
        assert_eq!(lines[2], "  Nothing has come yet. Try:");
        let command =
            "hookgate send row.created --to http://127.0.0.1:8787/webhooks/of/this/service";
        assert_eq!(lines[3], format!("  {command}"));
        let mut state = full();
        let lines = drawn(&mut state, 80, 8);
        assert!(lines[1].ends_with("ms"), "{lines:#?}");
        for line in &lines[2..6] {
            assert!(line.ends_with(" 1.2"), "{lines:#?}");
        }
        assert!(lines[7].contains("? help  q quit"), "{lines:#?}");
        for action in [Action::Up, Action::Open] {
            state.update(action);
        }
        let lines = drawn(&mut state, 80, 24);
        assert!(lines[23].ends_with("? help  q quit"), "{lines:#?}");
        let mut help = full();
        help.update(Action::Help);
        let lines = drawn(&mut help, 80, 24).join("\n");
        for (keys, what) in super::super::keys::HELP {
            assert!(
                lines.contains(keys) && lines.contains(what),
                "{what}: {lines}"
            );
        }
        for verdict in Verdict::ALL {
            assert!(lines.contains(verdict.says()), "{lines}");
        }
    }

    #[test]
    fn colours_go_where_they_are_not_wanted_and_nothing_else_does() {
        let (with, without) = (
            buffer(&mut full(), 132, 8, true),
            buffer(&mut full(), 132, 8, false),
        );
        let coloured = |buffer: &ratatui::buffer::Buffer| {
            buffer
                .content()
                .iter()
                .filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
                .count()
        };
        assert!(coloured(&with) > 50);
        assert_eq!(coloured(&without), 0);
        let symbols = |buffer: &ratatui::buffer::Buffer| -> String {
            buffer.content().iter().map(|cell| cell.symbol()).collect()
        };
        assert_eq!(symbols(&with), symbols(&without));
    }

    #[test]
    fn an_open_delivery_stands_below_the_list_and_says_what_to_do_next() {
        let mut state = full();
        for action in [Action::Up, Action::Open] {
            state.update(action);
        }
        let lines = drawn(&mut state, 100, 24);
        assert!(lines[4].starts_with("› 01:53:20 401"), "{lines:#?}");
        assert!(
            lines[9].starts_with(" #4 evt_2 [Answer] Head  Body  Event   1–"),
            "{lines:#?}"
        );
        assert!(
            lines[10].starts_with("verdict: ✗ refused without a run"),
            "{lines:#?}"
        );
        let all = lines.join("\n");
        assert!(all.contains("hookgate explain"), "{all}");
        // Too low for both: the delivery takes all rows.
        let low = drawn(&mut state, 100, 12);
        assert!(low[1].starts_with(" #4 evt_2 [Answer]"), "{low:#?}");
    }

    /// Every size, in every state: nothing panics, and nothing is drawn outside.
    #[test]
    fn no_screen_is_too_small() {
        let mut states = [full(), full(), full(), full(), state()];
        states[1].update(Action::Open);
        states[2].update(Action::Help);
        states[3].show_text("1.sh".into(), " curl ".into(), "curl 東京".into());
        for state in &mut states {
            for (width, height) in [
                (1, 1),
                (2, 1),
                (1, 9),
                (3, 3),
                (9, 2),
                (200, 1),
                (5, 40),
                (20, 5),
                (0, 0),
            ] {
                drawn(state, width, height);
                state.update(Action::Down);
            }
        }
    }

    #[test]
    fn nothing_that_was_sent_breaks_a_row() {
        let mut state = state();
        for id in [
            "東京東京東京東京東京東京",
            "🧾🧾🧾",
            "e\\u001b[31mvil\\n",
            "\\u202egnp.exe",
            "👩\\u200d💻",
        ] {
            let body = format!(r#"{{"id":"{id}","type":"row.created"}}"#);
            state.push(delivery(&body, 204, "handled"));
        }
        for _ in 0..2 {
            let lines = drawn(&mut state, 100, 7);
            // The column behind the id is always at the same place.
            for line in &lines[2..5] {
                assert_eq!(
                    Span::raw(line.split("1.2").next().unwrap()).width(),
                    77,
                    "{line}"
                );
            }
            assert!(!lines.concat().chars().any(char::is_control));
            state.update(Action::Home);
        }
    }

    #[test]
    fn a_filter_is_shown_while_it_is_typed_and_afterwards() {
        let mut state = full();
        state.update(Action::StartFilter);
        "evt_2"
            .chars()
            .for_each(|char| drop(state.update(Action::Type(char))));
        let lines = drawn(&mut state, 100, 8);
        assert!(lines[7].starts_with("/evt_2▏"), "{lines:#?}");
        assert!(lines[0].contains("5 came, 1 shown"), "{lines:#?}");
        state.update(Action::Accept);
        assert!(drawn(&mut state, 100, 8)[7].starts_with("/evt_2  Enter open"));
    }
}
