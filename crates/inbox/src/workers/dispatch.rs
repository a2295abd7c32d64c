//! Leases entries and starts their runs: never more than may run at once.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hookgate::layer::VerifiedBody;
use http::{Request, Response};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tower_service::Service;

use super::backoff::Backoff;
use super::hooks::{DeadEntry, Step};
use super::job::{give_back, work};
use super::state::{Phase, WorkersState, call_store};
use crate::engine::{Batch, Job, LeaseRequest};
use crate::entry::EntryId;

/// The most time that a lease call may take: if its answer is lost, the leased entries wait until
/// their leases end.
const LEASE_CALL: Duration = Duration::from_secs(30);
/// The least time between two lease calls if the first returned fewer entries than there were free
/// places.
const LEAST_PAUSE: Duration = Duration::from_millis(20);

pub(super) struct Dispatcher<S> {
    shared: Arc<WorkersState>,
    service: S,
    /// The runs. Each returns when its entry is due again, if it is.
    running: JoinSet<Option<Instant>>,
    entries: HashMap<Id, EntryId>,
    /// When the first of the entries that failed here is due again.
    due: Option<Instant>,
}

/// Listens from now on: called before a lease, so that no signal between the lease and the wait is
/// lost. A signal from before is used up, since the lease finds what it was about.
pub(crate) fn listen(changed: &Notify) -> Pin<Box<Notified<'_>>> {
    loop {
        let mut listening = Box::pin(changed.notified());
        if !listening.as_mut().enable() {
            return listening;
        }
    }
}

impl<S, R> Dispatcher<S>
where
    S: Service<Request<VerifiedBody>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    R: Send + 'static,
{
    pub(super) fn new(shared: Arc<WorkersState>, service: S) -> Self {
        Self {
            shared,
            service,
            running: JoinSet::new(),
            entries: HashMap::new(),
            due: None,
        }
    }

    /// Works until the workers must stop, and then until all runs have ended. A store that fails
    /// never ends it.
    pub(super) async fn run(mut self) {
        let pause = Backoff::exponential(Duration::from_millis(100), Duration::from_secs(5));
        let mut failures = 0_u32;
        while self.shared.is_working() {
            // Takes all runs that have ended by now, so that one lease fills all their places: each
            // lease waits for a commit.
            while let Some(ended) = self.running.try_join_next_with_id() {
                self.note(ended);
            }
            let free = self.shared.settings.concurrency - self.running.len();
            if free == 0 {
                self.next(None, None).await;
                continue;
            }
            let shared = Arc::clone(&self.shared);
            let listening = listen(shared.engine.changed());
            let asked = Instant::now();
            self.due = self.due.filter(|due| *due > asked);
            let lease_request = self.lease_request(free);
            // Not cut off when the workers must stop: the entries that the call leases must be
            // returned.
            let limit = shared.settings.lease.min(LEASE_CALL);
            match call_store(limit, || shared.engine.lease(lease_request)).await {
                Ok(batch) => {
                    failures = 0;
                    self.take(batch, free, asked, listening).await;
                }
                Err(error) => {
                    drop(listening);
                    failures = failures.saturating_add(1);
                    self.shared.tell(Step::StoreFailed("lease", &error));
                    let until = Instant::now() + pause.draw(failures);
                    while self.shared.is_working() && Instant::now() < until {
                        self.next(Some(until), None).await;
                    }
                }
            }
        }
        while let Some(ended) = self.running.join_next_with_id().await {
            self.note(ended);
        }
    }

    fn lease_request(&self, most: usize) -> LeaseRequest {
        let settings = &self.shared.settings;
        LeaseRequest {
            most,
            lease: settings.lease,
            max_tries: settings.max_tries,
            run_within: settings.run_within(),
            serial_by_row: settings.serial_by_row,
            except: self.entries.values().copied().collect(),
        }
    }

    /// Starts the leased entries, and waits until more entries may be due.
    async fn take(
        &mut self,
        batch: Batch,
        free: usize,
        asked: Instant,
        mut listening: Pin<Box<Notified<'_>>>,
    ) {
        for listed in &batch.dead_lettered {
            let entry = DeadEntry::from(listed);
            self.shared.tell(Step::DeadLettered(&entry));
        }
        let leased = batch.jobs.len();
        for job in batch.jobs {
            self.begin(job, asked);
        }
        if leased >= free {
            // More may be due: for other workers of this process, if any has room.
            drop(listening);
            self.shared.engine.changed().notify_one();
            return;
        }
        let settings = &self.shared.settings;
        let (poll, serial) = (settings.poll, settings.serial_by_row);
        let known = batch.next_in.map_or(poll, |next| next.min(poll));
        let until = asked + known.max(LEAST_PAUSE);
        while self.shared.is_working() {
            let until = self.due.map_or(until, |due| due.min(until));
            let has_run_ended = self.next(Some(until), Some(&mut listening)).await;
            // The end of a run may free its row for another event. Without `serial_by_row`, all due
            // entries were leased already.
            if serial || !has_run_ended {
                return;
            }
        }
    }

    fn begin(&mut self, job: Job, asked: Instant) {
        let (id, shared) = (job.id, Arc::clone(&self.shared));
        let task = if shared.is_working() {
            let service = self.service.clone();
            self.running.spawn(work(shared, service, job, asked))
        } else {
            self.running.spawn(give_back(shared, job))
        };
        self.entries.insert(task.id(), id);
    }

    /// Waits for the end of a run, this time, a signal that entries may be due, or the order to
    /// stop. Returns whether a run has ended.
    async fn next(
        &mut self,
        until: Option<Instant>,
        mut listening: Option<&mut Pin<Box<Notified<'_>>>>,
    ) -> bool {
        let mut timer = pin!(until.map(sleep_until));
        let mut phase = self.shared.phase.subscribe();
        let mut stopped = pin!(phase.wait_for(|phase| *phase != Phase::Work));
        let running = &mut self.running;
        let ended = poll_fn(|context| {
            // An empty set returns `Ready(None)`, which is not the end of a run.
            if let Poll::Ready(Some(ended)) = running.poll_join_next_with_id(context) {
                return Poll::Ready(Some(ended));
            }
            if let Some(listening) = &mut listening
                && listening.as_mut().poll(context).is_ready()
            {
                return Poll::Ready(None);
            }
            if let Some(timer) = timer.as_mut().as_pin_mut()
                && timer.poll(context).is_ready()
            {
                return Poll::Ready(None);
            }
            stopped.as_mut().poll(context).map(|_| None)
        });
        let ended = ended.await;
        let has_run_ended = ended.is_some();
        if let Some(ended) = ended {
            self.note(ended);
        }
        has_run_ended
    }

    fn note(&mut self, ended: Result<(Id, Option<Instant>), JoinError>) {
        // No task here panics, and none is cancelled; if one were, its entry would be leased again
        // when its lease ends.
        let (task, due) = ended.unwrap_or_else(|error| (error.id(), None));
        self.entries.remove(&task);
        self.due = [self.due, due].into_iter().flatten().min();
    }
}
