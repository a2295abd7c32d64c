//! Runs a plan: one loop that sends due deliveries, takes answers, tries again as the sender would, and ends processes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use hookgate::{RetrySchedule, UnixSeconds, Window};
use http::Response;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::sleep;

use super::ReplayError;
use super::attempt::{Heard, Unanswered, deliver};
use super::clock::ReplayClock;
use super::entry::Entry;
use super::harness::{Harness, Process};
use super::ledger::{Label, Ledger, millis};
use super::plan::{Plan, Planned, at};
use super::report::{AttemptReport, Origin};
use crate::transport::{Transport, TransportError};

/// A process that runs, and the transport to its app.
pub(super) struct Running<T> {
    pub(super) transport: T,
    pub(super) process: Arc<Process>,
}

/// The values that do not change while a plan runs.
pub(super) struct Stage<'a> {
    pub(super) entries: &'a [Entry],
    pub(super) clock: ReplayClock,
    pub(super) begin: UnixSeconds,
    pub(super) window: Window,
    pub(super) schedule: RetrySchedule,
    /// Retries are signed for the moment at which they are sent.
    pub(super) signs_retries: bool,
    pub(super) retries: bool,
    /// In real time: the longest wait that is not cut short.
    pub(super) longest_wait: Option<Duration>,
    pub(super) ledger: Arc<Ledger>,
}

/// A replay under way.
pub(super) struct Drive<'a, T, F> {
    stage: Stage<'a>,
    make: F,
    running: Running<T>,
    queue: BinaryHeap<Reverse<Due>>,
    tasks: JoinSet<Result<Response<Bytes>, Unanswered>>,
    under_way: HashMap<Id, Sent>,
    attempts: Vec<Option<AttemptReport>>,
    queued: usize,
}

/// A due action and its time. Actions that are due at one moment run in the order in which they were queued.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Duration,
    order: usize,
    what: What,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Deliver(usize),
    Restart,
}

/// A delivery that is not yet sent.
struct Waiting {
    planned: Planned,
    /// 1 for the first attempt.
    attempt: u32,
}

/// A delivery that has no answer yet.
struct Sent {
    planned: Planned,
    attempt: u32,
    label: Label,
    report: AttemptReport,
}

enum Next {
    Due,
    Ended(Result<(Id, Result<Response<Bytes>, Unanswered>), JoinError>),
    Over,
}

/// The attempts of the replay, and its last process.
pub(super) struct Played {
    pub(super) attempts: Vec<AttemptReport>,
    pub(super) process: Arc<Process>,
}

