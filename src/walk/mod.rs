//! The steps of a delivery and their policy, for the receiver and all that stands on it.

mod error;

pub use error::{BuildError, BuildErrorKind};
