//! The parts that a replay gives to the app, and what it sees there: the runs of the handler, and
//! the calls of the store.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::{Future, pending};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hookgate::dedupe::{
    ClaimToken, Claimed, EventKey, Ownership, ScopesInUse, StoreError, StoreErrorKind, StoreFuture,
    StoreStats,
};
use hookgate::internal::HandlerCall;
use hookgate::outcome::Failure;
use hookgate::{
    DedupeStore, Delivery, Outcome, Receiver, ReceiverBuilder, WebhookLayer, lookup::Keys,
    verify::Window,
};
use http::Extensions;
use tokio::sync::watch;
use tokio::time::sleep;

use super::clock::ReplayClock;
use super::error::{ReplayError, ReplayErrorKind as Kind};
use super::plan::RunFault;
use super::report::{CommitReport, RunEnd, RunReport, millis};

/// Connects your app to the replay: clock, keys, the probe that sees runs and commits, and the
/// faults. Each process of a replay, and so each call of the closure, gets its own harness.
#[derive(Clone)]
pub struct Harness(pub(super) Arc<Process>);

impl Harness {
    /// Returns the layer of a receiver of these settings: the type that [`Receiver::layer`]
    /// returns, so that the function that makes your router is the same in production and in the
    /// replay.
    ///
    /// Clock and keys are those of the replay, even if the settings have others. The store is
    /// yours, behind the probe. All other settings are as you set them, the hooks included.
    ///
    /// # Errors
    /// `NoDeduplication`, and `Settings` where the receiver can't be built so.
    pub fn layer(&self, settings: ReceiverBuilder) -> Result<WebhookLayer, ReplayError> {
        Ok(self.receiver(settings)?.layer())
    }

    /// Returns a receiver of these settings, for an app that takes a receiver. The handler's runs
    /// and faults are those of its [`layer`](Receiver::layer) and of [`handle`](Receiver::handle).
    /// An app that calls the receiver's steps itself has no faults of the handler, and the replay
    /// sees its commits only.
    ///
    /// # Errors
    /// As [`layer`](Self::layer).
    pub fn receiver(&self, settings: ReceiverBuilder) -> Result<Receiver, ReplayError> {
        let mut has_store = false;
        let [hooks, runs] = [(); 2].map(|()| Arc::clone(&self.0));
        let receiver = settings
            .clock(self.0.clock.clone())
            .for_replay(
                self.0.keys.clone(),
                |inner| {
                    has_store = true;
                    let process = Arc::clone(&self.0);
                    Arc::new(ProbedStore { inner, process })
                },
                move || !hooks.has_ended(),
                move |delivery, extensions, call| runs.call(delivery, extensions, call),
            )
            .build()
            .map_err(|error| ReplayError::new(Kind::Settings).caused_by(error))?;
        if !has_store {
            return Err(ReplayError::new(Kind::NoDeduplication));
        }
        self.0.receivers().push(receiver.clone());
        Ok(receiver)
    }

    /// Returns the clock of the replay, for the app's stores.
    #[must_use]
    pub fn clock(&self) -> ReplayClock {
        self.0.clock.clone()
    }

    /// Returns the number of this process in the replay: 0 for the first, one more with each
    /// restart.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.0.number
    }
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness")
            .field("process", &self.0.number)
            .field("clock", &self.0.clock)
            .finish_non_exhaustive()
    }
}

/// The number of an attempt, carried through the app. The receiver does not read it.
#[derive(Clone, Copy)]
pub(super) struct AttemptNumber(pub(super) usize);

/// A process of the replay. After its end, none of its calls reaches a store, a hook or the handler
/// any more.
pub(super) struct Process {
    /// 0 for the first.
    pub(super) number: u32,
    clock: ReplayClock,
    keys: Keys,
    observed: Arc<Mutex<Observed>>,
    has_ended: watch::Sender<bool>,
    receivers: Mutex<Vec<Receiver>>,
}

/// What all processes of a replay have seen, and what is planned for their handlers.
#[derive(Default)]
pub(super) struct Observed {
    pub(super) events: HashMap<EventKey, ObservedEvent>,
    /// The faults of the runs of an event, in their order.
    pub(super) run_faults: HashMap<EventKey, Vec<RunFault>>,
    /// How long the handler waits in a run that an attempt begins, by the attempt's number.
    pub(super) delays: Vec<Duration>,
}

