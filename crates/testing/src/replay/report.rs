//! The result of a replay.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The result of a replay, event by event. Its `Display` is for a failed test, and ends with the
/// expression that repeats the replay. It can be kept as JSON, and compared with the report of
/// another replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Report {
    /// The faults, as the expression that makes them.
    pub faults: String,
    /// The time of the receiver's clock at the beginning, in seconds since 1970.
    pub began_at: i64,
    /// The events, in the order in which they first arrived.
    pub events: Vec<EventReport>,
    /// Deliveries that name no event: those that were never authentic, and those without a usable
    /// id and type.
    pub others: Vec<OtherReport>,
    /// The number of processes: one, and one more for each restart.
    pub processes: u32,
    /// Whether runs were seen, and not only commits: not where the app calls the receiver's steps
    /// itself.
    pub runs_were_seen: bool,
    /// The number of chosen deliveries that were not sent, because their bodies were not recorded.
    #[serde(default)]
    pub skipped: usize,
}

/// The result of one event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EventReport {
    /// The scope of its subscription's keys.
    pub scope: String,
    /// Its id.
    pub id: String,
    /// Its type.
    pub event_type: String,
    /// Its lines in the log, from 1.
    pub lines: Vec<usize>,
    /// Every delivery of it, in the order in which they were sent.
    pub attempts: Vec<AttemptReport>,
    /// The handler's runs, in the order in which they began.
    pub runs: Vec<RunReport>,
    /// The commits that the store confirmed.
    pub commits: Vec<CommitReport>,
    /// The number of commits that the store answered with *lost*.
    pub commits_lost: u32,
    /// The number of commits that the store did not answer, or not before the end of the process.
    pub commits_unanswered: u32,
    /// The store had it as done already, by a claim that was not made in this replay.
    pub done_before: bool,
    /// As [`Report::runs_were_seen`].
    pub runs_were_seen: bool,
}

/// The result of a delivery that names no event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OtherReport {
    /// Its line in the log, from 1.
    pub line: usize,
    /// Whether its signature is right: then it has no usable id and type. Otherwise it was never
    /// authentic, and must stay refused.
    pub authentic: bool,
    /// Every delivery of it.
    pub attempts: Vec<AttemptReport>,
    /// The number of runs that it began.
    pub runs: usize,
}

/// One delivery and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AttemptReport {
    /// Its number in the whole replay, from 0.
    pub number: usize,
    /// Its line in the log.
    pub line: usize,
    /// Its origin: as logged, a copy, or a retry.
    pub origin: Origin,
    /// When it arrived, in milliseconds from the beginning.
    pub after_ms: u64,
    /// The process that received it.
    pub process: u32,
    /// The status of the answer; `None` where there was no answer.
    pub status: Option<u16>,
    /// The receiver's outcome by its name, or the reason why there was no answer.
    pub outcome: String,
    /// The reason of an answer that is not 2xx, with its sources: the path of a value that does not
    /// fit, for example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The faults that the plan applied to it.
    pub faults: Vec<String>,
    /// Its timestamp lay outside the receiver's window when it arrived.
    pub outside_window: bool,
    /// It was changed after it was signed.
    #[serde(default)]
    pub tampered: bool,
    /// The status of the answer in the log, where this is the delivery as it was logged.
    pub logged_status: Option<u16>,
    /// The outcome in the log.
    pub logged_outcome: Option<String>,
}

/// The origin of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Origin {
    /// As recorded in the log.
    Logged,
    /// A copy of the logged delivery, by its number from 1.
    Copy(u32),
    /// The sender's next attempt, by its number: 2 is the first retry.
    Retry(u32),
}

/// A run of the handler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunReport {
    /// The attempt that began it, where the attempt is known.
    pub attempt: Option<usize>,
    /// The process that it ran in.
    pub process: u32,
    /// How it ended.
    pub end: RunEnd,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum RunEnd {
    /// The handler answered 2xx.
    Succeeded,
    /// The handler asked for a dead letter.
    DeadLettered,
    /// The handler answered this status, which is not 2xx.
    Failed(u16),
    /// The handler panicked.
    Panicked,
    /// The plan answered 500 in the handler's place.
    MadeToFail,
    /// The plan panicked in the handler's place.
    MadeToPanic,
    /// The run was dropped before its end: its process ended, or it was aborted.
    CutOff,
    /// The run had not ended when the replay ended.
    Unended,
}

/// A commit that the store confirmed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CommitReport {
    /// The process that committed.
    pub process: u32,
    /// The time of the commit, in milliseconds from the beginning.
    pub after_ms: u64,
}

/// The result of an event, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Verdict {
    /// Handled once, and committed once.
    Once,
    /// Never handled, or never committed.
    Never,
    /// Handled more than once, or committed more than once.
    Twice,
}

impl Report {
    /// Whether each event was handled and committed once, and no delivery that was never authentic
    /// was let in. False where there is not an event at all: a test without events proves nothing.
    #[must_use]
    pub fn each_event_committed_once(&self) -> bool {
        self.each(|event| event.verdict() == Verdict::Once)
    }

    /// As [`each_event_committed_once`](Self::each_event_committed_once), for a log with failures:
    /// an event that the log never saw answered 2xx may fail again. No event may be handled or
    /// committed twice.
    #[must_use]
    pub fn each_event_committed_as_logged(&self) -> bool {
        self.each(|event| match event.verdict() {
            Verdict::Once => true,
            Verdict::Never => event.failed_in_log(),
            Verdict::Twice => false,
        })
    }

