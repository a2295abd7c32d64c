//! A screen as SVG, with its colours; text that differs from run to run can be replaced.

use std::fmt::Write as _;

use vt100::{Color, Screen};

/// A column and a row, in pixels.
const COLUMN: f32 = 8.4;
const ROW: f32 = 18.0;
const MARGIN: f32 = 14.0;
/// Above the first row: the bar of a window.
const BAR: f32 = 30.0;

const BACKGROUND: &str = "#0d1117";
const FOREGROUND: &str = "#e6edf3";
/// Readable on that background: black, red, green, yellow, blue, magenta, cyan, white, and the same
/// brighter.
const COLOURS: [&str; 16] = [
    "#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
    "#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff",
];

#[derive(Clone, Debug, Default, PartialEq)]
struct Style {
    foreground: Option<&'static str>,
    background: Option<&'static str>,
    bold: bool,
    dim: bool,
    underline: bool,
}

#[derive(Clone, Debug)]
struct Cell {
    /// Empty where the one before it is wide.
    text: String,
    style: Style,
}

impl Cell {
    fn of(char: char, style: &Style) -> Self {
        Self {
            text: char.into(),
            style: style.clone(),
        }
    }
}

pub(crate) struct Picture {
    title: String,
    rows: Vec<Vec<Cell>>,
}

impl Picture {
    pub(crate) fn of(screen: &Screen, title: &str) -> Self {
        let (rows, columns) = screen.size();
        let cell = |row, column| {
            let cell = screen.cell(row, column).unwrap();
            let mut text = cell.contents().to_owned();
            if text.is_empty() && !cell.is_wide_continuation() {
                text.push(' ');
            }
            let (mut foreground, mut background) = (colour(cell.fgcolor()), colour(cell.bgcolor()));
            if cell.inverse() {
                let front = background.or(Some(BACKGROUND));
                (foreground, background) = (front, foreground.or(Some(FOREGROUND)));
            }
            let (bold, dim, underline) = (cell.bold(), cell.dim(), cell.underline());
            let style = Style {
                foreground,
                background,
                bold,
                dim,
                underline,
            };
            Cell { text, style }
        };
        let row = |row| (0..columns).map(|column| cell(row, column)).collect();
        let mut rows: Vec<Vec<Cell>> = (0..rows).map(row).collect();
        let is_empty = |cell: &Cell| cell.text == " " && cell.style.background.is_none();
        while rows.last().is_some_and(|row| row.iter().all(is_empty)) {
            rows.pop();
        }
        let title = title.to_owned();
        Self { title, rows }
    }

    /// The text of the screen, a line for each row.
    pub(crate) fn text(&self) -> String {
        let text = |row: &Vec<Cell>| row.iter().map(|cell| &*cell.text).collect::<String>();
        let line = |row| text(row).trim_end().to_owned() + "\n";
        self.rows.iter().map(line).collect()
    }

    /// Adds the typed command in a row above.
    pub(crate) fn put_above(&mut self, typed: &str) {
        let bold = Style {
            bold: true,
            ..Style::default()
        };
        let width = self.rows.first().map_or(0, Vec::len);
        let mut row: Vec<Cell> = typed.chars().map(|char| Cell::of(char, &bold)).collect();
        row.resize(width.max(row.len()), Cell::of(' ', &Style::default()));
        self.rows.insert(0, row);
    }

    /// Replaces this text with another one, wherever it occurs. The text behind it moves.
    pub(crate) fn replace(&mut self, old: &str, new: &str) {
        let old: Vec<_> = old.chars().map(String::from).collect();
        for row in &mut self.rows {
            let mut at = 0;
            while at + old.len() <= row.len() {
                let there = row[at..at + old.len()].iter().map(|cell| &cell.text);
                if there.eq(&old) {
                    let (style, width) = (row[at].style.clone(), row.len());
                    let cells = new.chars().map(|char| Cell::of(char, &style));
                    row.splice(at..at + old.len(), cells);
                    let last = row.last().unwrap().style.clone();
                    row.resize(width, Cell::of(' ', &last));
                    at += new.chars().count();
                } else {
                    at += 1;
                }
            }
        }
    }

