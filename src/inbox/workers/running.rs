//! Workers at work, and how they end.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower_service::Service;

use super::dispatch::Dispatcher;
use super::hooks::{LostLease, Tried};
use super::settings::{Settings, Workers};
use super::trace;
use crate::error::{BuildError, StoreError};
use crate::inbox::engine::{Engine, Listed};
use crate::layer::{
    Drained, Each, FromDelivery, IntoAnswer, TO_RELEASE, VerifiedBody, inbox_metrics,
};

/// What all tasks of some workers share.
pub(super) struct Shared {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) settings: Settings,
    pub(super) phase: watch::Sender<Phase>,
    /// Handlers under way.
    pub(super) active: AtomicUsize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Work,
    /// Lease no more.
    Stop,
    /// Cut off what is running.
    Abort,
}

impl Workers {
    /// Starts them: each entry goes to a clone of `service`, once that is ready. It is the service that the layer would guard: axum's
    /// `post(on_event)`, an [`EventRouter`](crate::EventRouter)'s `build()`, or any other; without the layer, since what is in the inbox
    /// was verified before it was stored.
    ///
    /// Its request is a POST to `/` with the bytes that were signed, the [`Delivery`](crate::Delivery) in its extensions, and of the
    /// headers `Content-Type` and the `X-Service-` ones but the signature, as far as they are known. How its answer is understood
    /// stands in the [module docs](crate::inbox).
    ///
    /// # Errors
    /// A setting is zero or out of range; the message names it.
    ///
    /// # Panics
    /// Without a tokio runtime that has its timers enabled.
    pub fn start<S, R>(self, service: S) -> Result<RunningWorkers, BuildError>
    where
        S: Service<Request<VerifiedBody>, Response = Response<R>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Send + 'static,
        R: Send + 'static,
    {
        self.check()?;
        let shared = Arc::new(Shared {
            engine: Arc::clone(&self.inbox.engine),
            settings: self.settings,
            phase: watch::Sender::new(Phase::Work),
            active: AtomicUsize::new(0),
        });
        inbox_metrics::begin(&shared.settings.name);
        let task = tokio::spawn(Dispatcher::new(Arc::clone(&shared), service).run());
        Ok(RunningWorkers { shared, task })
    }

    /// As [`start`](Self::start), with a function of one argument, as [`Receiver::handle`](crate::Receiver::handle) takes it: an
    /// [`Event<R>`](crate::Event), a [`Delivery`](crate::Delivery), or your own type. See [`FromDelivery`] and [`IntoAnswer`].
    ///
    /// # Errors
    /// As `start`.
    ///
    /// # Panics
    /// As `start`.
    pub fn start_handler<D, H, F>(self, handler: H) -> Result<RunningWorkers, BuildError>
    where
        D: FromDelivery + 'static,
        H: FnOnce(D) -> F + Clone + Send + 'static,
        F: Future<Output: IntoAnswer> + Send + 'static,
    {
        self.start(Each::new(handler))
    }
}

/// Workers at work.
///
/// Dropped without a [`shutdown`](Self::shutdown) they lease no more; what is running goes on to its end, for as long as the runtime
/// does. Entries that the runtime's end cuts off come back when their leases end, and that try counts.
#[must_use = "dropped, they stop"]
pub struct RunningWorkers {
    shared: Arc<Shared>,
    pub(super) task: JoinHandle<()>,
}

impl RunningWorkers {
    /// Leases nothing more, and waits for the handlers under way. Those that still run after `limit` are aborted, and their entries are
    /// due again at once, in whatever process; the try that was cut off does not count. `Duration::MAX` waits for as long as it takes.
    ///
    /// Returns within a second after `limit`. What the store was not told by then, as where it is down, comes back when its lease ends.
    /// A handler that blocks its thread can't be aborted.
    pub async fn shutdown(mut self, limit: Duration) -> Drained {
        self.shared.phase.send_replace(Phase::Stop);
        if timeout(limit, &mut self.task).await.is_ok() {
            return Drained::after_aborting(0);
        }
        let aborted = self.active();
        self.shared.phase.send_replace(Phase::Abort);
        if timeout(TO_RELEASE, &mut self.task).await.is_err() {
            self.task.abort();
        }
        Drained::after_aborting(aborted)
    }

    /// Handlers under way.
    #[must_use]
    pub fn active(&self) -> usize {
        self.shared.active.load(Ordering::SeqCst)
    }
}

impl Drop for RunningWorkers {
    fn drop(&mut self) {
        self.shared.phase.send_if_modified(|phase| {
            let was_working = *phase == Phase::Work;
            if was_working {
                *phase = Phase::Stop;
            }
            was_working
        });
    }
}

impl Shared {
    pub(super) fn is_working(&self) -> bool {
        *self.phase.borrow() == Phase::Work
    }

    pub(super) fn store_failed(&self, call: &'static str, error: &StoreError) {
        trace::store_failed(call, error);
        inbox_metrics::store_failed(&self.settings.name, call);
    }

    pub(super) fn tried(&self, tried: &Tried, error: Option<&str>) {
        inbox_metrics::tried(&self.settings.name, tried);
        self.settings.hooks.tried(tried, error);
    }

    pub(super) fn buried(&self, listed: &Listed) {
        trace::buried(listed);
        inbox_metrics::buried(&self.settings.name);
        self.settings.hooks.buried(listed);
    }

    /// One whose name nobody can read, so that no hook can be told it.
    pub(super) fn buried_unnamed(&self) {
        inbox_metrics::buried(&self.settings.name);
    }

    pub(super) fn lost(&self, lost: &LostLease) {
        trace::lost(lost);
        inbox_metrics::lost(&self.settings.name);
        self.settings.hooks.lost(lost);
    }
}

impl fmt::Debug for RunningWorkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningWorkers")
            .field("phase", &*self.shared.phase.borrow())
            .field("active", &self.active())
            .finish_non_exhaustive()
    }
}