/// What was seen of one event inside the app.
#[derive(Default)]
pub(super) struct ObservedEvent {
    pub(super) runs: Vec<RunReport>,
    pub(super) commits: Vec<CommitReport>,
    /// The number of commits to which the store answered that the claim was lost.
    pub(super) lost: u32,
    /// The number of commits that the store failed to answer.
    pub(super) unanswered: u32,
    /// The store answered *done* for a body that no claim of this replay had.
    pub(super) done_before: bool,
    granted: Vec<ClaimToken>,
    committed: HashSet<ClaimToken>,
}

impl Process {
    pub(super) fn new(clock: ReplayClock, keys: Keys) -> Self {
        Self {
            number: 0,
            clock,
            keys,
            observed: Arc::default(),
            has_ended: watch::Sender::new(false),
            receivers: Mutex::default(),
        }
    }

    /// Returns the process that begins after this one.
    pub(super) fn next(&self) -> Self {
        Self {
            number: self.number + 1,
            observed: Arc::clone(&self.observed),
            ..Self::new(self.clock.clone(), self.keys.clone())
        }
    }

    /// Returns the window of its receiver; `None` where the closure has made no receiver.
    pub(super) fn window(&self) -> Option<Window> {
        self.receivers().first().map(Receiver::window)
    }

    pub(super) fn end(&self) {
        self.has_ended.send_replace(true);
    }

    /// Waits for the runs under way, as [`Receiver::drain`] does, and lets the receivers go, which
    /// hold this process.
    pub(super) async fn drain(&self, limit: Duration) {
        let receivers = std::mem::take(&mut *self.receivers());
        for receiver in receivers {
            receiver.drain(limit).await;
        }
    }

    pub(super) fn observed(&self) -> MutexGuard<'_, Observed> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receivers(&self) -> MutexGuard<'_, Vec<Receiver>> {
        let receivers = self.receivers.lock();
        receivers.unwrap_or_else(PoisonError::into_inner)
    }

    fn has_ended(&self) -> bool {
        *self.has_ended.borrow()
    }

    /// Awaits the future as long as the process lives. `None` once it has ended: the future is
    /// polled no more.
    async fn until_end<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut ended = self.has_ended.subscribe();
        tokio::select! {
            biased;
            _ = ended.wait_for(|has_ended| *has_ended) => None,
            output = future => Some(output),
        }
    }

    fn event<T>(&self, key: &EventKey, change: impl FnOnce(&mut ObservedEvent) -> T) -> T {
        change(self.observed().events.entry(*key).or_default())
    }

    /// A commit may be repeated until its answer arrives: one claim token counts as one commit.
    fn committed(&self, event: &mut ObservedEvent, token: ClaimToken) {
        if event.committed.insert(token) {
            event.commits.push(CommitReport {
                process: self.number,
                after_ms: millis(self.clock.passed()),
            });
        }
    }

    /// Calls the handler, with the faults of the plan.
    fn call<'a>(
        self: &Arc<Self>,
        delivery: &Delivery,
        extensions: &Extensions,
        call: HandlerCall<'a>,
    ) -> HandlerCall<'a> {
        let attempt = extensions.get::<AttemptNumber>().map(|number| number.0);
        let run = Run::begin(Arc::clone(self), *delivery.key(), attempt);
        let process = Arc::clone(self);
        Box::pin(async move {
            if let Some(outcome) = process.until_end(run.call(call)).await {
                return outcome;
            }
            // The process has ended, and the handler with it, even if the handler would have
            // finished at this very moment.
            pending().await
        })
    }
}

/// A run that has begun. It counts as cut off until its end is known.
struct Run {
    process: Arc<Process>,
    key: EventKey,
    index: usize,
    fault: Option<RunFault>,
    delay: Duration,
}

impl Run {
    fn begin(process: Arc<Process>, key: EventKey, attempt: Option<usize>) -> Self {
        let mut observed = process.observed();
        let delay = attempt.and_then(|number| observed.delays.get(number).copied());
        let event = observed.events.entry(key).or_default();
        let index = event.runs.len();
        event.runs.push(RunReport {
            attempt,
            process: process.number,
            end: RunEnd::Unended,
        });
        let faults = observed.run_faults.get(&key);
        let fault = faults.and_then(|faults| faults.get(index)).copied();
        drop(observed);
        Self {
            process,
            key,
            index,
            fault,
            delay: delay.unwrap_or_default(),
        }
    }

