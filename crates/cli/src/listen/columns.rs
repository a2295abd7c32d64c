//! Text in a column of the screen.

use ratatui::text::Span;

/// The width of an id's column.
pub(crate) const ID: usize = 20;

/// Pads to this number of columns, or cuts off with `…` where the text is wider.
pub(crate) fn padded(text: &str, columns: usize) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(padded("東京", 3), "東…");
        assert_eq!(padded("東京", 4), "東京");
        assert_eq!(padded("東京東", 4), "東… ");
        assert_eq!(padded("abc", 5), "abc  ");
    }
}
