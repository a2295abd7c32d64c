//! The delivery log: every delivery byte for byte, with its answer. One line of JSON per delivery.
//!
//! This module writes the log; the package `hookgate-testing` reads it. A log has three uses: a test replays it, an operator looks
//! up why signatures fail, and the command `hookgate` shows it. So an entry keeps exactly the input of the verification (the
//! headers in order, the bytes of the body, the second of the receiver's clock), and the verdict.
//!
//! | task | use |
//! |---|---|
//! | record | [`ReceiverBuilder::record`](crate::ReceiverBuilder::record) with a [`Recorder`], which writes a file, or a closure |
//! | remove values that must not be kept | [`Redaction`] |
//! | find the files of a log | [`files`] |
//!
//! # Recorded data
//!
//! The layer and [`Receiver::handle`](crate::Receiver::handle) record every delivery that they answer, once, when the answer
//! is known: authentic or not, refused on its head, handled, failed, a duplicate. Code that calls the
//! [steps](crate::receiver) itself makes its own entries with [`LoggedDelivery::new`].
//!
//! - **Headers** are in the order of [`http::HeaderMap`]: the received order, but headers of one name stand together. Names
//!   are in lower case.
//! - **The body** is recorded whenever it was read to its end, also when the delivery did not verify. It is not recorded
//!   where the head alone was refused (method, type, announced size, malformed headers, a wrong age). It is never recorded in
//!   part: for a body that broke off, was too slow or was too long, the entry has the number of bytes read.
//! - **The time** is the reading of the receiver's clock that the age was checked with, so a check at that time gives the
//!   same verdict. Where no age was checked, it is a reading at the arrival of the head.
//! - **The target** is the target that the layer sees. A nested router has removed its prefix.
//! - **The answer** is the answer sent, and its time. A run that continues after its answer has the outcome `runs_on`, and
//!   its end is in no log: the entry of the retry says `replayed`, or [`on_settled`](crate::ReceiverBuilder::on_settled)
//!   reports it. Where the inner service returned an error in place of an answer, the status is 500, because servers answer
//!   500 to it.
//! - **A sender that hangs up** gets no answer, and its entry says so: it has no answer, but [the
//!   time](LoggedDelivery::hung_up_after) that the sender had waited. A server that stops gives the same entry.
//!
//! # Security
//! Bodies hold **names and e-mail addresses**, and all other data of the rows. A log is as confidential as the data itself:
//! give it the protection, the retention and the deletion that the data has, and remove all values that are not needed with
//! [`Redaction`]. A log also holds the requests of attackers: remove control characters before you show its content in a
//! terminal.
//!
//! Headers that carry credentials are never kept, with any setting. Values of headers that are marked sensitive, or whose
//! name contains `auth`, `cookie`, `token`, `secret`, `session`, `password`, `jwt`, `credential` or `api-key`, become
//! `[redacted]`. Parameters of the target's query with such a name become `[redacted]` as well. None of them is signed, so
//! the entry stays verifiable.
//!
//! The signature stays, because without it the entry could not be verified. It does not allow an attacker to sign anything
//! else. But an attacker who gets a line while its timestamp is fresh, usually for 300 s, can send that delivery to a receiver
//! that has not seen it.
//!
//! # Cost
//! Without a recorder there is no cost. With a recorder, the request's own thread copies the headers and puts the entry into a
//! queue. The recorder's thread does the formatting, the redaction and the writing. `cargo bench -p hookgate-benches --features
//! testing --bench record`, a `row.created` of 1 KiB through a guarded axum route, on two cores shared with other work, as a
//! multiple of the same route without a recorder: 1.32 to a closure, 1.45 to a file, 2.51 to a file with [`Redaction::people`].
//! The work of the recorder's thread runs beside the next deliveries, and slows them where no core is free.

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
pub use error::{RecordError, RecordErrorKind};
pub use interface::Record;
pub use line::TORN_LINE;
pub use recorder::{Recorder, RecorderBuilder};
pub use redaction::{REDACTED, Redaction};
pub use rotated::files;

pub(crate) use redact::{header_as_logged, target_as_logged};
