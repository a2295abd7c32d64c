//! Running workers, and their shutdown.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hookgate::ConfigError;
use hookgate::layer::{FromDelivery, IntoAnswer, VerifiedBody, handler_service};
use http::{Request, Response};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower_service::Service;

use super::dispatch::Dispatcher;
use super::hooks::Step;
use super::settings::Workers;
use super::state::{Phase, WorkersState};

/// The time that aborted runs get to return their entries.
const TO_RELEASE: Duration = Duration::from_secs(1);

impl Workers {
    /// Starts the workers: each entry goes to a clone of `service`, when that clone is ready. Pass
    /// the service that the layer would guard, without the layer, since deliveries in the inbox
    /// were verified before they were stored. [The crate's page](crate#handling-the-entries)
    /// describes its request, and lists the meaning of each answer.
    ///
    /// # Errors
    /// A setting is zero or out of range; the message names it.
    ///
    /// # Panics
    /// Without a tokio runtime that has its timers enabled.
    pub fn start<S, R>(self, service: S) -> Result<RunningWorkers, ConfigError>
    where
        S: Service<Request<VerifiedBody>, Response = Response<R>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Send + 'static,
        R: Send + 'static,
    {
        self.check()?;
        let shared = Arc::new(WorkersState {
            engine: Arc::clone(&self.inbox.engine),
            settings: self,
            phase: watch::Sender::new(Phase::Work),
            active: Arc::default(),
        });
        shared.tell(Step::Begun);
        let task = tokio::spawn(Dispatcher::new(Arc::clone(&shared), service).run());
        Ok(RunningWorkers { shared, task })
    }

    /// As [`start`](Self::start), with a function of one argument, as
    /// [`Receiver::handle`](hookgate::Receiver::handle) takes it: an [`Event<R>`](hookgate::Event),
    /// a [`Delivery`](hookgate::Delivery), or your own type. See [`FromDelivery`] and
    /// [`IntoAnswer`].
    ///
    /// # Errors
    /// As `start`.
    ///
    /// # Panics
    /// As `start`.
    pub fn start_handler<D, H, F>(self, handler: H) -> Result<RunningWorkers, ConfigError>
    where
        D: FromDelivery + 'static,
        H: FnOnce(D) -> F + Clone + Send + 'static,
        F: Future<Output: IntoAnswer> + Send + 'static,
    {
        self.start(handler_service(handler))
    }
}

/// Workers that are running.
///
/// If they are dropped without a [`shutdown`](Self::shutdown), they lease no more entries; the runs
/// in progress go on to their ends, for as long as the runtime exists. Entries whose runs end with
/// the runtime are due again when their leases end, and those runs count.
#[must_use = "dropped, they stop"]
pub struct RunningWorkers {
    shared: Arc<WorkersState>,
    pub(super) task: JoinHandle<()>,
}

impl RunningWorkers {
    /// Leases no more entries, and waits for the handlers in progress. Handlers that still run
    /// after `limit` are aborted, and their entries are due again at once, in any process; an
    /// aborted run does not count. `Duration::MAX` waits without a limit.
    ///
    /// Returns within a second after `limit`. An entry whose settlement the store did not receive
    /// by then, for example because the store is down, is due again when its lease ends. A handler
    /// that blocks its thread cannot be aborted.
    pub async fn shutdown(mut self, limit: Duration) -> usize {
        self.shared.phase.send_replace(Phase::Stop);
        if timeout(limit, &mut self.task).await.is_ok() {
            return 0;
        }
        let aborted = self.active();
        self.shared.phase.send_replace(Phase::Abort);
        if timeout(TO_RELEASE, &mut self.task).await.is_err() {
            self.task.abort();
        }
        aborted
    }

    /// Returns the number of handlers in progress.
    #[must_use]
    pub fn active(&self) -> usize {
        Arc::strong_count(&self.shared.active) - 1
    }
}

impl Drop for RunningWorkers {
    fn drop(&mut self) {
        if self.shared.is_working() {
            self.shared.phase.send_replace(Phase::Stop);
        }
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
