//! Text beside its beginning, in the width of a terminal.

/// The beginning and the text, with further lines where it is wider than this, each below the beginning of the text.
pub(crate) fn hanging(begin: &str, text: &str, columns: usize) -> String {
    let indent = begin.chars().count();
    // A terminal that has no room for it breaks the lines itself.
    let room = columns.saturating_sub(indent);
    if room < 20 {
        return format!("{begin}{text}");
    }
    let (mut shown, mut used) = (begin.to_owned(), 0);
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > room {
            shown.push('\n');
            shown.push_str(&" ".repeat(indent));
            used = 0;
        } else if used > 0 {
            shown.push(' ');
            used += 1;
        }
        shown.push_str(word);
        used += length;
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_goes_on_below_the_beginning_of_its_text() {
        let text = "remember for 26 h 46 min 30 s or longer: .retention(…) in the receiver's builder, and --retention here";
        let shown = hanging("to fix        retention  ", text, 80);
        let lines: Vec<_> = shown.lines().collect();
        assert!(
            lines.len() == 2 && lines.iter().all(|line| line.chars().count() <= 80),
            "{shown}"
        );
        assert!(lines[1].starts_with(&" ".repeat(25)), "{shown}");
        let words: Vec<_> = shown.split_whitespace().skip(3).collect();
        assert_eq!(words.join(" "), text);
        // Where there is no room, and in a pipe, it is one line.
        for columns in [30, usize::MAX] {
            assert_eq!(
                hanging("to fix        retention  ", text, columns)
                    .lines()
                    .count(),
                1
            );
        }
    }
}
