//! Shuts down without losing a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::pipeline::{Gate, OnIdle};

/// The time that aborted runs get to release their claims.
const TO_RELEASE: Duration = Duration::from_secs(1);

/// Wakes tasks that wait for the end of all runs, and runs that must abort.
#[derive(Default)]
pub(crate) struct ShutdownSignal {
    idle: Notify,
    abort: Notify,
    aborting: AtomicBool,
}

impl ShutdownSignal {
    /// Returns the call for the end of the last run.
    pub(crate) fn on_idle(self: &Arc<Self>) -> Option<OnIdle> {
        let shutdown = Arc::clone(self);
        Some(Box::new(move || shutdown.idle.notify_waiters()))
    }

    fn abort(&self) {
        self.aborting.store(true, Ordering::SeqCst);
        self.abort.notify_waiters();
    }

    /// Ready when runs must abort.
    pub(crate) async fn aborted(&self) {
        let mut notified = std::pin::pin!(self.abort.notified());
        notified.as_mut().enable();
        if !self.aborting.load(Ordering::SeqCst) {
            notified.await;
        }
    }
}

/// Shuts the gate and waits for the runs under way. Runs that still go on after `limit` are aborted. Returns their
/// number.
pub(crate) async fn drain(gate: &Gate, shutdown: &ShutdownSignal, limit: Duration) -> usize {
    gate.shut();
    if timeout(limit, idle(gate, shutdown)).await.is_ok() {
        return 0;
    }
    let aborted = gate.runs();
    shutdown.abort();
    // A store that hangs must not block the shutdown. The lease ends claims that the store did not release.
    let _ = timeout(TO_RELEASE, idle(gate, shutdown)).await;
    aborted
}

async fn idle(gate: &Gate, shutdown: &ShutdownSignal) {
    loop {
        let mut notified = std::pin::pin!(shutdown.idle.notified());
        // Listening begins before the count is read, so that the end of the last run cannot be missed between the two.
        notified.as_mut().enable();
        if gate.runs() == 0 {
            return;
        }
        notified.await;
    }
}
