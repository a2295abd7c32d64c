//! Errors with their sources in one line, for a log and for the end of a program.

use std::error::Error;
use std::fmt;
use std::iter::successors;

/// Writes `Debug` with the message and its causes. A `main` that returns such an error prints it
/// with `Debug`, so the advice must be part of it.
pub(crate) fn write_readably(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    kind: &dyn fmt::Debug,
    error: &dyn Error,
) -> fmt::Result {
    write!(f, "{name}({kind:?}): {}", Chain(error))
}

/// The most sources of an error that are looked at.
const MAX_SOURCES: usize = 16;

/// Returns the error and its sources.
pub(crate) fn sources<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    successors(Some(error), |&error| error.source()).take(MAX_SOURCES)
}

/// The most bytes that are written of an error and its sources.
const MAX_CHAIN_BYTES: usize = 2_048;

/// Shows an error with its sources in one line: each control character is a space, and more than 2
/// KiB are cut off. For a log, or for the reason that is kept with a dead letter.
///
/// ```
/// use hookgate::outcome::one_line;
/// use hookgate::dedupe::{StoreError, StoreErrorKind};
///
/// let error = StoreError::new(StoreErrorKind::Unavailable).caused_by("no route\nto the host");
/// assert_eq!(one_line(&error).to_string(), "the store is unavailable: no route to the host");
/// ```
pub fn one_line(error: &(dyn Error + 'static)) -> impl fmt::Display {
    Chain(error)
}

/// An error and its chain of sources, in one line of bounded length: the text may be a handler's
/// own.
pub(crate) struct Chain<'a>(pub(crate) &'a dyn Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.0.to_string();
        for source in self.0.source().into_iter().flat_map(sources) {
            text.push_str(": ");
            text.push_str(&source.to_string());
        }
        f.write_str(&cut_to(MAX_CHAIN_BYTES, &text))
    }
}

/// Returns at most this many bytes of the text, and `…` after them if it was longer. Each control
/// character is a space: the text may be a user's, and must not look like a line of the log, or
/// move the cursor of a terminal.
pub(crate) fn cut_to(most: usize, text: &str) -> String {
    let mut ends = (0..=most.min(text.len())).rev();
    let end = ends.find(|&end| text.is_char_boundary(end));
    let end = end.unwrap_or_default();
    let mut line = text[..end].replace(char::is_control, " ");
    if end < text.len() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigError, ConfigErrorKind};

    #[test]
    fn what_a_main_prints_says_what_to_change() {
        let error = ConfigError::new(ConfigErrorKind::SecretApiKey);
        let error = error.with_origin("WEBHOOK_SECRET".into());
        assert_eq!(
            format!("{error:?}"),
            "ConfigError(SecretApiKey): WEBHOOK_SECRET: this is an API key: paste the subscription's secret, which starts with whsec_"
        );
        let error = ConfigError::new(ConfigErrorKind::SecretUnreadable)
            .caused_by(std::io::Error::other("no such file"));
        assert_eq!(
            format!("{error:?}"),
            "ConfigError(SecretUnreadable): the secret's file can't be read: no such file"
        );
        let error = ConfigError::new(ConfigErrorKind::NoStore);
        assert!(format!("{error:?}").contains(".without_deduplication()"));
    }

    /// Its own source, without an end.
    #[derive(Debug)]
    struct Endless(String);

    impl fmt::Display for Endless {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.0)
        }
    }

    impl Error for Endless {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(self)
        }
    }

    #[test]
    fn a_chain_has_a_bounded_length_and_an_end() {
        for text in ["x", "ä", "€", "🦀", ""] {
            let line = Chain(&Endless(text.repeat(1_000))).to_string();
            let bytes = line.trim_end_matches('…').len();
            assert!(bytes <= MAX_CHAIN_BYTES, "{line}");
            assert_eq!(line.ends_with('…'), !text.is_empty());
            assert!(bytes > MAX_CHAIN_BYTES - 4 || text.is_empty());
        }
        let whole = "x".repeat(MAX_CHAIN_BYTES);
        for (text, shown) in [
            (whole.clone(), whole.clone()),
            (format!("{whole}x"), format!("{whole}…")),
        ] {
            let error: Box<dyn Error> = text.into();
            assert_eq!(Chain(&*error).to_string(), shown);
        }
    }

    #[test]
    fn a_text_is_cut_between_two_characters() {
        for (text, cut) in [
            ("", ""),
            ("abc", "abc"),
            ("abcd", "abc…"),
            ("abäd", "ab…"),
            ("🦀", "…"),
        ] {
            assert_eq!(cut_to(3, text), cut);
        }
    }

    #[test]
    fn a_text_with_line_breaks_is_one_line() {
        let error = std::io::Error::other("no customer\nERROR forged: \u{1b}[2Jx");
        let line = Chain(&error).to_string();
        assert_eq!(line, "no customer ERROR forged:  [2Jx");
        assert_eq!(cut_to(9, "ab\ncd\nefgh"), "ab cd efg…");
    }
}
