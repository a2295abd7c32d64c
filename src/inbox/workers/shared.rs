//! The data that all tasks of the workers share.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio::sync::watch;

use super::hooks::{AttemptReport, LostLease};
use super::settings::Settings;
use super::trace;
use crate::dedupe::StoreError;
use crate::inbox::engine::{Engine, Listed};
use crate::inbox::metrics;

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

    pub(super) fn store_failed(&self, call: &'static str, error: &StoreError) {
        trace::store_failed(call, error);
        metrics::store_failed(&self.settings.name, call);
    }

    pub(super) fn tried(&self, tried: &AttemptReport, error: Option<&str>) {
        metrics::tried(&self.settings.name, tried);
        self.settings.hooks.tried(tried, error);
    }

    pub(super) fn dead_lettered(&self, listed: &Listed) {
        trace::dead_lettered(listed);
        metrics::dead_lettered(&self.settings.name);
        self.settings.hooks.dead_lettered(listed);
    }

    /// A dead letter whose name cannot be read, so that no hook can be called with it.
    pub(super) fn dead_lettered_unnamed(&self) {
        metrics::dead_lettered(&self.settings.name);
    }

    pub(super) fn lost(&self, lost: &LostLease) {
        trace::lost(lost);
        metrics::lost(&self.settings.name);
        self.settings.hooks.lost(lost);
    }
}
