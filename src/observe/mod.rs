//! Observation: each step of a delivery is told once, to spans, metrics, the hooks and the program's own observers.

#[cfg(feature = "metrics")]
pub(crate) mod metrics;
mod observation;
mod observer;
mod observers;
mod reports;
mod span;
#[cfg(feature = "tracing")]
mod trace;
mod used_keys;
#[cfg(feature = "tracing")]
mod warnings;

pub use observer::{ObservedRequest, RequestObserver};
pub use reports::{Answer, Failed, Settled};

pub(crate) use reports::Reason;

pub(crate) use {observation::Observation, observers::Observers, span::in_this_span};
