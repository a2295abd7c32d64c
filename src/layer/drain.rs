//! Shutting down without losing a run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::receiver::Receiver;

/// How long aborted runs get to release their claims.
pub(crate) const TO_RELEASE: Duration = Duration::from_secs(1);

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    aborted: usize,
}

impl Drained {
    #[cfg(feature = "inbox")]
    pub(crate) fn after_aborting(aborted: usize) -> Self {
        Self { aborted }
    }

    /// Runs that were under way when the time was up, and were told to end and release. Zero where all ended by
    /// themselves. What a store did not release in another second, its lease does.
    #[must_use]
    pub fn aborted(&self) -> usize {
        self.aborted
    }
}

impl Receiver {
    /// Refuses new deliveries with 503 and waits for the runs under way; those that are still running after `limit` are
    /// aborted and their claims released, so that a retry finds them free at once. `Duration::MAX` waits for as long as it takes.
    ///
    /// Call it at shutdown, once the server takes no more connections: `axum::serve` returns when its connections have
    /// ended, while runs that outlived their requests still go on. There is no way back: a drained receiver stays shut.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use std::time::Duration;
    /// use hookgate::{LocalStore, Receiver, Secret};
    ///
    /// let receiver = Receiver::builder()
    ///     .secret(Secret::new("whsec_made_up_for_this_example")?)
    ///     .store(LocalStore::default())
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
        // A store that hangs must not hang the shutdown; the lease covers what it did not release.
        let _ = timeout(TO_RELEASE, self.idle()).await;
        Drained { aborted }
    }

    async fn idle(&self) {
        loop {
            let mut rung = std::pin::pin!(self.shared.gate.bell.idle.notified());
            // Listening begins before the count is read, so that the last run's end can't slip in between.
            rung.as_mut().enable();
            if self.runs() == 0 {
                return;
            }
            rung.await;
        }
    }
}

/// Wakes who waits for the end of runs, and runs that are told to end.
#[derive(Default)]
pub(crate) struct Bell {
    idle: Notify,
    abort: Notify,
    aborting: AtomicBool,
}

impl Bell {
    /// The last run has ended.
    pub(crate) fn ring_idle(&self) {
        self.idle.notify_waiters();
    }

    fn abort(&self) {
        self.aborting.store(true, Ordering::SeqCst);
        self.abort.notify_waiters();
    }

    /// Ends once runs are to be aborted.
    pub(super) async fn aborted(&self) {
        let mut rung = std::pin::pin!(self.abort.notified());
        rung.as_mut().enable();
        if !self.aborting.load(Ordering::SeqCst) {
            rung.await;
        }
    }
}
