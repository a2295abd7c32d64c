//! Lines that are scrolled through.

use super::action::Action;
use super::page_line::{self, PageLine};

#[derive(Clone, Debug, Default)]
pub(crate) struct Scrolled {
    lines: Vec<PageLine>,
    /// The lines wrapped to the width; none before a width is known.
    rows: Vec<PageLine>,
    width: u16,
    top: usize,
    height: usize,
}

impl Scrolled {
    pub(crate) fn new(lines: Vec<PageLine>) -> Self {
        Self {
            lines,
            ..Self::default()
        }
    }

    /// Wraps the lines to these columns and rows.
    pub(crate) fn lay_out(&mut self, width: u16, height: u16) {
        if self.width != width {
            self.rows = page_line::wrapped(&self.lines, width);
            self.width = width;
        }
        self.height = usize::from(height).max(1);
        self.top = self.top.min(self.last_top());
    }

    fn last_top(&self) -> usize {
        self.rows.len().saturating_sub(self.height)
    }

    pub(crate) fn scroll(&mut self, action: Action) {
        let page = self.height.saturating_sub(1).max(1);
        let top = match action {
            Action::Up => self.top.saturating_sub(1),
            Action::Down => self.top + 1,
            Action::PageUp => self.top.saturating_sub(page),
            Action::PageDown => self.top + page,
            Action::Home => 0,
            Action::End => usize::MAX,
            _ => self.top,
        };
        self.top = top.min(self.last_top());
    }

    /// The visible rows.
    pub(crate) fn in_sight(&self) -> &[PageLine] {
        let end = (self.top + self.height).min(self.rows.len());
        &self.rows[self.top.min(end)..end]
    }

    /// The first visible row, counted from 1, the last one, and the number of rows.
    pub(crate) fn position(&self) -> (usize, usize, usize) {
        let end = (self.top + self.height).min(self.rows.len());
        ((self.top + 1).min(end), end, self.rows.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::page_line::Kind;
    use super::*;

    fn scrolled(texts: &[&str]) -> Scrolled {
        let line = |text: &&str| PageLine {
            kind: Kind::Plain,
            name: 0,
            text: (*text).to_owned(),
        };
        Scrolled::new(texts.iter().map(line).collect())
    }

    fn in_sight(scrolled: &Scrolled) -> Vec<&str> {
        scrolled.in_sight().iter().map(|row| &*row.text).collect()
    }

    #[test]
    fn it_ends_with_its_last_line_at_the_bottom() {
        let mut five = scrolled(&["1", "2", "3", "4", "5"]);
        assert!(in_sight(&five).is_empty());
        five.lay_out(10, 3);
        assert_eq!(in_sight(&five), ["1", "2", "3"]);
        for (action, first) in [
            (Action::Up, "1"),
            (Action::Down, "2"),
            (Action::PageDown, "3"),
            (Action::Down, "3"),
            (Action::Home, "1"),
            (Action::End, "3"),
            (Action::PageUp, "1"),
        ] {
            five.scroll(action);
            assert_eq!(in_sight(&five)[0], first, "{action:?}");
        }
        assert_eq!(five.position(), (1, 3, 5));
        five.scroll(Action::End);
        five.lay_out(10, 9);
        assert_eq!(five.position(), (1, 5, 5));
    }

    #[test]
    fn wide_characters_are_never_cut_in_two() {
        let mut wide = scrolled(&["東京東", "", "abcde"]);
        wide.lay_out(5, 9);
        assert_eq!(in_sight(&wide), ["東京", "東", "", "abcde"]);
        wide.lay_out(3, 9);
        assert_eq!(in_sight(&wide), ["東", "京", "東", "", "abc", "de"]);
        wide.lay_out(0, 0);
        assert_eq!(in_sight(&wide), ["東"]);
    }
}
