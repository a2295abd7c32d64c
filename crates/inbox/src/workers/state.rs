//! The state of the workers, and how a step is reported to the observers.

use std::sync::Arc;

use tokio::sync::watch;

use super::hooks::Step;
use super::settings::Workers;
use crate::engine::Engine;

/// The data that all tasks of these workers share.
pub(super) struct WorkersState {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) settings: Workers,
    pub(super) phase: watch::Sender<Phase>,
    /// Each handler in progress has a clone.
    pub(super) active: Arc<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Work,
    /// Lease no more entries.
    Stop,
    /// Abort the runs in progress.
    Abort,
}

impl WorkersState {
    pub(super) fn is_working(&self) -> bool {
        *self.phase.borrow() == Phase::Work
    }

    /// Reports a step to each observer: tracing, metrics and the user's hooks. The workers do not write a delivery log.
    pub(super) fn tell(&self, step: Step<'_>) {
        #[cfg(feature = "tracing")]
        self.settings.tracing.observe(step);
        #[cfg(feature = "metrics")]
        self.settings.metrics.observe(step);
        self.settings.hooks.observe(step);
    }
}
