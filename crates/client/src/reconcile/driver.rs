//! The driver: makes the planner's requests, and has the findings handled.

mod settle;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::{Future, pending, poll_fn, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

use hookgate::{
    DedupeStore,
    dedupe::StoreError,
    event::{DataModelId, RowId},
};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::claims::{Claims, RETAIN};
use super::finding::Reconciled;
use super::mirror::{Mirror, Mirrored};
use super::planner::Planner;
use super::report::{ReconcileError, Report};
use super::source::RowSource;
use super::steps::{Pass, Settings, Step};

/// A deleted row's state is kept for so many complete passes at least.
const KEPT_PASSES: usize = 3;
/// The passes that follow a request: a deletion is found in the third.
const PASSES: u32 = 3;

/// Compares a data model's rows with the mirror, pass by pass, and gives the findings to a handler.
///
/// Keep it between passes: a creation or update is found in the second pass that sees it, a
/// deletion in the third. A handled finding is written to the mirror. If the handler fails, the
/// next pass finds the row again.
pub struct Reconcile<S, M> {
    source: S,
    mirror: M,
    planner: Planner,
    settings: Settings,
    claims: Option<Claims>,
    on_progress: Option<OnProgress>,
    requests: PassRequests,
    /// Stays so where the future of a pass is dropped.
    is_under_way: bool,
    /// When the last complete passes began.
    complete: VecDeque<Instant>,
}

type OnProgress = Box<dyn Fn(&Pass) + Send + Sync>;

impl<S: RowSource, M: Mirror> Reconcile<S, M> {
    /// Makes a reconciliation of this data model's rows.
    pub fn new(source: S, mirror: M, model: &str, settings: Settings) -> Self {
        #[cfg(feature = "metrics")]
        super::metrics::describe();
        Self {
            source,
            mirror,
            planner: Planner::new(model.into(), settings.clone()),
            settings,
            claims: None,
            on_progress: None,
            requests: PassRequests::default(),
            is_under_way: false,
            complete: VecDeque::new(),
        }
    }

    /// Claims each finding before it is handled: replicas with the same store and scope handle it
    /// once. The scope is, for example, the program's name. Without this call several replicas may
    /// handle one finding. A claim lasts 60 s, and is renewed while the handler runs; this needs a
    /// tokio runtime with time.
    ///
    /// The claims do not collide with those of events: the same store can be used for both.
    #[must_use]
    pub fn claims(mut self, store: impl DedupeStore, scope: &str) -> Self {
        self.claims = Some(Claims::new(store, scope));
        self
    }

    /// Calls this function after each page, with the progress of the pass.
    #[must_use]
    pub fn on_progress(mut self, on_progress: impl Fn(&Pass) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Box::new(on_progress));
        self
    }

    /// Begins the first pass at this offset, at which an earlier process was stopped. That pass
    /// counts for no deletion.
    #[must_use]
    pub fn resume_at(mut self, offset: u64) -> Self {
        self.planner = self.planner.resuming(offset);
        self
    }

    /// Returns a handle that requests passes, for example in the hook `on_ordered` of hookgate's
    /// order guard.
    #[must_use]
    pub fn requests(&self) -> PassRequests {
        self.requests.clone()
    }

    /// Waits until a [requested](PassRequests::ask) pass is due. Each pass that begins counts as
    /// one of the requested passes, even if it fails. Wait between passes yourself, so that the
    /// first retries of an event, 1 and 6 minutes after it, come before its repair.
    ///
    /// ```no_run
    /// # use hookgate_client::reconcile::{Mirror, Reconcile, RowSource};
    /// # async fn example(mut reconcile: Reconcile<impl RowSource, impl Mirror>) {
    /// loop {
    ///     // Each hour, and when it was requested.
    ///     let _ = tokio::time::timeout(std::time::Duration::from_secs(3_600), reconcile.asked()).await;
    ///     if let Err(error) = reconcile.pass(async |_| Ok::<_, String>(())).await {
    ///         eprintln!("{error}");
    ///     }
    ///     tokio::time::sleep(std::time::Duration::from_secs(7 * 60)).await;
    /// }
    /// # }
    /// ```
    pub async fn asked(&self) {
        self.requests.asked().await;
    }

    /// Makes one pass. If its future is dropped, as by a timeout, the pass counts as stopped: see
    /// [`pass_until`](Self::pass_until).
    ///
    /// # Errors
    /// See [`ReconcileError`].
    pub async fn pass<F, E>(
        &mut self,
        handle: impl FnMut(Reconciled) -> F,
    ) -> Result<Report, ReconcileError<S::Error>>
    where
        F: Future<Output = Result<(), E>>,
        E: fmt::Display,
    {
        self.pass_until(pending(), handle).await
    }

    /// Makes one pass, or continues a stopped pass, until `stop` is ready. Then it makes no more
    /// requests, and ends after the present finding. A later pass finds the remaining rows. A
    /// stopped pass counts for no deletion.
    ///
    /// Each finding is passed to `handle`, also [unresolved](Reconciled::Unresolved) findings.
    ///
    /// # Errors
    /// See [`ReconcileError`].
    pub async fn pass_until<F, E>(
        &mut self,
        stop: impl Future<Output = ()>,
        mut handle: impl FnMut(Reconciled) -> F,
    ) -> Result<Report, ReconcileError<S::Error>>
    where
        F: Future<Output = Result<(), E>>,
        E: fmt::Display,
    {
        self.requests.begin();
        if self.is_under_way {
            self.planner.interrupt();
        }
        self.is_under_way = true;
        let mut stop = pin!(stop);
        let mut report = Report {
            pass: Pass::default(),
            handled: 0,
            elsewhere: 0,
            failed: 0,
            last_error: None,
            stopped_at: None,
        };
        let ended = self.steps(stop.as_mut(), &mut handle, &mut report).await;
        if ended.is_err() {
            self.planner.give_up();
        }
        self.is_under_way = false;
        ended.map(|()| report)
    }

