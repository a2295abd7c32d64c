//! Reads the delivery log that [`hookgate_record`] writes.
//!
//! | task | use |
//! |---|---|
//! | read | [`DeliveryLog`], or [`LogLines`] line by line |
//! | sign again, send with curl | [`resigned`](LoggedDeliveryExt::resigned), [`to_curl`](LoggedDeliveryExt::to_curl) |
//!
//! # Security
//! A log holds names, e-mail addresses and the requests of attackers: remove control characters
//! before you show its content in a terminal. See [`hookgate_record`].

mod error;
mod ext;
mod file;
mod line;
mod lines;

pub use error::{LogError, LogErrorKind};
pub use ext::{LoggedDeliveryExt, UnverifiedHead};
pub(crate) use ext::{pairs, verifier_of};
pub use file::DeliveryLog;
pub use lines::LogLines;
