//! Runs a plan: one loop that sends what is due, takes answers, sends retries as the sender would,
//! and ends processes.

use std::collections::{BTreeMap, HashMap};
use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hookgate::{
    clock::UnixSeconds,
    dedupe::{EventKey, RetrySchedule},
    layer::Answer,
    verify::Window,
};
use http::Response;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use super::clock::ReplayClock;
use super::entry::{Entry, EntryKind, Signing};
use super::error::{ReplayError, ReplayErrorKind as Kind};
use super::harness::{AttemptNumber, Process};
use super::plan::{Plan, Planned, at};
use super::report::{AttemptReport, EventReport, Origin, OtherReport, Report, millis};
use crate::messages::chain;
use crate::transport::Transport;

/// How a replay sends: the signatures, the sender's schedule, and the clock.
pub(super) struct Sending<'a> {
    pub(super) signing: Signing,
    pub(super) schedule: &'a RetrySchedule,
    pub(super) signs_retries: bool,
    pub(super) longest_wait: Option<Duration>,
    pub(super) clock: &'a ReplayClock,
}

/// A replay that runs.
pub(super) struct Attempts<'a, T, F> {
    sending: Sending<'a>,
    entries: &'a [Entry],
    begin: UnixSeconds,
    /// Makes the app of a process.
    start: F,
    app: T,
    process: Arc<Process>,
    pub(super) window: Window,
    /// What comes next, by its time. What is due at one moment keeps the order in which it was
    /// added.
    due: BTreeMap<(Duration, usize), Due>,
    added: usize,
    tasks: JoinSet<Result<Response<Bytes>, String>>,
    in_flight: HashMap<Id, (usize, Planned)>,
    /// By their numbers.
    reports: Vec<AttemptReport>,
}

enum Due {
    Send(Planned),
    Restart,
}

impl<'a, T, F> Attempts<'a, T, F>
where
    T: Transport,
    F: FnMut(&Arc<Process>) -> Result<T, ReplayError>,
{
    /// Starts the first process.
    pub(super) fn begin(
        sending: Sending<'a>,
        entries: &'a [Entry],
        begin: UnixSeconds,
        process: Arc<Process>,
        mut start: F,
    ) -> Result<Self, ReplayError> {
        let app = start(&process)?;
        let window = process.window();
        Ok(Self {
            sending,
            entries,
            begin,
            start,
            app,
            process,
            window: window.ok_or_else(|| ReplayError::new(Kind::NoReceiver))?,
            due: BTreeMap::new(),
            added: 0,
            tasks: JoinSet::new(),
            in_flight: HashMap::new(),
            reports: Vec::new(),
        })
    }

    /// Returns every attempt, and the last process.
    pub(super) async fn run(
        mut self,
        plan: Plan<'_>,
    ) -> Result<(Vec<AttemptReport>, Arc<Process>), ReplayError> {
        self.process.observed().run_faults = plan.run_faults;
        for planned in plan.deliveries {
            self.add(planned.due, Due::Send(planned));
        }
        for at in plan.restarts {
            self.add(at, Due::Restart);
        }
        loop {
            let next = self.due.keys().next().map(|(at, _)| *at);
            if next.is_none() && self.tasks.is_empty() {
                break;
            }
            let passed = self.sending.clock.passed();
            let left = next.unwrap_or_default().saturating_sub(passed);
            let wait = self.sending.longest_wait.map_or(left, |it| it.min(left));
            tokio::select! {
                biased;
                // An answer that is here by now came before what is due.
                Some(ended) = self.tasks.join_next_with_id() => self.answered(ended),
                () = pause(wait), if next.is_some() => {
                    self.sending.clock.skip(left - wait);
                    match self.due.pop_first() {
                        Some((_, Due::Send(planned))) => self.send(planned),
                        Some((_, Due::Restart)) => self.restart().await?,
                        None => {}
                    }
                }
            }
        }
        self.process.drain(Duration::MAX).await;
        Ok((self.reports, self.process))
    }

    fn add(&mut self, at: Duration, due: Due) {
        self.due.insert((at, self.added), due);
        self.added += 1;
    }

    fn send(&mut self, planned: Planned) {
        let entry = &self.entries[planned.entry];
        let passed = self.sending.clock.passed();
        let now = at(self.begin, passed);
        let is_retry = planned.attempt > 1;
        let signs_retry = is_retry && self.sending.signs_retries;
        let signed_at = (entry.resigned || signs_retry).then(|| match signs_retry {
            true => now,
            false => at(self.begin, planned.sent),
        });
        let signed_at = signed_at.filter(|_| entry.secret.is_some());
        let number = self.reports.len();
        self.process.observed().delays.push(planned.handler_delay);
        let mut request = entry.request(signed_at);
        if let Some(tamper) = planned.tamper {
            request = tamper.apply(request);
        }
        request.extensions_mut().insert(AttemptNumber(number));
        let longest = self.sending.schedule.attempt_timeout();
        let limit = planned.hang_up_after.unwrap_or(longest);
        let app = self.app.clone();
        let task = self.tasks.spawn(async move {
            match timeout(limit, app.deliver(request)).await {
                Ok(answered) => answered.map_err(|error| format!("failed: {error}")),
                Err(_) => Err(format!("the sender hung up after {} ms", limit.as_millis())),
            }
        });
        let timestamp = signed_at.or(entry.timestamp);
        let recorded = entry.recorded.as_ref();
        let recorded = recorded.filter(|_| planned.copy == 0 && !is_retry);
        self.reports.push(AttemptReport {
            number,
            line: entry.line,
            origin: match (planned.copy, planned.attempt) {
                (0, 1) => Origin::Logged,
                (copy, 1) => Origin::Copy(copy),
                (_, attempt) => Origin::Retry(attempt),
            },
            after_ms: millis(passed),
            process: self.process.number,
            status: None,
            outcome: String::new(),
            reason: None,
            faults: planned.faults.iter().map(|&it| it.to_owned()).collect(),
            outside_window: timestamp.is_some_and(|it| self.window.check(it, now).is_err()),
            tampered: planned.tamper.is_some(),
            logged_status: recorded.map(|(status, _)| *status),
            logged_outcome: recorded.map(|(_, outcome)| outcome.clone()),
        });
        self.in_flight.insert(task.id(), (number, planned));
    }

    /// Records an answer or its absence, and plans a retry where the sender would send one.
    fn answered(&mut self, ended: Result<(Id, Result<Response<Bytes>, String>), JoinError>) {
        let (id, answer) = match ended {
            Ok(ended) => ended,
            Err(error) if error.is_panic() => (error.id(), Err("the app panicked".to_owned())),
            Err(error) => (error.id(), Err("failed: the process has ended".to_owned())),
        };
        let Some((number, planned)) = self.in_flight.remove(&id) else {
            return;
        };
        let report = &mut self.reports[number];
        match answer {
            Ok(response) => {
                report.status = Some(response.status().as_u16());
                let answer = response.extensions().get::<Answer>();
                let outcome = answer.map_or("unknown", |answer| answer.outcome.name());
                report.outcome = outcome.to_owned();
                let reason = answer.and_then(|answer| answer.reason.as_ref());
                let reason = reason.filter(|_| !report.is_success());
                report.reason = reason.map(|reason| chain(&**reason));
            }
            Err(why) => report.outcome = why,
        }
        let is_raw = matches!(self.sending.signing, Signing::Raw { .. });
        if report.is_success() || is_raw || !planned.retried {
            return;
        }
        let waits = self.sending.schedule.waits();
        let wait = usize::try_from(planned.attempt - 1).ok();
        if let Some(wait) = wait.and_then(|at| waits.get(at)) {
            let due = self.sending.clock.passed().saturating_add(*wait);
            self.add(due, Due::Send(planned.retry()));
        }
    }

    /// Ends the process, and begins another.
    async fn restart(&mut self) -> Result<(), ReplayError> {
        // This comes first, so that a future that is dropped now can have no effect any more.
        self.process.end();
        self.tasks.abort_all();
        let mut ended = Vec::new();
        while let Some(task) = self.tasks.join_next_with_id().await {
            ended.push(task);
        }
        // They end in any order. The same seed makes the same replay.
        ended.sort_by_key(|task| {
            let id = match task {
                Ok((id, _)) => *id,
                Err(error) => error.id(),
            };
            self.in_flight.get(&id).map(|(number, _)| *number)
        });
        self.process.drain(Duration::ZERO).await;
        for task in ended {
            self.answered(task);
        }
        self.process = Arc::new(self.process.next());
        self.app = (self.start)(&self.process)?;
        match self.process.window() {
            Some(_) => Ok(()),
            None => Err(ReplayError::new(Kind::NoReceiver)),
        }
    }
}

