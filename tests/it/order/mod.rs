//! The order of the events of a row.

mod example;
mod guards;
#[cfg(feature = "metrics")]
mod metrics;
