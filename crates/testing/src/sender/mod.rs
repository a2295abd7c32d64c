//! The delivery engine of the service, for tests and for real URLs:
//! [the guide](hookgate::guide::sender) has a whole program.
//!
#![cfg_attr(doctest, doc = include_str!("../../../../docs/sender.md"))]

mod attempt;
mod engine;
mod faults;
mod report;
mod settings;
mod subscription;

pub use attempt::Attempted;
pub use engine::Sender;
pub use faults::Tamper;
pub(crate) use faults::fnv1a;
pub use faults::{NetworkFault, NetworkFaults};
pub use report::{AttemptEnd, Disposition, SenderReport, SentAttempt, SentEvent, meaning};
pub use settings::{Reading, RetryTimestamps, SenderBuilder};
pub use subscription::{SenderError, SenderErrorKind, Subscription};
