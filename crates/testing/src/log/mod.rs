//! Reads the delivery log that [`hookgate_record`] writes.
//!
//! | task | use |
//! |---|---|
//! | read | [`DeliveryLog`], or [`LogLines`] line by line |
//! | sign again, compare, send with curl | [`resigned`](LoggedDeliveryExt::resigned), [`differences`](LoggedDeliveryExt::differences), [`to_curl`](LoggedDeliveryExt::to_curl) |
//!
//! # Security
//! A log holds names, e-mail addresses and the requests of attackers: remove control characters before you show its content in a
//! terminal. See [`hookgate_record`].

mod changed;
mod curl;
mod diff;
mod error;
mod ext;
mod file;
mod line;
mod lines;
mod rotated;
mod value;

pub use changed::ChangedEvent;
pub use diff::Difference;
pub use error::{LogError, LogErrorKind};
pub use ext::LoggedDeliveryExt;
pub use file::DeliveryLog;
pub use lines::LogLines;
