//! Colours, and the words and glyphs that mean the same without them.

use ratatui::style::{Color, Modifier, Style};

use super::item::Verdict;
use super::page_line::Kind;

/// Colours, or none where NO_COLOR is set; words and glyphs carry the same meaning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    pub(crate) colours: bool,
}

impl Palette {
    pub(crate) fn colour(self, colour: Color) -> Style {
        if self.colours {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    pub(crate) fn verdict(self, verdict: Verdict) -> Style {
        self.colour(match verdict {
            Verdict::Done => Color::Green,
            Verdict::Again => Color::Cyan,
            Verdict::RunsOn => Color::Magenta,
            Verdict::Failed => Color::Yellow,
            Verdict::Refused => Color::Red,
        })
    }

    pub(crate) fn quiet(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn line(self, kind: Kind) -> Style {
        match kind {
            Kind::Plain => Style::new(),
            Kind::Remark => self.quiet(),
            Kind::Bad => self.colour(Color::Red),
            Kind::Advice => self.colour(Color::Cyan),
        }
    }
}
