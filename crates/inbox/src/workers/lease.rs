//! An entry's lease, kept for as long as its handler runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hookgate::dedupe::{ClaimToken, Ownership};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::hooks::{LostLease, Step};
use super::state::{WorkersState, call_store};

/// A lease that a task of its own renews after each third of its time: neither the handler nor
/// other entries can delay the renewal. When it is dropped, the renewals end.
pub(super) struct Lease {
    /// Set by the first of two: a renewal that finds the lease lost, and reports it, or the
    /// settlement, which finds out itself.
    is_over: Arc<AtomicBool>,
    renewing: AbortHandle,
}

impl Lease {
    pub(super) fn keep(
        shared: &Arc<WorkersState>,
        entry: LostLease,
        token: ClaimToken,
        asked: Instant,
    ) -> Self {
        let is_over = Arc::default();
        let renewing = renew(
            Arc::clone(shared),
            Arc::clone(&is_over),
            entry,
            token,
            asked,
        );
        Self {
            is_over,
            renewing: tokio::spawn(renewing).abort_handle(),
        }
    }

    /// From now on the settlement reports whether the lease is held: a renewal that arrives after
    /// it finds no lease. Returns false if a renewal has found and reported that the lease is lost.
    pub(super) fn begin_settlement(&self) -> bool {
        !self.is_over.swap(true, Ordering::SeqCst)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

async fn renew(
    shared: Arc<WorkersState>,
    is_over: Arc<AtomicBool>,
    entry: LostLease,
    token: ClaimToken,
    asked: Instant,
) {
    let lease = shared.settings.lease;
    let every = lease / 3;
    let mut next = asked + every;
    loop {
        sleep_until(next).await;
        let asked = Instant::now();
        // A call that hangs must end before the next one begins.
        let call = || shared.engine.renew(entry.id, token, lease);
        next = match call_store(every, call).await {
            Ok(Ownership::Held) => asked + every,
            Ok(Ownership::Lost) => {
                // There is no lease to renew any more. The effects in progress cannot be stopped.
                if !is_over.swap(true, Ordering::SeqCst) {
                    shared.tell(Step::LeaseLost(&entry));
                }
                return;
            }
            // The renewal may have succeeded or not, and the next may succeed: the call is repeated
            // several times before the lease ends.
            Err(error) => {
                shared.tell(Step::StoreFailed("renew", &error));
                Instant::now() + (every / 4).max(Duration::from_millis(1))
            }
        };
    }
}