impl<'a, T, F> Drive<'a, T, F>
where
    T: Transport,
    F: FnMut(Harness) -> Result<Running<T>, ReplayError>,
{
    pub(super) fn new(stage: Stage<'a>, running: Running<T>, make: F) -> Self {
        Self {
            stage,
            make,
            running,
            queue: BinaryHeap::new(),
            tasks: JoinSet::new(),
            under_way: HashMap::new(),
            attempts: Vec::new(),
            queued: 0,
        }
    }

    pub(super) async fn play(mut self, mut plan: Plan) -> Result<Played, ReplayError> {
        self.stage.ledger.follow(&mut plan);
        let mut waiting: Vec<_> = plan.deliveries.into_iter().map(Waiting::first).collect();
        for (index, delivery) in waiting.iter().enumerate() {
            self.queue(delivery.planned.due, What::Deliver(index));
        }
        for due in plan.restarts {
            self.queue(due, What::Restart);
        }
        loop {
            match self.next().await {
                Next::Over => break,
                Next::Due => match self.queue.pop() {
                    Some(Reverse(Due {
                        what: What::Deliver(index),
                        ..
                    })) => self.send(&waiting[index]),
                    Some(_) => self.restart(&mut waiting).await?,
                    None => {}
                },
                Next::Ended(ended) => {
                    let (id, answer) = match ended {
                        Ok((id, answer)) => (id, answer.map_err(Some)),
                        Err(error) => (error.id(), Err(None)),
                    };
                    if let Some(sent) = self.under_way.remove(&id) {
                        self.hear(sent, answer, &mut waiting);
                    }
                }
            }
        }
        self.running.process.comes_to_rest().await;
        Ok(Played {
            attempts: self.attempts.into_iter().flatten().collect(),
            process: self.running.process,
        })
    }

    fn queue(&mut self, at: Duration, what: What) {
        let order = self.queued;
        self.queued += 1;
        self.queue.push(Reverse(Due { at, order, what }));
    }

    /// Waits for the first of these: an answer, or the moment at which an action is due.
    async fn next(&mut self) -> Next {
        let due = self.queue.peek().map(|Reverse(due)| due.at);
        let Some(due) = due else {
            return match self.tasks.join_next_with_id().await {
                Some(ended) => Next::Ended(ended),
                None => Next::Over,
            };
        };
        let left = due.saturating_sub(self.stage.clock.passed());
        if left.is_zero() {
            // An answer that is here by now came before the due action.
            return match self.tasks.try_join_next_with_id() {
                Some(ended) => Next::Ended(ended),
                None => Next::Due,
            };
        }
        let waited_for = self.stage.longest_wait.map_or(left, |most| most.min(left));
        let mut alarm = pin!(sleep(waited_for));
        let tasks = &mut self.tasks;
        let ended = poll_fn(|context| {
            if let Poll::Ready(Some(ended)) = tasks.poll_join_next_with_id(context) {
                return Poll::Ready(Some(ended));
            }
            alarm.as_mut().poll(context).map(|()| None)
        });
        match ended.await {
            Some(ended) => Next::Ended(ended),
            None => {
                self.stage.clock.skip(left - waited_for);
                Next::Due
            }
        }
    }

    fn send(&mut self, waiting: &Waiting) {
        let Waiting { planned, attempt } = waiting;
        let entry = &self.stage.entries[planned.entry];
        let passed = self.stage.clock.passed();
        let is_retry = *attempt > 1;
        let afresh = entry.resigned || (is_retry && self.stage.signs_retries);
        let signed_at = match (afresh && entry.secret.is_some(), is_retry) {
            (false, _) => None,
            (true, true) if self.stage.signs_retries => Some(at(self.stage.begin, passed)),
            (true, _) => Some(at(self.stage.begin, planned.sent)),
        };
        // The faults of the plan fall on a delivery's first attempt only.
        let (slow, patience) = if is_retry {
            (Duration::ZERO, None)
        } else {
            (planned.slow, planned.patience)
        };
        let label = self.stage.ledger.attempt(slow);
        let mut request = entry.request(signed_at);
        request.extensions_mut().insert(label);
        let patience = patience.unwrap_or(self.stage.schedule.attempt_timeout());
        let transport = self.running.transport.clone();
        let task = self.tasks.spawn(deliver(transport, request, patience));

        let timestamp = signed_at.or(entry.timestamp);
        let now = at(self.stage.begin, passed);
        let as_logged = planned.copy == 0 && !is_retry;
        let recorded = entry.recorded.as_ref().filter(|_| as_logged);
        let faults = planned.faults.iter().filter(|_| !is_retry);
        let report = AttemptReport {
            number: label.0,
            line: entry.line,
            origin: match (planned.copy, *attempt) {
                (0, 1) => Origin::Logged,
                (copy, 1) => Origin::Copy(copy),
                (_, attempt) => Origin::Retry(attempt),
            },
            after_ms: millis(passed),
            process: self.running.process.number,
            status: None,
            outcome: String::new(),
            reason: None,
            faults: faults.map(|&fault| fault.to_owned()).collect(),
            outside_window: timestamp
                .is_some_and(|timestamp| self.stage.window.check(timestamp, now).is_err()),
            logged_status: recorded.map(|(status, _)| *status),
            logged_outcome: recorded.map(|(_, outcome)| outcome.clone()),
        };
        let sent = Sent {
            planned: planned.clone(),
            attempt: *attempt,
            label,
            report,
        };
        self.attempts.push(None);
        self.under_way.insert(task.id(), sent);
    }

    /// Records an answer, or that there was none, and tries again where the sender would.
    fn hear(&mut self, sent: Sent, answer: Heard, waiting: &mut Vec<Waiting>) {
        let mut report = sent.report;
        report.takes(answer);
        let success = report.is_success();
        self.attempts[sent.label.0] = Some(report);
        if success || !self.stage.retries || !sent.planned.retried {
            return;
        }
        let waits = self.stage.schedule.waits();
        let wait = usize::try_from(sent.attempt - 1)
            .ok()
            .and_then(|at| waits.get(at));
        if let Some(wait) = wait {
            let due = self.stage.clock.passed().saturating_add(*wait);
            waiting.push(Waiting {
                planned: sent.planned,
                attempt: sent.attempt + 1,
            });
            self.queue(due, What::Deliver(waiting.len() - 1));
        }
    }

    /// Ends the process, and begins another.
    async fn restart(&mut self, waiting: &mut Vec<Waiting>) -> Result<(), ReplayError> {
        let old = Arc::clone(&self.running.process);
        // This comes first, so that a future that is dropped now can have no effect any more.
        old.life.end();
        self.tasks.abort_all();
        let mut cut = Vec::new();
        while let Some(ended) = self.tasks.join_next_with_id().await {
            match ended {
                // Answered at this very moment.
                Ok((id, answer)) => cut.push((id, answer.map_err(Some))),
                Err(error) if error.is_panic() => cut.push((error.id(), Err(None))),
                Err(error) => {
                    let lost: TransportError = "the process has ended".into();
                    cut.push((error.id(), Err(Some(Unanswered::Failed(lost)))));
                }
            }
        }
        old.is_killed().await;
        for (id, answer) in cut {
            if let Some(sent) = self.under_way.remove(&id) {
                self.hear(sent, answer, waiting);
            }
        }
        let harness = Harness::new(
            old.number + 1,
            old.clock.clone(),
            old.keys.clone(),
            Arc::clone(&old.ledger),
        );
        self.running = (self.make)(harness)?;
        Ok(())
    }
}

impl Waiting {
    fn first(planned: Planned) -> Self {
        Self {
            planned,
            attempt: 1,
        }
    }
}
