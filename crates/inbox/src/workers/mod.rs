//! Workers: they lease entries of an inbox, pass them to the handler, and settle the results.

mod backoff;
mod dispatch;
mod hooks;
mod job;
mod lease;
#[cfg(feature = "metrics")]
mod metrics;
mod running;
mod settings;
mod state;
#[cfg(test)]
mod tests;
#[cfg(feature = "tracing")]
mod trace;

#[cfg(any(test, feature = "contract"))]
pub(crate) use dispatch::listen;

pub use backoff::{Backoff, Jitter};
pub use hooks::{AttemptReport, DeadEntry, Disposition, LostLease};
pub use running::RunningWorkers;
pub use settings::Workers;
