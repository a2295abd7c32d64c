//! The reason of a failure as one line, as it is stored with an entry.

use super::engine::End;

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

impl End {
    /// Replaces the error by a plainer text: the same text in ASCII, with a `?` for each other character, or, if it is ASCII
    /// already, a fixed text that does not describe the failure. Returns false if there is no error.
    pub(crate) fn make_plain(&mut self) -> bool {
        let (Self::Retry { error, .. } | Self::Dead { error }) = self else {
            return false;
        };
        *error = if error.is_ascii() {
            "the store refused the reason of this failure".to_owned()
        } else {
            let plain = |letter: char| if letter.is_ascii() { letter } else { '?' };
            error.chars().map(plain).collect()
        };
        true
    }
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