    async fn call(self, call: HandlerCall<'_>) -> Outcome {
        let delay = match self.fault {
            Some(RunFault::Slow(by)) => by.max(self.delay),
            _ => self.delay,
        };
        if !delay.is_zero() {
            sleep(delay).await;
        }
        match self.fault {
            Some(RunFault::Fails) => {
                self.set_end(RunEnd::MadeToFail);
                Outcome::Failed(Failure::Status(500))
            }
            Some(RunFault::Panics) => {
                self.set_end(RunEnd::MadeToPanic);
                // Panics, but without the output of the panic hook.
                resume_unwind(Box::new("a panic that the replay's plan asks for"))
            }
            Some(RunFault::Slow(_)) | None => {
                let outcome = call.await;
                self.set_end(match outcome {
                    Outcome::DeadLettered => RunEnd::DeadLettered,
                    Outcome::Failed(Failure::Panicked) => RunEnd::Panicked,
                    Outcome::Failed(Failure::Status(status)) => RunEnd::Failed(status),
                    Outcome::Failed(Failure::TypeMismatch | Failure::Unhandled) => {
                        RunEnd::Failed(422)
                    }
                    Outcome::Failed(_) => RunEnd::Failed(500),
                    _ => RunEnd::Succeeded,
                });
                outcome
            }
        }
    }

    fn set_end(&self, end: RunEnd) {
        let index = self.index;
        self.process
            .event(&self.key, |event| event.runs[index].end = end);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let index = self.index;
        self.process.event(&self.key, |event| {
            let end = &mut event.runs[index].end;
            if *end == RunEnd::Unended {
                *end = RunEnd::CutOff;
            }
        });
    }
}

/// A store in front of the user's own, which sees each claim and each commit. After the end of its
/// process, no call reaches the user's store.
struct ProbedStore {
    inner: Arc<dyn DedupeStore>,
    process: Arc<Process>,
}

impl ProbedStore {
    async fn ask<'a, T: Unpin>(
        &'a self,
        call: impl FnOnce() -> StoreFuture<'a, T>,
    ) -> Result<T, StoreError> {
        // A store may do its work when it is called, before the first poll.
        let asked = match self.process.has_ended() {
            true => None,
            false => self.process.until_end(call()).await,
        };
        asked.unwrap_or_else(|| {
            let source = std::io::Error::other("the process has ended");
            Err(StoreError::new(StoreErrorKind::Unavailable).caused_by(source))
        })
    }
}

impl DedupeStore for ProbedStore {
    fn claim<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Claimed> {
        StoreFuture::boxed(async move {
            let claimed = self.ask(|| self.inner.claim(key, token, lease)).await;
            self.process.event(key, |event| match &claimed {
                Ok(Claimed::Fresh) => event.granted.push(token),
                // Where the store never answered the commit, this proves that it took effect. Of
                // the claims with this body the last one is taken, since the earlier ones had ended
                // before it was granted.
                Ok(Claimed::Done { body_mark }) => {
                    let mut granted = event.granted.iter().rev();
                    match granted.find(|it| it.body_mark() == *body_mark).copied() {
                        Some(by) => self.process.committed(event, by),
                        None => event.done_before = true,
                    }
                }
                _ => {}
            });
            claimed
        })
    }

    fn renew<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Ownership> {
        StoreFuture::boxed(self.ask(move || self.inner.renew(key, token, lease)))
    }

    fn commit<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        retain: Duration,
    ) -> StoreFuture<'a, Ownership> {
        StoreFuture::boxed(async move {
            let committed = self.ask(|| self.inner.commit(key, token, retain)).await;
            self.process.event(key, |event| match &committed {
                Ok(Ownership::Held) => self.process.committed(event, token),
                Ok(Ownership::Lost) => event.lost += 1,
                Err(_) => event.unanswered += 1,
            });
            committed
        })
    }

    fn release<'a>(&'a self, key: &'a EventKey, token: ClaimToken) -> StoreFuture<'a, Ownership> {
        StoreFuture::boxed(self.ask(move || self.inner.release(key, token)))
    }

    fn observe(&self) -> Option<StoreStats> {
        self.inner.observe()
    }

    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        self.inner.scopes_in_use()
    }
}

impl fmt::Debug for ProbedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
