//! Errors with their sources in one line, for a log and for the end of a program.

use std::error::Error;
use std::fmt;

/// Writes `Debug` with the message and its causes. A `main` that returns such an error prints it with `Debug`, so the advice must
/// be part of it.
pub(crate) fn write_readably(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    kind: &dyn fmt::Debug,
    error: &dyn Error,
) -> fmt::Result {
    write!(f, "{name}({kind:?}): {}", Chain(error))
}

/// An error and its chain of sources, in one line.
pub(crate) struct Chain<'a>(pub(crate) &'a dyn Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut below = self.0.source();
        while let Some(error) = below {
            write!(f, ": {error}")?;
            below = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {

    use crate::config::{ConfigError, ConfigErrorKind};

    #[test]
    fn what_a_main_prints_says_what_to_change() {
        let error = ConfigError::new(ConfigErrorKind::SecretApiKey).about("WEBHOOK_SECRET");
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
        let error = ConfigError::new(ConfigErrorKind::NameTaken).about("a");
        assert_eq!(
            format!("{error:?}"),
            r#"ConfigError(NameTaken): two keys of one ring have the same name: "a""#
        );
        let error = ConfigError::new(ConfigErrorKind::NoStore);
        assert!(format!("{error:?}").contains(".without_deduplication()"));
    }
}
