//! Runs a plan: one loop that sends due deliveries, takes answers, sends retries as the sender would, and ends processes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use hookgate::{clock::UnixSeconds, dedupe::RetrySchedule, verify::Window};
use http::Response;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::sleep;

use super::ReplayError;
use super::attempt::{AttemptResult, Unanswered, deliver};
use super::clock::ReplayClock;
use super::entry::Entry;
use super::harness::Harness;
use super::observations::{AttemptNumber, Observations, millis};
use super::plan::{Plan, Planned, at};
use super::process::Process;
use super::report::{AttemptReport, Origin};
use crate::transport::{Transport, TransportError};

/// A process that runs, and the transport to its app.
pub(super) struct Running<T> {
    pub(super) transport: T,
    pub(super) process: Arc<Process>,
}

/// The values that do not change while a plan runs.
pub(super) struct RunnerSettings<'a> {
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
    pub(super) observations: Arc<Observations>,
}

/// A replay that runs.
pub(super) struct Runner<'a, T, F> {
    settings: RunnerSettings<'a>,
    make: F,
    running: Running<T>,
    queue: BinaryHeap<Reverse<Due>>,
    tasks: JoinSet<Result<Response<Bytes>, Unanswered>>,
    in_flight: HashMap<Id, InFlight>,
    attempts: Vec<Option<AttemptReport>>,
    next_order: usize,
}

/// A due action and its time. Actions that are due at one moment run in the order in which they were queued.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Duration,
    order: usize,
    action: Action,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Deliver(usize),
    Restart,
}

/// A delivery that is not yet sent.
struct QueuedAttempt {
    planned: Planned,
    /// 1 for the first attempt.
    attempt: u32,
}

/// A delivery that has no answer yet.
struct InFlight {
    planned: Planned,
    attempt: u32,
    number: AttemptNumber,
    report: AttemptReport,
}

enum NextStep {
    ActionDue,
    AttemptEnded(Result<(Id, Result<Response<Bytes>, Unanswered>), JoinError>),
    Finished,
}

/// The attempts of the replay, and its last process.
pub(super) struct Finished {
    pub(super) attempts: Vec<AttemptReport>,
    pub(super) process: Arc<Process>,
}

