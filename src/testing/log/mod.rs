//! The delivery log: what came, byte for byte, and what was answered. One delivery a line, as JSON.
//!
//! A log serves three: a test that [replays](super::replay) it, whoever asks at 3 a.m. why signatures fail, and the command `hookgate`.
//! So it keeps what decides, exactly as it came: the headers in order, the body's very bytes, the second at which the receiver's clock
//! stood, and the verdict.
//!
//! | to | there is |
//! |---|---|
//! | record | [`ReceiverBuilder::record`](crate::ReceiverBuilder::record) with a [`Recorder`], which writes a file, or a closure |
//! | take out what should not be kept | [`Redaction`] |
//! | read | [`DeliveryLog`], or [`LogLines`] line by line |
//! | take in what the service shows of its deliveries | [`DeliveryLog::import`] |
//! | sign again, compare, send by hand | [`LoggedDelivery::resigned`], [`differences`](LoggedDelivery::differences), [`to_curl`](LoggedDelivery::to_curl) |
//!
//! # What is recorded
//!
//! Every delivery that the layer or [`Receiver::handle`](crate::Receiver::handle) answers, once, when its answer is known: authentic or
//! not, refused on its head, handled, failed, a duplicate. Whoever takes the [steps](crate::receiver) makes entries of their own,
//! with [`LoggedDelivery::new`].
//!
//! - **Headers** are in the order of [`http::HeaderMap`]: as they came, but for those of one name, which stand together. Names are in
//!   lower case.
//! - **The body** is there whenever it was read to its end, also of what did not verify. It is not there where the head alone was refused
//!   (method, type, announced size, malformed headers, a wrong age), and not in part: of a body that broke off, was too slow or too
//!   long, there is the number of bytes that had been taken.
//! - **The time** is the very reading of the receiver's clock that the age was judged by, so a check at that time comes to the same
//!   verdict. Where no age was judged, it is a reading when the head came.
//! - **The target** is the one that the layer sees. A router that is nested has taken its prefix off.
//! - **The answer** is what was answered, and when. A run that goes on behind its answer is `runs_on`, and its end is in no log: the
//!   retry's entry says `replayed`, or [`on_settled`](crate::ReceiverBuilder::on_settled) does. Where the inner service failed in place of
//!   answering, the status is 500, which is what servers make of it.
//! - **A sender that hangs up** is answered nothing, and its entry says so: no answer, and [the time](LoggedDelivery::hung_up_after) that it
//!   had waited. A server that stops looks the same.
//!
//! # Security
//! Bodies hold **names and e-mail addresses**, and whatever the rows hold. A log is as confidential as the data itself: give it the
//! protection, the retention and the deletion that the data has, and take out with [`Redaction`] what nobody needs. It holds what
//! strangers send, too: what is shown of it in a terminal needs its control characters taken out.
//!
//! Headers that carry credentials are never kept, whatever is set: values of those that are marked sensitive, or whose name contains
//! `auth`, `cookie`, `token`, `secret`, `session`, `password`, `jwt`, `credential` or `api-key`, become `[redacted]`, and
//! parameters of the target's query of such a name as well. None of them is signed, so the entry stays verifiable.
//!
//! The signature stays, or nothing could be verified. It lets nobody sign anything else; but whoever has a line while it is fresh, 300 s as a
//! rule, can send that delivery to a receiver that has not seen it.
//!
//! # Cost
//! Without a recorder, none. With one, the request's own thread copies the headers and puts the entry into a queue; formatting, redaction
//! and writing are the recorder's thread's. `cargo bench -p hookgate-benches --bench record`, a `row.created` of 1 KiB through a guarded axum route, on two
//! cores that other work shares, as a multiple of the same route without a recorder: 1.32 to a closure, 1.45 to a file, 2.51 to a file with
//! [`Redaction::people`]. What the thread does runs beside the next deliveries, and takes from them where no core is free.

mod again;
mod append;
mod curl;
mod diff;
mod entry;
mod file;
mod import;
mod line;
mod lines;
mod misread;
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
