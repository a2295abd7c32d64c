//! The state of the workers, how a step is reported to the observers, and how a store is called.

use std::sync::Arc;
use std::time::Duration;

use hookgate::{
    dedupe::{StoreError, StoreErrorKind, StoreFuture},
    internal::catch_store_panic,
};
use tokio::sync::watch;
use tokio::time::timeout;

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

    /// Reports a step to each observer: tracing, metrics and the user's hooks. The workers do not
    /// write a delivery log.
    pub(super) fn tell(&self, step: Step<'_>) {
        #[cfg(feature = "tracing")]
        self.settings.tracing.observe(step);
        #[cfg(feature = "metrics")]
        self.settings.metrics.observe(step);
        self.settings.hooks.observe(step);
    }
}

/// Calls a store, and waits for its answer for at most `limit`. The call may hang, fail or panic:
/// each is an error.
pub(super) async fn call_store<'a, T>(
    limit: Duration,
    call: impl FnOnce() -> StoreFuture<'a, T>,
) -> Result<T, StoreError> {
    let answered = timeout(limit, catch_store_panic(call)).await;
    answered.unwrap_or_else(|_| Err(StoreError::new(StoreErrorKind::TimedOut)))
}