    fn each(&self, holds: impl Fn(&EventReport) -> bool) -> bool {
        let let_in = self.let_in().next().is_some();
        let let_in = let_in || self.let_in_outside_window().next().is_some();
        !self.events.is_empty()
            && self.events.iter().all(holds)
            && !let_in
            && self.let_in_tampered().next().is_none()
    }

    /// The events.
    #[must_use]
    pub fn events(&self) -> &[EventReport] {
        &self.events
    }

    /// Returns the event of this id. Where several scopes have the id, the first of them.
    #[must_use]
    pub fn event(&self, id: &str) -> Option<&EventReport> {
        self.events.iter().find(|event| event.id == id)
    }

    /// The events that were handled and committed once.
    pub fn once(&self) -> impl Iterator<Item = &EventReport> {
        self.by(Verdict::Once)
    }

    /// The events that were never handled or never committed.
    pub fn never(&self) -> impl Iterator<Item = &EventReport> {
        self.by(Verdict::Never)
    }

    /// The events that were handled or committed more than once.
    pub fn twice(&self) -> impl Iterator<Item = &EventReport> {
        self.by(Verdict::Twice)
    }

    /// The deliveries that were never authentic, but got a run or a 2xx. There must be none.
    pub fn let_in(&self) -> impl Iterator<Item = &OtherReport> {
        self.others.iter().filter(|other| {
            let accepted = other.attempts.iter().any(AttemptReport::is_success);
            !other.authentic && (other.runs > 0 || accepted)
        })
    }

    /// The attempts whose timestamp lay outside the window, but that began a run. There must be
    /// none.
    pub fn let_in_outside_window(&self) -> impl Iterator<Item = &AttemptReport> {
        self.events.iter().flat_map(|event| {
            let late = event.attempts.iter().filter(|it| it.outside_window);
            late.filter(|it| event.began_run(it))
        })
    }

    /// The copies that were changed after they were signed, but that began a run or were answered
    /// 2xx. There must be none.
    pub fn let_in_tampered(&self) -> impl Iterator<Item = &AttemptReport> {
        self.events.iter().flat_map(|event| {
            let tampered = event.attempts.iter().filter(|it| it.tampered);
            tampered.filter(|it| it.is_success() || event.began_run(it))
        })
    }

    /// The deliveries as logged, without a fault, whose status differs from the status in the log.
    pub fn answered_otherwise(&self) -> impl Iterator<Item = &AttemptReport> {
        self.attempts().filter(|it| {
            let logged = it.logged_status.is_some();
            logged && it.faults.is_empty() && it.logged_status != it.status
        })
    }

    /// The number of runs that began, in all.
    #[must_use]
    pub fn runs(&self) -> usize {
        let of_events: usize = self.events.iter().map(|event| event.runs.len()).sum();
        let of_others: usize = self.others.iter().map(|other| other.runs).sum();
        of_events + of_others
    }

    /// Every attempt: those of events, then the others.
    pub fn attempts(&self) -> impl Iterator<Item = &AttemptReport> {
        let of_events = self.events.iter().flat_map(|event| &event.attempts);
        of_events.chain(self.others.iter().flat_map(|other| &other.attempts))
    }

    fn by(&self, verdict: Verdict) -> impl Iterator<Item = &EventReport> {
        let events = self.events.iter();
        events.filter(move |event| event.verdict() == verdict)
    }
}

impl EventReport {
    /// Returns the result in one word.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let handled = self.handled();
        if self.commits.len() > 1 || handled > 1 {
            Verdict::Twice
        } else if self.commits.is_empty() || (self.runs_were_seen && handled == 0) {
            Verdict::Never
        } else {
            Verdict::Once
        }
    }

    /// The number of runs that ended well: the handler answered 2xx, or asked for a dead letter
    /// that was then committed.
    #[must_use]
    pub fn handled(&self) -> usize {
        let succeeded = self.ended(RunEnd::Succeeded);
        // A dead letter that its hook has not taken is a failure, and its claim is released.
        let letters = self.ended(RunEnd::DeadLettered);
        succeeded + letters.min(self.commits.len().saturating_sub(succeeded))
    }

    /// Whether the sender discarded the event: no attempt was answered 2xx.
    #[must_use]
    pub fn discarded(&self) -> bool {
        !self.attempts.iter().any(AttemptReport::is_success)
    }

    /// Whether the log has answers to the event, and none of them is 2xx.
    #[must_use]
    pub fn failed_in_log(&self) -> bool {
        let mut logged = self
            .attempts
            .iter()
            .filter_map(|it| it.logged_status)
            .peekable();
        logged.peek().is_some() && logged.all(|status| !(200..300).contains(&status))
    }

    fn began_run(&self, attempt: &AttemptReport) -> bool {
        let mut runs = self.runs.iter();
        runs.any(|run| run.attempt == Some(attempt.number))
    }

    fn ended(&self, end: RunEnd) -> usize {
        self.runs.iter().filter(|run| run.end == end).count()
    }
}

impl AttemptReport {
    /// Whether the answer was 2xx.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.status
            .is_some_and(|status| (200..300).contains(&status))
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
