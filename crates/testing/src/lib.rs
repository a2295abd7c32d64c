//! Tools for tests: for tests of code that uses [`hookgate`], and of code that extends it. The
//! command `hookgate` uses the same tools.
//!
//! | question | answer |
//! |---|---|
//! | How does my handler process this event? | [`event()`] and [`delivery()`]: JSON through the real verifier, without HTTP |
//! | How does my app process this request? | [`Signer`]: headers or whole requests, signed as the service signs |
//! | Where do I get events from? | [`factory`]: all eight types, every property format |
//! | Does my app handle production deliveries when faults occur? | [`hookgate_record`] records them, [`log`] reads them, [`replay`] repeats them, with faults |
//! | How does an event end after all attempts of the sender? | [`sender`]: the service's delivery engine, a day in milliseconds |
//! | Why is this delivery refused? | [`explain`]; [`read`] reads a delivery from several text forms |
//! | Is a clock wrong? | [`ClockOffset`], from a log or a `Date` header |
//! | Does my store, or my sink, keep its contract? | [`StoreConformance`], [`SinkConformance`] |
//!
//! The sender and the replay run in tokio's paused time. [`TokioClock`] gives this time to a
//! receiver and its store, so that ages, leases and timers agree with each other. [`InProcess`]
//! sends requests to an app without a socket; any other [`Transport`] can send them to another
//! destination.
//!
//! # Your own store
//! [`StoreConformance`] checks any [`DedupeStore`](hookgate::DedupeStore) against its contract. The
//! stores of hookgate and stores written outside it must pass the same rules. Each rule has a
//! [name](StoreRule) that a failing test prints.
//!
//! Hookgate's own tests run the suite against stores that are broken on purpose, because the suite
//! is only useful if it finds faults. There is one broken store for each known failure of real
//! stores: check and insert in two steps, a retention that duplicates extend, a release without a
//! token, a cache that forgets the newest records, a repeated commit that reports its own success
//! as lost.
//!
//! [The guide](hookgate::guide::testing) shows a handler's test and a replay.
#![doc = ""]
#![cfg_attr(doctest, doc = include_str!("../../../docs/testing.md"))]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod clock;
mod clock_offset;
mod event;
pub mod explain;
pub mod factory;
pub mod log;
mod messages;
pub mod read;
pub mod replay;
pub mod sender;
mod signer;
mod sink;
mod store;
mod transport;

pub use clock::{TokioClock, iso8601};
pub use clock_offset::ClockOffset;
pub use event::{delivery, event};
pub use explain::{Explainer, Explanation};
pub use factory::{EventFactory, SampleEvent};
pub use log::{DeliveryLog, LoggedDeliveryExt};
pub use replay::{Faults, Harness, Replay};
pub use sender::Sender;
pub use signer::Signer;
pub use sink::{SinkConformance, SinkRule, SinkUnderTest};
pub use store::{Finding, Report, StoreConformance, StoreRule, StoreUnderTest};
pub use transport::{InProcess, Transport, TransportError};
