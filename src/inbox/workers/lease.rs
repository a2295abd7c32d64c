//! An entry's lease, kept for as long as its handler runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::hooks::{LostLease, Step};
use super::state::WorkersState;
use crate::dedupe::{ClaimToken, Ownership};
use crate::layer::call_store;

/// A lease that a task of its own renews after each third of its time: neither the handler nor other entries can delay the
/// renewal. When it is dropped, the renewals end.
pub(super) struct Lease {
    held: Arc<Held>,
    renewing: AbortHandle,
}

#[derive(Default)]
struct Held {
    lost: AtomicBool,
    settling: AtomicBool,
}

impl Lease {
    pub(super) fn keep(
        shared: &Arc<WorkersState>,
        entry: LostLease,
        token: ClaimToken,
        asked: Instant,
    ) -> Self {
        let held = Arc::new(Held::default());
        let renewing = renew(Arc::clone(shared), Arc::clone(&held), entry, token, asked);
        Self {
            held,
            renewing: tokio::spawn(renewing).abort_handle(),
        }
    }

    /// Whether the store has reported that another worker holds the lease, or that the lease has ended.
    pub(super) fn is_lost(&self) -> bool {
        self.held.lost.load(Ordering::SeqCst)
    }

    /// From now on the settlement reports whether the lease is held: a renewal that arrives after it finds no lease.
    pub(super) fn settling(&self) {
        self.held.settling.store(true, Ordering::SeqCst);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

async fn renew(
    shared: Arc<WorkersState>,
    held: Arc<Held>,
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
                if !held.settling.load(Ordering::SeqCst) {
                    held.lost.store(true, Ordering::SeqCst);
                    shared.tell(Step::LeaseLost(&entry));
                }
                return;
            }
            // The renewal may have succeeded or not, and the next may succeed: the call is repeated several times before the lease
            // ends.
            Err(error) => {
                shared.tell(Step::StoreFailed("renew", &error));
                Instant::now() + (every / 4).max(Duration::from_millis(1))
            }
        };
    }
}
