//! One observer: each step of a delivery is told once, and tracing, metrics, the hooks and the program's own observers are told of it.
//!
//! Each of the four is an [`Observer`] in a file of its own. The layer and the acceptors tell the steps of a request.

mod hooks;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
mod observation;
mod observer;
mod observers;
mod reports;
mod span;
mod step;
mod told;
#[cfg(feature = "tracing")]
mod trace;
#[cfg(feature = "tracing")]
mod warnings;

pub use observer::{ObservedRequest, RequestObserver};
pub use reports::{Answer, Failed, Reason, Settled};

pub(crate) use {
    observation::Observation,
    observers::Observers,
    span::{Span, in_this_span},
    step::{Observed, Step},
};