impl<'a, T, F> Runner<'a, T, F>
where
    T: Transport,
    F: FnMut(Harness) -> Result<Running<T>, ReplayError>,
{
    pub(super) fn new(settings: RunnerSettings<'a>, running: Running<T>, make: F) -> Self {
        Self {
            settings,
            make,
            running,
            queue: BinaryHeap::new(),
            tasks: JoinSet::new(),
            in_flight: HashMap::new(),
            attempts: Vec::new(),
            next_order: 0,
        }
    }

    pub(super) async fn run(mut self, mut plan: Plan) -> Result<Finished, ReplayError> {
        self.settings.observations.set_run_plans(&mut plan);
        let mut queued_attempts: Vec<_> = plan
            .deliveries
            .into_iter()
            .map(QueuedAttempt::first)
            .collect();
        for (index, delivery) in queued_attempts.iter().enumerate() {
            self.queue(delivery.planned.due, Action::Deliver(index));
        }
        for due in plan.restarts {
            self.queue(due, Action::Restart);
        }
        loop {
            match self.next().await {
                NextStep::Finished => break,
                NextStep::ActionDue => match self.queue.pop() {
                    Some(Reverse(Due {
                        action: Action::Deliver(index),
                        ..
                    })) => self.send(&queued_attempts[index]),
                    Some(_) => self.restart(&mut queued_attempts).await?,
                    None => {}
                },
                NextStep::AttemptEnded(ended) => {
                    let (id, answer) = match ended {
                        Ok((id, answer)) => (id, answer.map_err(Some)),
                        Err(error) => (error.id(), Err(None)),
                    };
                    if let Some(sent) = self.in_flight.remove(&id) {
                        self.record_answer(sent, answer, &mut queued_attempts);
                    }
                }
            }
        }
        self.running.process.wait_for_runs().await;
        Ok(Finished {
            attempts: self.attempts.into_iter().flatten().collect(),
            process: self.running.process,
        })
    }

    fn queue(&mut self, at: Duration, action: Action) {
        let order = self.next_order;
        self.next_order += 1;
        self.queue.push(Reverse(Due { at, order, action }));
    }

    /// Waits for the first of these: an answer, or the moment at which an action is due.
    async fn next(&mut self) -> NextStep {
        let due = self.queue.peek().map(|Reverse(due)| due.at);
        let Some(due) = due else {
            return match self.tasks.join_next_with_id().await {
                Some(ended) => NextStep::AttemptEnded(ended),
                None => NextStep::Finished,
            };
        };
        let left = due.saturating_sub(self.settings.clock.passed());
        if left.is_zero() {
            // An answer that is here by now came before the due action.
            return match self.tasks.try_join_next_with_id() {
                Some(ended) => NextStep::AttemptEnded(ended),
                None => NextStep::ActionDue,
            };
        }
        let waited_for = self
            .settings
            .longest_wait
            .map_or(left, |most| most.min(left));
        let mut alarm = pin!(sleep(waited_for));
        let tasks = &mut self.tasks;
        let ended = poll_fn(|context| {
            if let Poll::Ready(Some(ended)) = tasks.poll_join_next_with_id(context) {
                return Poll::Ready(Some(ended));
            }
            alarm.as_mut().poll(context).map(|()| None)
        });
        match ended.await {
            Some(ended) => NextStep::AttemptEnded(ended),
            None => {
                self.settings.clock.skip(left - waited_for);
                NextStep::ActionDue
            }
        }
    }

    fn send(&mut self, queued: &QueuedAttempt) {
        let QueuedAttempt { planned, attempt } = queued;
        let entry = &self.settings.entries[planned.entry];
        let passed = self.settings.clock.passed();
        let is_retry = *attempt > 1;
        let signs_again = entry.resigned || (is_retry && self.settings.signs_retries);
        let signed_at = match (signs_again && entry.secret.is_some(), is_retry) {
            (false, _) => None,
            (true, true) if self.settings.signs_retries => Some(at(self.settings.begin, passed)),
            (true, _) => Some(at(self.settings.begin, planned.sent)),
        };
        // The plan's faults apply to the first attempt only.
        let (handler_delay, answer_timeout) = if is_retry {
            (Duration::ZERO, None)
        } else {
            (planned.handler_delay, planned.hang_up_after)
        };
        let number = self.settings.observations.add_attempt(handler_delay);
        let mut request = entry.request(signed_at);
        request.extensions_mut().insert(number);
        let answer_timeout = answer_timeout.unwrap_or(self.settings.schedule.attempt_timeout());
        let transport = self.running.transport.clone();
        let task = self
            .tasks
            .spawn(deliver(transport, request, answer_timeout));

        let timestamp = signed_at.or(entry.timestamp);
        let now = at(self.settings.begin, passed);
        let as_logged = planned.copy == 0 && !is_retry;
        let recorded = entry.recorded.as_ref().filter(|_| as_logged);
        let faults = planned.faults.iter().filter(|_| !is_retry);
        let report = AttemptReport {
            number: number.0,
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
                .is_some_and(|timestamp| self.settings.window.check(timestamp, now).is_err()),
            logged_status: recorded.map(|(status, _)| *status),
            logged_outcome: recorded.map(|(_, outcome)| outcome.clone()),
        };
        let sent = InFlight {
            planned: planned.clone(),
            attempt: *attempt,
            number,
            report,
        };
        self.attempts.push(None);
        self.in_flight.insert(task.id(), sent);
    }

    /// Records an answer or its absence, and queues a retry where the sender would send one.
    fn record_answer(
        &mut self,
        sent: InFlight,
        answer: AttemptResult,
        queued_attempts: &mut Vec<QueuedAttempt>,
    ) {
        let mut report = sent.report;
        report.set_answer(answer);
        let success = report.is_success();
        self.attempts[sent.number.0] = Some(report);
        if success || !self.settings.retries || !sent.planned.retried {
            return;
        }
        let waits = self.settings.schedule.waits();
        let wait = usize::try_from(sent.attempt - 1)
            .ok()
            .and_then(|at| waits.get(at));
        if let Some(wait) = wait {
            let due = self.settings.clock.passed().saturating_add(*wait);
            queued_attempts.push(QueuedAttempt {
                planned: sent.planned,
                attempt: sent.attempt + 1,
            });
            self.queue(due, Action::Deliver(queued_attempts.len() - 1));
        }
    }

    /// Ends the process, and begins another.
    async fn restart(
        &mut self,
        queued_attempts: &mut Vec<QueuedAttempt>,
    ) -> Result<(), ReplayError> {
        let old = Arc::clone(&self.running.process);
        // This comes first, so that a future that is dropped now can have no effect any more.
        old.end_signal.end();
        self.tasks.abort_all();
        let mut unanswered = Vec::new();
        while let Some(ended) = self.tasks.join_next_with_id().await {
            match ended {
                // Answered at this very moment.
                Ok((id, answer)) => unanswered.push((id, answer.map_err(Some))),
                Err(error) if error.is_panic() => unanswered.push((error.id(), Err(None))),
                Err(error) => {
                    let lost: TransportError = "the process has ended".into();
                    unanswered.push((error.id(), Err(Some(Unanswered::Failed(lost)))));
                }
            }
        }
        old.kill().await;
        for (id, answer) in unanswered {
            if let Some(sent) = self.in_flight.remove(&id) {
                self.record_answer(sent, answer, queued_attempts);
            }
        }
        let harness = Harness::new(
            old.number + 1,
            old.clock.clone(),
            old.keys.clone(),
            Arc::clone(&old.observations),
        );
        self.running = (self.make)(harness)?;
        Ok(())
    }
}

impl QueuedAttempt {
    fn first(planned: Planned) -> Self {
        Self {
            planned,
            attempt: 1,
        }
    }
}