    async fn steps<F, E>(
        &mut self,
        mut stop: Pin<&mut impl Future<Output = ()>>,
        handle: &mut impl FnMut(Reconciled) -> F,
        report: &mut Report,
    ) -> Result<(), ReconcileError<S::Error>>
    where
        F: Future<Output = Result<(), E>>,
        E: fmt::Display,
    {
        let model = self.planner.model_id().clone();
        let began = Instant::now();
        loop {
            let findings = match self.planner.step() {
                Step::Done(pass) => {
                    if pass.is_complete && !self.settings.is_filling {
                        #[cfg(feature = "metrics")]
                        super::metrics::pass(model.as_str(), &pass);
                        self.forget(&model, began).await;
                    }
                    report.pass = pass;
                    return Ok(());
                }
                Step::List { after, limit } => {
                    let listed = self.mirror.list(&model, after.as_ref(), limit).await?;
                    self.planner.listed(listed);
                    continue;
                }
                Step::Model => {
                    let Some(columns) = before(stop.as_mut(), self.source.columns(&model)).await
                    else {
                        self.stop(report);
                        return Ok(());
                    };
                    let columns = columns.map_err(|error| self.failure(error))?;
                    self.planner.model(columns);
                    continue;
                }
                Step::Page { offset, limit } => {
                    let Some(page) =
                        before(stop.as_mut(), self.source.page(&model, offset, limit)).await
                    else {
                        self.stop(report);
                        return Ok(());
                    };
                    let page = page.map_err(|error| self.failure(error))?;
                    let rows = page.total.unwrap_or(page.rows.len() as u64);
                    if self.planner.is_unfilled(rows) {
                        return Err(ReconcileError::EmptyMirror);
                    }
                    let ids: Vec<_> = page.rows.iter().map(|row| row.id.clone()).collect();
                    let known = self.states(&model, &ids).await?;
                    let findings = self.planner.page(&page, &known);
                    if let Some(on_progress) = &self.on_progress {
                        on_progress(&self.planner.pass());
                    }
                    findings
                }
                Step::Absent(rows) => {
                    let known = self.states(&model, &rows).await?;
                    self.planner.absent(&known)
                }
            };
            for finding in findings {
                if before(stop.as_mut(), ready(())).await.is_none() {
                    self.stop(report);
                    return Ok(());
                }
                self.settle(finding, handle, report).await?;
            }
        }
    }

    fn failure(&self, error: S::Error) -> ReconcileError<S::Error> {
        if self.source.is_no_model(&error) {
            ReconcileError::NoModel(error)
        } else {
            ReconcileError::Source(error)
        }
    }

    /// Forgets the rows that were deleted long ago, after a complete pass that began then.
    async fn forget(&mut self, model: &DataModelId, began: Instant) {
        self.complete.push_back(began);
        if self.complete.len() > KEPT_PASSES {
            self.complete.pop_front();
        }
        let Some(first) = self
            .complete
            .front()
            .filter(|_| self.complete.len() == KEPT_PASSES)
        else {
            return;
        };
        let age = self.settings.keep_deleted.max(RETAIN).max(first.elapsed());
        // The pass is complete also where this fails: the next one tries again.
        let _ = self.mirror.forget(model, age).await;
    }

    fn stop(&mut self, report: &mut Report) {
        report.pass = self.planner.pass();
        report.pass.is_complete = false;
        report.stopped_at = Some(self.planner.interrupt());
    }

    async fn states(
        &self,
        model: &DataModelId,
        rows: &[RowId],
    ) -> Result<HashMap<RowId, Mirrored>, StoreError> {
        Ok(self.mirror.get(model, rows).await?.into_iter().collect())
    }
}

/// Requests passes of a reconciliation; made by [`Reconcile::requests`]. Clones belong to the same
/// reconciliation.
#[derive(Clone, Debug, Default)]
pub struct PassRequests(Arc<Requested>);

#[derive(Debug, Default)]
struct Requested {
    passes: AtomicU32,
    changed: Notify,
}

impl PassRequests {
    /// Requests three passes, because a deletion is found in the third. Requests before the next
    /// pass count as one. It does not wait, so it can be called in a hook.
    pub fn ask(&self) {
        self.0.passes.store(PASSES, Ordering::SeqCst);
        self.0.changed.notify_one();
    }

    /// A pass begins.
    fn begin(&self) {
        let less = |passes: u32| Some(passes.saturating_sub(1));
        let _ = self
            .0
            .passes
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
    }

    async fn asked(&self) {
        while self.0.passes.load(Ordering::SeqCst) == 0 {
            self.0.changed.notified().await;
        }
    }
}

/// Waits for the request, unless it is time to stop.
async fn before<T>(
    mut stop: Pin<&mut impl Future<Output = ()>>,
    request: impl Future<Output = T>,
) -> Option<T> {
    let mut request = pin!(request);
    poll_fn(|context| match stop.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => request.as_mut().poll(context).map(Some),
    })
    .await
}

impl<S, M: fmt::Debug> fmt::Debug for Reconcile<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconcile")
            .field("planner", &self.planner)
            .field("mirror", &self.mirror)
            .finish_non_exhaustive()
    }
}
