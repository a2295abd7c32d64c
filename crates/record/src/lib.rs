#![doc = include_str!("../README.md")]
#![doc = ""]
#![doc = include_str!("../docs/log.md")]
#![forbid(unsafe_code)]
// The items of clippy.toml. Unit tests may use them.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod append;
mod entry;
mod observer;
mod queue;
mod recorder;
mod redact;
mod redaction;
mod rotated;
mod scan;

pub use append::{RecordError, TORN_LINE};
pub use entry::{LoggedAnswer, LoggedDelivery};
pub use observer::record_with;
pub use recorder::{Recorder, RecorderBuilder};
pub use redaction::{REDACTED, Redaction};
pub use rotated::files;
