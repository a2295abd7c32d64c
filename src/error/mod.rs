//! All errors of the crate, one file per topic.
//!
//! An error is an opaque struct with a `kind()`, so that more context can be added later without a breaking change. `Display`
//! prints this level only; the cause is in [`source()`](std::error::Error::source). The message is for people and may change:
//! match on the kind. No error holds a secret, a computed MAC or a byte of a body.

use std::error::Error;
use std::fmt;

mod build;
mod event;
#[cfg(feature = "inbox")]
mod inbox;
mod keys;
mod lookup;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "axum")]
mod router;
mod secret;
mod store;
mod verify;

pub use build::{BuildError, BuildErrorKind};
pub(crate) use event::Position;
pub use event::{EventError, EventErrorKind};
#[cfg(feature = "inbox")]
pub use inbox::{InboxError, InboxErrorKind};
pub use keys::{KeysError, KeysErrorKind};
pub use lookup::{LookupError, LookupErrorKind};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresError, PostgresErrorKind};
#[cfg(feature = "redis")]
pub use redis::{RedisError, RedisErrorKind};
#[cfg(feature = "axum")]
pub use router::{RouterError, RouterErrorKind};
pub use secret::{SecretError, SecretErrorKind};
pub use store::{StoreError, StoreErrorKind};
pub use verify::{HeaderError, HeaderErrorKind, Times, VerifyError, VerifyErrorKind};

/// A value that is not in the one form that the service writes. The wrong value is not part of this error on purpose: it came
/// from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not written as the service writes it")]
pub struct Malformed;

/// Writes `Debug` for the errors that end a program at its start. A `main` that returns such an error prints it with `Debug`,
/// so the advice must be part of it.
fn write_readably(
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
    use super::*;

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
