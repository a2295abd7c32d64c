//! The reason of a failure as one line, as it is stored with an entry.

/// The most bytes of the line.
const BYTES: usize = 512;

/// Returns at most [`BYTES`] bytes of the text. The result has no character that ends a line or controls a terminal, and any
/// database accepts it as text.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for char in text.chars() {
        let char = if char.is_control() { ' ' } else { char };
        if line.len() + char.len_utf8() > BYTES - '…'.len_utf8() {
            line.push('…');
            break;
        }
        line.push(char);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_one_line_of_bounded_length() {
        assert_eq!(
            one_line("first\nsecond\r\u{1b}[2J\0third"),
            "first second  [2J third"
        );
        for letter in ["x", "ä", "€", "🦀"] {
            let long = one_line(&letter.repeat(1_000));
            assert!(
                long.len() <= BYTES && long.len() > BYTES - 8,
                "{}",
                long.len()
            );
            assert!(long.ends_with('…'));
        }
        assert_eq!(one_line(&"x".repeat(BYTES - 3)).len(), BYTES - 3);
    }
}
