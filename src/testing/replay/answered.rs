//! What was answered to a replay through a transport.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// What was answered, delivery by delivery; as JSON, what `hookgate replay --json` prints. An answer is no commit: whether a receiver did what it says can only be seen
/// [in process](super::Replay::against).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AnsweredReport {
    /// The deliveries whose answer was heard or waited for in vain, in the order in which that ended.
    pub answers: Vec<Answered>,
    /// How many deliveries were to be sent.
    pub planned: usize,
    /// Whether it was ended before all of them were answered.
    pub interrupted: bool,
    /// Microseconds that it took.
    pub elapsed_us: u64,
}

/// A delivery and its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Answered {
    /// Its line in the log, from 1.
    pub line: usize,
    /// 0 for the delivery itself, then its copies.
    pub copy: u32,
    /// The event's id, from the signed body, or else as the unsigned header says.
    pub event_id: Option<String>,
    /// The event's type, likewise.
    pub event_type: Option<String>,
    /// Whether it was signed again, or went out as it came.
    pub resigned: bool,
    /// The status, where an answer was heard.
    pub status: Option<u16>,
    /// Whether the answer said that the event was done before.
    pub replayed: bool,
    /// Why no answer was heard.
    pub failure: Option<String>,
    /// Microseconds until the answer, or until it was no longer waited for.
    pub elapsed_us: u64,
    /// The status that the log says was answered.
    pub logged_status: Option<u16>,
}

/// The answers, counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Summary {
    /// How many were to be sent.
    pub planned: usize,
    /// How many were sent, and answered or not.
    pub sent: usize,
    /// Answered 2xx.
    pub accepted: usize,
    /// Among them, those whose event was done before.
    pub replayed: usize,
    /// Answered anything else.
    pub refused: usize,
    /// Not answered.
    pub unanswered: usize,
    /// Sent as they came, since the log says that they were refused as not authentic, or since nothing is signed again.
    pub as_they_came: usize,
    /// How many answers had which status.
    pub by_status: BTreeMap<u16, usize>,
    /// How many were not answered, by the reason.
    pub by_failure: BTreeMap<String, usize>,
    /// Time until the answer, of those that were answered.
    pub latency: Option<Latency>,
    /// Whether it was ended before all of them were answered.
    pub interrupted: bool,
    /// Microseconds that all of it took.
    pub elapsed_us: u64,
}

/// Time until an answer, in microseconds. A percentile is the nearest rank: a time that one of the answers took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Latency {
    /// Half of the answers took no longer.
    pub p50_us: u64,
    /// Nine of ten took no longer.
    pub p90_us: u64,
    /// Ninety-nine of a hundred took no longer.
    pub p99_us: u64,
    /// The longest.
    pub max_us: u64,
}

impl AnsweredReport {
    /// Whether every delivery was sent, and answered 2xx.
    #[must_use]
    pub fn all_accepted(&self) -> bool {
        self.answers.len() == self.planned && self.answers.iter().all(Answered::is_accepted)
    }

    /// The answers, counted.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let count =
            |holds: fn(&Answered) -> bool| self.answers.iter().filter(|it| holds(it)).count();
        let mut by_status = BTreeMap::new();
        let mut by_failure = BTreeMap::new();
        for answered in &self.answers {
            if let Some(status) = answered.status {
                *by_status.entry(status).or_default() += 1;
            }
            if let Some(failure) = &answered.failure {
                *by_failure.entry(failure.clone()).or_default() += 1;
            }
        }
        let accepted = count(Answered::is_accepted);
        let unanswered = count(|it| it.status.is_none());
        Summary {
            planned: self.planned,
            sent: self.answers.len(),
            accepted,
            replayed: count(|it| it.is_accepted() && it.replayed),
            refused: self.answers.len() - accepted - unanswered,
            unanswered,
            as_they_came: count(|it| !it.resigned),
            by_status,
            by_failure,
            latency: self.latency(),
            interrupted: self.interrupted,
            elapsed_us: self.elapsed_us,
        }
    }

    fn latency(&self) -> Option<Latency> {
        let answered = self.answers.iter().filter(|it| it.status.is_some());
        let mut times: Vec<_> = answered.map(|it| it.elapsed_us).collect();
        times.sort_unstable();
        let max_us = *times.last()?;
        // The nearest rank: the smallest time that so many per cent did not exceed.
        let rank = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100);
            times[rank.saturating_sub(1)]
        };
        Some(Latency {
            p50_us: rank(50),
            p90_us: rank(90),
            p99_us: rank(99),
            max_us,
        })
    }
}

impl Answered {
    /// Whether the answer was 2xx.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.status
            .is_some_and(|status| (200..300).contains(&status))
    }
}

/// What was answered, and how long that took; never that anything was committed.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            planned,
            sent,
            accepted,
            replayed,
            refused,
            unanswered,
            ..
        } = self;
        if self.interrupted {
            writeln!(
                f,
                "interrupted: {sent} of {planned} deliveries sent and answered"
            )?;
        }
        let (of, took) = (sent, Micros(self.elapsed_us));
        writeln!(
            f,
            "{accepted} of {of} answered 2xx, in {took} ({replayed} of them done before)"
        )?;
        if refused + unanswered > 0 {
            writeln!(f, "{refused} answered otherwise, {unanswered} not at all")?;
        }
        for (status, count) in &self.by_status {
            writeln!(f, "  {status:>3}  {count}")?;
        }
        for (failure, count) in &self.by_failure {
            writeln!(f, "  no answer  {count}  ({})", failure.escape_debug())?;
        }
        match &self.latency {
            None => f.write_str("no answer was heard"),
            Some(latency) => {
                let [p50, p90, p99, max] = [
                    latency.p50_us,
                    latency.p90_us,
                    latency.p99_us,
                    latency.max_us,
                ]
                .map(Micros);
                write!(
                    f,
                    "answered after: p50 {p50}, p90 {p90}, p99 {p99}, max {max}"
                )
            }
        }
    }
}

struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = Duration::from_micros(self.0);
        match self.0 {
            0..1_000_000 => write!(f, "{:.1} ms", time.as_secs_f64() * 1e3),
            _ => write!(f, "{:.2} s", time.as_secs_f64()),
        }
    }
}