    /// Every time of the day becomes one of a made-up morning, a second later in each row.
    pub(crate) fn mask_times(&mut self) {
        let mut second = 0;
        for at in 0..self.rows.len() {
            let cells = self.rows[at].iter();
            let line: Vec<char> = cells
                .map(|cell| cell.text.chars().next().unwrap_or(' '))
                .collect();
            let fits = |(char, form): (&char, char)| match form {
                ':' => *char == ':',
                _ => char.is_ascii_digit(),
            };
            let is_time = |text: &&[char]| text.iter().zip("00:00:00".chars()).all(fits);
            let times = line.windows(8).filter(is_time);
            for time in times.map(|time| time.iter().collect::<String>()) {
                let masked = format!("09:30:{second:02}");
                second += 1;
                let rows = vec![std::mem::take(&mut self.rows[at])];
                let mut one = Self {
                    title: String::new(),
                    rows,
                };
                one.replace(&time, &masked);
                self.rows[at] = one.rows.remove(0);
            }
        }
        let today =
            hookgate_testing::iso8601(hookgate::clock::Clock::now(&hookgate::clock::SystemClock));
        self.replace(today.split('T').next().unwrap(), "2026-11-21");
    }

    /// Replaces the seven characters in front of the first ` ms` of each row.
    pub(crate) fn mask_millis(&mut self, new: &str) {
        for row in &mut self.rows {
            let is_unit = |cells: &[Cell]| cells.iter().map(|cell| &*cell.text).eq([" ", "m", "s"]);
            if let Some(at) = row.windows(3).position(is_unit) {
                for (cell, char) in row[at - 7..at].iter_mut().zip(new.chars()) {
                    cell.text = char.into();
                }
            }
        }
    }

    pub(crate) fn svg(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = columns as f32 * COLUMN + 2.0 * MARGIN;
        let height = self.rows.len() as f32 * ROW + BAR + MARGIN;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" role=\"img\" aria-label=\"{}\">\n\
             <style>text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace;fill:{FOREGROUND};white-space:pre}}</style>\n\
             <rect width=\"{width:.1}\" height=\"{height:.1}\" rx=\"8\" fill=\"{BACKGROUND}\" stroke=\"#30363d\"/>\n",
            escaped(&self.title)
        );
        for (at, colour) in ["#ff5f57", "#febc2e", "#28c840"].iter().enumerate() {
            let x = 18.0 + 18.0 * at as f32;
            let circle = format!("<circle cx=\"{x}\" cy=\"15\" r=\"5.5\" fill=\"{colour}\"/>");
            writeln!(svg, "{circle}").unwrap();
        }
        for (at, row) in self.rows.iter().enumerate() {
            let top = BAR + at as f32 * ROW;
            for (from, until, style) in runs(row) {
                draw(&mut svg, row, (from, until), &style, top);
            }
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// Runs of neighbouring cells with the same style.
fn runs(row: &[Cell]) -> Vec<(usize, usize, Style)> {
    let mut runs: Vec<(usize, usize, Style)> = Vec::new();
    for (at, cell) in row.iter().enumerate() {
        match runs.last_mut() {
            Some((_, until, style)) if *style == cell.style => *until = at + 1,
            _ => runs.push((at, at + 1, cell.style.clone())),
        }
    }
    runs
}

fn draw(svg: &mut String, row: &[Cell], (from, until): (usize, usize), style: &Style, top: f32) {
    let x = |column: usize| MARGIN + column as f32 * COLUMN;
    if let Some(background) = style.background {
        let width = (until - from) as f32 * COLUMN;
        writeln!(svg, "<rect x=\"{:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{ROW}\" fill=\"{background}\"/>", x(from)).unwrap();
    }
    // Blanks are not drawn. Each word has its own start position, so that no font can move a
    // column.
    let mut at = from;
    while at < until {
        let is_blank = |at: &usize| row[*at].text == " ";
        let Some(begin) = (at..until).find(|at| !is_blank(at)) else {
            return;
        };
        let end = (begin..until)
            .find(|at| is_blank(at) && (*at + 1 == until || is_blank(&(at + 1))))
            .unwrap_or(until);
        let text: String = row[begin..end].iter().map(|cell| &*cell.text).collect();
        let mut attributes = String::new();
        if let Some(foreground) = style.foreground {
            write!(attributes, " style=\"fill:{foreground}\"").unwrap();
        }
        for (is_so, attribute) in [
            (style.bold, " font-weight=\"bold\""),
            (style.dim, " opacity=\"0.65\""),
            (style.underline, " text-decoration=\"underline\""),
        ] {
            attributes.push_str(if is_so { attribute } else { "" });
        }
        let length = (end - begin) as f32 * COLUMN;
        writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" textLength=\"{length:.1}\"{attributes}>{}</text>",
            x(begin),
            top + 13.5,
            escaped(&text)
        )
        .unwrap();
        at = end;
    }
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

fn colour(colour: Color) -> Option<&'static str> {
    match colour {
        Color::Idx(index) => COLOURS.get(usize::from(index)).copied(),
        Color::Default | Color::Rgb(..) => None,
    }
}
