//! For tests: of what you build on this crate, and of what you build for it.
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
