//! The observers of a receiver, and the one place that tells them.

#[cfg(feature = "record")]
use std::sync::Arc;

use super::hooks::Hooks;
#[cfg(feature = "metrics")]
use super::metrics::Metrics;
#[cfg(feature = "record")]
use super::record::Recording;
use super::step::{Observer, Step};
#[cfg(feature = "tracing")]
use super::trace::Tracing;
#[cfg(feature = "record")]
use crate::record::Record;

/// The observers of a receiver.
#[derive(Default)]
pub(crate) struct Observers {
    #[cfg(feature = "tracing")]
    tracing: Tracing,
    #[cfg(feature = "metrics")]
    pub(crate) metrics: Metrics,
    pub(crate) hooks: Hooks,
    #[cfg(feature = "record")]
    recorder: Recording,
}

impl Observers {
    /// Tells each observer of a step.
    #[inline]
    pub(crate) fn tell(&self, step: Step<'_>) {
        #[cfg(feature = "tracing")]
        self.tracing.observe(step);
        #[cfg(feature = "metrics")]
        self.metrics.observe(step);
        self.hooks.observe(step);
        #[cfg(feature = "record")]
        self.recorder.observe(step);
    }

    #[cfg(feature = "tracing")]
    pub(crate) fn log_handled_at_info(&mut self) {
        self.tracing.handled_at_info = true;
    }

    #[cfg(feature = "record")]
    pub(crate) fn set_recorder(&mut self, recorder: impl Record) {
        self.recorder.0 = Some(Arc::new(recorder));
    }
}
