//! The delivery log: every delivery byte for byte, with its answer. One line of JSON per delivery.
//!
#![doc = include_str!("../../docs/log.md")]

mod append;
mod entry;
mod error;
mod interface;
mod line;
mod queue;
mod recorder;
mod redact;
mod redaction;
mod rotated;
mod scan;

pub use entry::{LoggedAnswer, LoggedDelivery};
pub use error::RecordError;
pub use interface::Record;
pub use line::TORN_LINE;
pub use recorder::{Recorder, RecorderBuilder};
pub use redaction::{REDACTED, Redaction};
pub use rotated::files;

pub(crate) use redact::{header_as_logged, target_as_logged};
