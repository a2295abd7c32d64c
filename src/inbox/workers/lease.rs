//! An entry's lease, kept for as long as its handler runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::Shared;
use super::ask::ask;
use super::hooks::LostLease;
use crate::dedupe::{ClaimToken, Ownership};

/// A lease that is renewed at a third of it, by a task of its own: nothing that the handler or the other entries do stands before it.
/// Dropped, it is renewed no more.
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
        shared: &Arc<Shared>,
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

    /// Whether the store has said that it is somebody else's, or nobody's.
    pub(super) fn is_lost(&self) -> bool {
        self.held.lost.load(Ordering::SeqCst)
    }

    /// From now on the settlement says what became of the lease: a renewal may come behind it, and find nothing.
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
    shared: Arc<Shared>,
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
        // A call that hangs must not outlive the next one.
        let call = || shared.engine.renew(entry.id, token, lease);
        next = match ask(every, call).await {
            Ok(Ownership::Held) => asked + every,
            Ok(Ownership::Lost) => {
                // Nothing to keep any more. The effects under way can't be stopped.
                if !held.settling.load(Ordering::SeqCst) {
                    held.lost.store(true, Ordering::SeqCst);
                    shared.lost(&entry);
                }
                return;
            }
            // It may have taken effect or not, and the next may succeed: asked again before the lease is over.
            Err(error) => {
                shared.store_failed("renew", &error);
                Instant::now() + pause(every)
            }
        };
    }
}

/// Until a renewal that failed is tried again: several times before the lease has ended.
fn pause(every: Duration) -> Duration {
    (every / 4).max(Duration::from_millis(1))
}
