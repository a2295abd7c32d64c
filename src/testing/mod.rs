//! For tests: of what you build on this crate, and of what you build for it. The command `hookgate` stands on the same.
//!
//! | question | answer |
//! |---|---|
//! | What does my handler make of this event? | [`event()`] and [`delivery()`]: JSON through the real verifier, without HTTP |
//! | And of this request? | [`Signer`]: headers or whole requests, signed as the service signs |
//! | Where do I get events from? | [`factory`]: all eight types, every property format, and the values that break receivers |
//! | Does it handle what came in production, whatever goes wrong on the way? | [`log`] records, [`replay`] plays it again, with faults |
//! | What becomes of an event over all attempts of the sender? | [`sender`]: the service's delivery engine, a day in milliseconds |
//! | Why is this delivery refused? | [`explain`], of deliveries in whatever form: [`read`] |
//! | Is a clock off? | [`ClockOffset`], from a log or a `Date` header |
//! | Does my store keep its contract? | [`StoreConformance`] |
//!
//! The sender and the replay run in tokio's paused time. [`TokioClock`] gives it to a receiver and its store, so that ages, leases and
//! timers stay true to each other; [`InProcess`] takes requests to an app without a socket, and any other [`Transport`] to wherever you
//! want.
//!
//! # A store of your own
//! [`StoreConformance`] checks any [`DedupeStore`](crate::DedupeStore) against its contract: the stores of this crate and those
//! written outside it pass the same rules, each of which has a [name](StoreRule) that a failing test prints.
//!
//! The suite is only as good as the faults it finds, so this crate's own tests run it against stores that are broken on purpose,
//! one for each way in which real ones have failed: check and insert in two steps, a retention that duplicates extend, a release
//! without a token, a cache that forgets what is new, a repeated commit that denies its own success.

mod clock;
mod clock_offset;
mod event;
pub mod explain;
pub mod factory;
mod iso8601;
pub mod log;
pub mod read;
pub mod replay;
pub mod sender;
mod signer;
mod store;
mod transport;

pub use clock::TokioClock;
pub use clock_offset::ClockOffset;
pub use event::{delivery, event};
pub use explain::{Explainer, Explanation};
pub use factory::{EventFactory, SampleEvent};
pub use iso8601::iso8601;
pub use log::{DeliveryLog, LoggedAnswer, LoggedDelivery, Recorder};
pub use replay::{Faults, Harness, Replay};
pub use sender::Sender;
pub use signer::Signer;
pub use store::{Finding, StoreConformance, StoreReport, StoreRule, StoreUnderTest};
pub use transport::{InProcess, Transport, TransportError};
