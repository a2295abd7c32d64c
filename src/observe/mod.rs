//! Observation: spans, metrics, the hooks and the program's own observers see each step of a
//! delivery once.

#[cfg(feature = "metrics")]
pub(crate) mod metric_names;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
mod observers;
mod reports;
mod request_observer;
mod span;
#[cfg(feature = "tracing")]
mod trace;

pub use reports::{Answer, Failed, Settled};
pub use request_observer::{ObservedRequest, RequestObserver};

pub(crate) use observers::{Observation, Observers};
pub(crate) use reports::Reason;
pub(crate) use span::in_this_span;
