//! The answers to a replay through a transport.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// The answers, delivery by delivery. `hookgate replay --json` prints this as JSON. An answer is not a commit: only a replay
/// [in process](super::Replay::against) can see whether a receiver really did the work.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AnsweredReport {
    /// The deliveries that were answered, or that failed without an answer, in the order in which they ended.
    pub answers: Vec<Answered>,
    /// The number of deliveries to send.
    pub planned: usize,
    /// The number of chosen deliveries that were not sent, because their bodies were not recorded.
    pub skipped: usize,
    /// Whether the replay was ended before all of them were answered.
    pub interrupted: bool,
    /// The duration of the replay in microseconds.
    pub elapsed_us: u64,
}

/// A delivery and its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Answered {
    /// Its line in the log, from 1.
    pub line: usize,
    /// 0 for the delivery itself, from 1 for its copies.
    pub copy: u32,
    /// The event's id, from the signed body, or else from the unsigned header.
    pub event_id: Option<String>,
    /// The event's type, from the same source.
    pub event_type: Option<String>,
    /// Whether it was signed again, or sent as recorded.
    pub resigned: bool,
    /// The status, where there was an answer.
    pub status: Option<u16>,
    /// Whether the answer said that the event was done before.
    pub replayed: bool,
    /// The reason why there was no answer.
    pub failure: Option<String>,
    /// Microseconds until the answer, or until the end of the wait for it.
    pub elapsed_us: u64,
    /// The status of the answer in the log.
    pub logged_status: Option<u16>,
}

/// Counts of the answers, and their latencies.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Summary {
    /// The number of deliveries to send.
    pub planned: usize,
    /// The number of deliveries that were sent, answered or not.
    pub sent: usize,
    /// The number of chosen deliveries that were not sent, because their bodies were not recorded.
    pub skipped: usize,
    /// The number of deliveries that were answered 2xx.
    pub accepted: usize,
    /// The number of accepted deliveries whose event was done before.
    pub replayed: usize,
    /// The number of deliveries that were answered with another status.
    pub refused: usize,
    /// The number of deliveries without an answer.
    pub unanswered: usize,
    /// The number of deliveries that were sent as recorded: the log says that they were refused as not authentic, or nothing is
    /// signed again.
    pub as_they_came: usize,
    /// The number of answers by status.
    pub by_status: BTreeMap<u16, usize>,
    /// The number of unanswered deliveries by reason.
    pub by_failure: BTreeMap<String, usize>,
    /// The time until the answer, over the answered deliveries.
    pub latency: Option<Latency>,
    /// Whether the replay was ended before all of them were answered.
    pub interrupted: bool,
    /// The duration of the whole replay in microseconds.
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
    /// Whether every delivery that was to be sent was sent, and answered 2xx.
    #[must_use]
    pub fn all_accepted(&self) -> bool {
        self.answers.len() == self.planned && self.answers.iter().all(Answered::is_accepted)
    }

    /// Counts the answers.
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
            skipped: self.skipped,
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
        // The nearest rank: the smallest time that this percentage of the answers did not exceed.
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

/// The answers and their duration; it never says that a commit was made.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            planned,
            sent,
            skipped,
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
        if *skipped > 0 {
            writeln!(f, "{skipped} skipped, whose body was not recorded")?;
        }
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
            None => f.write_str("no answer arrived"),
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
