//! The state that all tasks of the workers share, and their calls of the store.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use super::hooks::Step;
use super::settings::Settings;
use crate::caught::caught;
use crate::dedupe::{StoreError, StoreErrorKind, StoreFuture};
use crate::inbox::engine::Engine;
use crate::layer::CatchUnwind;
use crate::observe::Observer;

/// The data that all tasks of these workers share.
pub(super) struct WorkersState {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) settings: Settings,
    pub(super) phase: watch::Sender<Phase>,
    /// The number of handlers in progress.
    pub(super) active: AtomicUsize,
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

    /// Tells each observer of a step. The workers write no delivery log.
    pub(super) fn tell(&self, step: Step<'_>) {
        #[cfg(feature = "tracing")]
        self.settings.tracing.observe(step);
        #[cfg(feature = "metrics")]
        self.settings.metrics.observe(step);
        self.settings.hooks.observe(step);
    }
}

/// Calls the store, and waits for its answer for at most `limit`. A call may hang, fail or panic; none of these ends a worker.
pub(super) async fn call_store<'a, T: Unpin>(
    limit: Duration,
    call: impl FnOnce() -> StoreFuture<'a, T>,
) -> Result<T, StoreError> {
    let panicked = || StoreError::new(StoreErrorKind::Unavailable).caused_by("the store panicked");
    let asked = caught(call).map_err(|_| panicked())?;
    match timeout(limit, CatchUnwind::new(asked)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err(panicked()),
        Err(_) => Err(StoreError::new(StoreErrorKind::TimedOut)),
    }
}
