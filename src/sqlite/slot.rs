//! The bound on the calls that wait for the writer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One of the places for calls that wait.
pub(crate) struct WaitingSlot(Arc<AtomicUsize>);

impl WaitingSlot {
    /// Returns `None` if all places are taken.
    pub(crate) fn take(taken: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let slot = Self(Arc::clone(taken));
        (taken.fetch_add(1, Ordering::Relaxed) < most).then_some(slot)
    }
}

impl Drop for WaitingSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
