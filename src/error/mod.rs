//! Every error of the crate, a file a concern.
//!
//! An error is an opaque struct with a `kind()`, so that context can be added without breaking anyone. `Display`
//! says this level only; what lies below is in [`source()`](std::error::Error::source). The wording is for people
//! and no contract: match on the kind. No error holds a secret, a computed MAC or a byte of a body.

mod build;
mod event;
mod keys;
mod secret;
mod store;
mod verify;

pub use build::{BuildError, BuildErrorKind};
pub(crate) use event::Position;
pub use event::{EventError, EventErrorKind};
pub use keys::{KeysError, KeysErrorKind};
pub use secret::{SecretError, SecretErrorKind};
pub use store::{StoreError, StoreErrorKind};
pub use verify::{HeaderError, HeaderErrorKind, Times, VerifyError, VerifyErrorKind};

/// A value that is not written the one way the service writes it. What was wrong is deliberately not repeated: the
/// value came from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not written as the service writes it")]
pub struct Malformed;
