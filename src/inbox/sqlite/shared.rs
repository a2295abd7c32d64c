//! The data that the threads share with their callers.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio::sync::Notify;

use crate::dedupe::ScopesInUse;

/// The data that the threads share with their callers.
#[derive(Debug, Default)]
pub(super) struct EngineState {
    pub(super) changed: Notify,
    /// Deliveries that wait to be stored.
    pub(super) waiting: Arc<AtomicUsize>,
    pub(super) scopes: ScopesInUse,
}

impl EngineState {
    pub(super) fn tell(&self) {
        // A dispatcher begins to listen before it calls `lease`, so it misses no notification.
        self.changed.notify_waiters();
    }
}
