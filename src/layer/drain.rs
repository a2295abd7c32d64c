//! Shuts down without losing a run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::receiver::Receiver;

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

impl Receiver {
    /// Refuses new deliveries with 503 and waits for the runs under way. Runs that still go on after `limit` are aborted and
    /// their claims released, so that a retry can claim the events at once. `Duration::MAX` waits without a limit.
    ///
    /// Call it at shutdown, when the server takes no more connections: `axum::serve` returns when its connections have ended,
    /// but runs that outlived their requests still go on. It cannot be undone: a drained receiver stays shut.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use std::time::Duration;
    /// use hookgate::{MemoryStore, Receiver, Secret};
    ///
    /// let receiver = Receiver::builder()
    ///     .secret(Secret::new("whsec_made_up_for_this_example")?)
    ///     .store(MemoryStore::default())
    ///     .build()?;
    /// // axum::serve(listener, app).with_graceful_shutdown(signal).await?;
    /// assert_eq!(receiver.drain(Duration::from_secs(30)).await.aborted(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn drain(&self, limit: Duration) -> Drained {
        self.shared.gate.shut();
        if timeout(limit, self.idle()).await.is_ok() {
            return Drained { aborted: 0 };
        }
        let aborted = self.runs();
        self.shared.gate.bell.abort();
        // A store that hangs must not block the shutdown. The lease ends claims that the store did not release.
        let _ = timeout(TO_RELEASE, self.idle()).await;
        Drained { aborted }
    }

    async fn idle(&self) {
        loop {
            let mut rung = std::pin::pin!(self.shared.gate.bell.idle.notified());
            // Listening begins before the count is read, so that the end of the last run cannot be missed between the two.
            rung.as_mut().enable();
            if self.runs() == 0 {
                return;
            }
            rung.await;
        }
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
    /// Called when the last run has ended.
    pub(crate) fn ring_idle(&self) {
        self.idle.notify_waiters();
    }

    fn abort(&self) {
        self.aborting.store(true, Ordering::SeqCst);
        self.abort.notify_waiters();
    }

    /// Ready when runs must abort.
    pub(super) async fn aborted(&self) {
        let mut rung = std::pin::pin!(self.abort.notified());
        rung.as_mut().enable();
        if !self.aborting.load(Ordering::SeqCst) {
            rung.await;
        }
    }
}
