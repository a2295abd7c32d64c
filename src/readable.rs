//! `Debug` of the errors that end a program at its start.

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
    write!(f, "{name}({kind:?}): {error}")?;
    let mut below = error.source();
    while let Some(source) = below {
        write!(f, ": {source}")?;
        below = source.source();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::verify::{KeysError, KeysErrorKind, SecretError, SecretErrorKind};
    use crate::walk::{BuildError, BuildErrorKind};

    #[test]
    fn what_a_main_prints_says_what_to_change() {
        let error = SecretError::new(SecretErrorKind::ApiKey).with_origin("WEBHOOK_SECRET".into());
        assert_eq!(
            format!("{error:?}"),
            "SecretError(ApiKey): WEBHOOK_SECRET: this is an API key: paste the subscription's secret, which starts with whsec_"
        );
        let error = SecretError::new(SecretErrorKind::Unreadable)
            .caused_by(std::io::Error::other("no such file"));
        assert_eq!(
            format!("{error:?}"),
            "SecretError(Unreadable): the secret's file can't be read: no such file"
        );
        let error = KeysError::new(KeysErrorKind::NameTaken).about("a");
        assert_eq!(
            format!("{error:?}"),
            r#"KeysError(NameTaken): two keys of one ring are named "a""#
        );
        let error = BuildError::new(BuildErrorKind::Keys).caused_by(error);
        assert_eq!(
            format!("{error:?}"),
            r#"BuildError(Keys): the keys can't be used as they were given: two keys of one ring are named "a""#
        );
        let error = BuildError::new(BuildErrorKind::NoStore);
        assert!(format!("{error:?}").contains(".without_deduplication()"));
    }
}