async fn pause(wait: Duration) {
    if !wait.is_zero() {
        sleep(wait).await;
    }
}

/// Makes the report of a replay that has ended: `last` is its last process.
pub(super) fn report(entries: &[Entry], attempts: Vec<AttemptReport>, last: &Process) -> Report {
    let mut seen = take(&mut last.observed().events);
    let all_runs = || seen.values().flat_map(|event| &event.runs);
    let runs_were_seen = all_runs().next().is_some();
    let mut runs_by_attempt = HashMap::<usize, usize>::new();
    for attempt in all_runs().filter_map(|run| run.attempt) {
        *runs_by_attempt.entry(attempt).or_default() += 1;
    }
    let mut by_line = HashMap::<usize, Vec<AttemptReport>>::new();
    for attempt in attempts {
        by_line.entry(attempt.line).or_default().push(attempt);
    }
    let (mut events, mut others) = (Vec::<EventReport>::new(), Vec::new());
    let mut places = HashMap::<EventKey, usize>::new();
    for entry in entries {
        let attempts = by_line.remove(&entry.line).unwrap_or_default();
        let EntryKind::Event(event) = &entry.kind else {
            let runs = attempts.iter();
            let runs = runs.filter_map(|it| runs_by_attempt.get(&it.number));
            others.push(OtherReport {
                line: entry.line,
                authentic: !entry.is_forged(),
                runs: runs.sum(),
                attempts,
            });
            continue;
        };
        let place = *places.entry(event.key).or_insert_with(|| {
            let seen = seen.remove(&event.key).unwrap_or_default();
            events.push(EventReport {
                scope: event.scope.clone(),
                id: event.id.clone(),
                event_type: event.event_type.clone(),
                lines: Vec::new(),
                attempts: Vec::new(),
                runs: seen.runs,
                commits: seen.commits,
                commits_lost: seen.lost,
                commits_unanswered: seen.unanswered,
                done_before: seen.done_before,
                runs_were_seen,
            });
            events.len() - 1
        });
        events[place].lines.push(entry.line);
        events[place].attempts.extend(attempts);
    }
    for event in &mut events {
        event.attempts.sort_by_key(|attempt| attempt.number);
        event.lines.sort_unstable();
    }
    Report {
        faults: String::new(),
        began_at: 0,
        events,
        others,
        processes: last.number + 1,
        runs_were_seen,
        skipped: 0,
    }
}
