//! Requests for passes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::Notify;

/// The passes that follow a request: a deletion is found in the third.
const PASSES: u32 = 3;

/// Requests passes of a reconciliation; made by [`Reconcile::requests`](super::Reconcile::requests). Clones belong to the same
/// reconciliation.
#[derive(Clone, Debug, Default)]
pub struct PassRequests(Arc<Requested>);

#[derive(Debug, Default)]
struct Requested {
    passes: AtomicU32,
    changed: Notify,
}

impl PassRequests {
    /// Requests three passes, because a deletion is found in the third. Requests before the next pass count as one. It does not
    /// wait, so it can be called in a hook.
    pub fn ask(&self) {
        self.0.passes.store(PASSES, Ordering::SeqCst);
        self.0.changed.notify_one();
    }

    /// A pass begins.
    pub(super) fn begin(&self) {
        let less = |passes: u32| Some(passes.saturating_sub(1));
        let _ = self
            .0
            .passes
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
    }

    pub(super) async fn asked(&self) {
        while self.0.passes.load(Ordering::SeqCst) == 0 {
            self.0.changed.notified().await;
        }
    }
}
