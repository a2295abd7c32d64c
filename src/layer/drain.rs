//! Shuts down without losing a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::walk::{Gate, OnIdle};

/// The time that aborted runs get to release their claims.
pub(crate) const TO_RELEASE: Duration = Duration::from_secs(1);

/// The result of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    aborted: usize,
}

impl Drained {
    #[cfg(feature = "inbox")]
    pub(crate) fn after_aborting(aborted: usize) -> Self {
        Self { aborted }
    }

    /// Returns the number of runs that were still under way at the end of the limit and were aborted. Zero if all runs ended by
    /// themselves. An aborted run has one more second to release its claim; a claim that is not released by then ends with its
    /// lease.
    #[must_use]
    pub fn aborted(&self) -> usize {
        self.aborted
    }
}

/// Wakes tasks that wait for the end of all runs, and runs that must abort.
#[derive(Default)]
pub(crate) struct Bell {
    idle: Notify,
    abort: Notify,
    aborting: AtomicBool,
}

impl Bell {
    /// Returns the call for the end of the last run.
    pub(crate) fn on_idle(self: &Arc<Self>) -> Option<OnIdle> {
        let bell = Arc::clone(self);
        Some(Box::new(move || bell.idle.notify_waiters()))
    }

    fn abort(&self) {
        self.aborting.store(true, Ordering::SeqCst);
        self.abort.notify_waiters();
    }

    /// Ready when runs must abort.
    pub(crate) async fn aborted(&self) {
        let mut rung = std::pin::pin!(self.abort.notified());
        rung.as_mut().enable();
        if !self.aborting.load(Ordering::SeqCst) {
            rung.await;
        }
    }
}

/// Shuts the gate and waits for the runs under way. Runs that still go on after `limit` are aborted.
pub(crate) async fn drain(gate: &Gate, bell: &Bell, limit: Duration) -> Drained {
    gate.shut();
    if timeout(limit, idle(gate, bell)).await.is_ok() {
        return Drained { aborted: 0 };
    }
    let aborted = gate.runs();
    bell.abort();
    // A store that hangs must not block the shutdown. The lease ends claims that the store did not release.
    let _ = timeout(TO_RELEASE, idle(gate, bell)).await;
    Drained { aborted }
}

async fn idle(gate: &Gate, bell: &Bell) {
    loop {
        let mut rung = std::pin::pin!(bell.idle.notified());
        // Listening begins before the count is read, so that the end of the last run cannot be missed between the two.
        rung.as_mut().enable();
        if gate.runs() == 0 {
            return;
        }
        rung.await;
    }
}
