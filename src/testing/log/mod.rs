//! The delivery log: what came, byte for byte, and what was answered. One delivery a line, as JSON.
//!
//! A log serves three: a test that [replays](super) it, whoever asks at 3 a.m. why signatures fail, and the command `hookgate`.
//! So it keeps what decides, exactly as it came: the headers in order, the body's very bytes, the second at which the receiver's clock
//! stood, and the verdict.
//!
//! # Security
//! Bodies hold names and e-mail addresses, and whatever the rows hold. A log is as confidential as the data itself.

mod again;
mod append;
mod curl;
mod diff;
mod entry;
mod file;
mod import;
mod line;
mod lines;
mod queue;
mod record;
mod recorder;
mod redact;
mod rotated;
mod scan;

pub use diff::{ChangedEvent, Difference};
pub use entry::{LoggedAnswer, LoggedDelivery};
pub use file::DeliveryLog;
pub use lines::LogLines;
pub use record::Record;
pub use recorder::{Recorder, RecorderBuilder};
pub use redact::Redaction;

pub(crate) use redact::{header_as_logged, target_as_logged};
