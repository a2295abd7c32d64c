//! Sends a log through a transport, for example to a URL, and reports the answers.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;

use hookgate::clock::{Clock, SystemClock};
use hookgate::verify::{EVENT_ID, EVENT_TYPE};
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::entry::Entry;
use super::{Portable, Replay, ReplayError};
use crate::messages::chain;
use crate::transport::Transport;

/// The longest gap between two deliveries: the lowest rate is one delivery in this time. It
/// prevents an overflow of a point of time.
const LONGEST_GAP: Duration = Duration::from_secs(24 * 3_600);

/// A replay through a transport; made by [`Replay::through`]. Nothing is sent before
/// [`run`](Self::run).
#[must_use = "nothing is sent before `run`"]
pub struct Through<'t, M, T> {
    replay: Replay<M>,
    transport: T,
    skipped: usize,
    copies: u32,
    shuffled_by: Option<u64>,
    concurrency: usize,
    gap: Duration,
    answer_timeout: Duration,
    on_answer: Box<dyn FnMut(&Answered) + Send + 't>,
    stop: Pin<Box<dyn Future<Output = ()> + Send + 't>>,
}

impl<M: Portable> Replay<M> {
    /// Replays through a transport, to a receiver whose clock and store are out of reach. The
    /// receiver's work can't be seen, so the report says only the *answers*, and never the commits.
    /// Faults and waits between deliveries are those of [`Through`] alone.
    ///
    /// A delivery is signed again where its signature is right under the secrets, or where the log
    /// does not say that it was refused as not authentic: the receiver's secret may differ from the
    /// log's. A delivery whose body was not recorded is skipped, and counted as
    /// [`skipped`](AnsweredReport::skipped).
    pub fn through<'t, T: Transport>(self, transport: T) -> Through<'t, M, T> {
        let all = self.chosen.len();
        let replay = self.only(|logged| logged.body.is_some());
        Through {
            skipped: all - replay.chosen.len(),
            replay,
            transport,
            copies: 0,
            shuffled_by: None,
            concurrency: 1,
            gap: Duration::ZERO,
            answer_timeout: Duration::from_secs(5),
            on_answer: Box::new(|_| {}),
            stop: Box::pin(pending()),
        }
    }
}

impl<'t, M: Portable, T: Transport> Through<'t, M, T> {
    /// Sends this number of copies after each delivery. Default: 0.
    pub fn duplicated(mut self, copies: u32) -> Self {
        self.copies = copies;
        self
    }

    /// Sends the deliveries in an order that this seed gives, in place of the log's order.
    pub fn shuffled(mut self, seed: u64) -> Self {
        self.shuffled_by = Some(seed);
        self
    }

    /// Sets how many deliveries may wait for their answers at a time, at least one. Default: 1, one
    /// after the other.
    pub fn concurrency(mut self, deliveries: usize) -> Self {
        self.concurrency = deliveries.max(1);
        self
    }

    /// Sets the highest number of deliveries a second. Default: no limit besides the answers. The
    /// lowest rate is one a day, even if a lower one is set.
    pub fn per_second(mut self, deliveries: f64) -> Self {
        let gap = Duration::try_from_secs_f64(1.0 / deliveries);
        self.gap = gap.map_or(LONGEST_GAP, |gap| gap.min(LONGEST_GAP));
        self
    }

    /// Sets the longest wait for an answer. Default: 5 s, as the service does.
    pub fn answer_timeout(mut self, answer_timeout: Duration) -> Self {
        self.answer_timeout = answer_timeout;
        self
    }

    /// Calls this function with each answer, as it arrives.
    pub fn on_answer(mut self, call: impl FnMut(&Answered) + Send + 't) -> Self {
        self.on_answer = Box::new(call);
        self
    }

    /// Sends no further delivery once this future has ended. The report then holds the answers
    /// until that time.
    pub fn until(mut self, stop: impl Future<Output = ()> + Send + 't) -> Self {
        self.stop = Box::pin(stop);
        self
    }

    /// The number of deliveries that will be sent, copies included.
    #[must_use]
    pub fn planned(&self) -> usize {
        let copies = usize::try_from(self.copies).unwrap_or(usize::MAX);
        let each = copies.saturating_add(1);
        self.replay.chosen.len().saturating_mul(each)
    }

    /// Sends all deliveries.
    ///
    /// # Errors
    /// `Empty`, `NoSecret`, `Keys`, `Unsendable`. A receiver that can't be reached is not an error:
    /// the report says so for each delivery.
    pub async fn run(mut self) -> Result<AnsweredReport, ReplayError> {
        let entries = self.replay.entries(true)?;
        let copies = self.copies;
        let mut order: VecDeque<_> = (0..entries.len())
            .flat_map(|entry| (0..=copies).map(move |copy| (entry, copy)))
            .collect();
        if let Some(seed) = self.shuffled_by {
            fastrand::Rng::with_seed(seed).shuffle(order.make_contiguous());
        }
        let planned = order.len();
        let began = Instant::now();
        let (mut tasks, mut next_at) = (JoinSet::new(), began);
        let mut answers = Vec::with_capacity(planned);
        let interrupted = loop {
            let may_send = tasks.len() < self.concurrency && !order.is_empty();
            if !may_send && tasks.is_empty() {
                break false;
            }
            tokio::select! {
                biased;
                () = &mut self.stop => break true,
                // A transport that panics has no answer to report.
                Some(Ok(answered)) = tasks.join_next() => {
                    (self.on_answer)(&answered);
                    answers.push(answered);
                }
                () = turn(next_at, self.gap), if may_send => {
                    // No burst after a delay: the rate is an upper limit.
                    next_at = next_at.max(Instant::now()) + self.gap;
                    if let Some((entry, copy)) = order.pop_front() {
                        let (transport, limit) = (self.transport.clone(), self.answer_timeout);
                        tasks.spawn(send(transport, limit, &entries[entry], copy));
                    }
                }
                else => {}
            }
        };
        Ok(AnsweredReport {
            answers,
            planned,
            skipped: self.skipped,
            interrupted,
            elapsed_us: micros(began.elapsed()),
        })
    }
}

async fn turn(at: Instant, gap: Duration) {
    if !gap.is_zero() {
        sleep_until(at).await;
    }
}

fn send<T: Transport>(
    transport: T,
    answer_timeout: Duration,
    entry: &Entry,
    copy: u32,
) -> impl Future<Output = Answered> + Send + use<T> {
    // Each copy is signed at its own time, as the service signs each attempt.
    let signed_at = entry.resigned.then(|| SystemClock.now());
    let request = entry.request(signed_at);
    let unsigned = |name: &str| {
        let value = request.headers().get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let (id, event_type) = match entry.event() {
        Some(event) => (Some(event.id.clone()), Some(event.event_type.clone())),
        None => (unsigned(EVENT_ID), unsigned(EVENT_TYPE)),
    };
    let mut answered = Answered {
        line: entry.line,
        copy,
        event_id: id,
        event_type,
        resigned: entry.resigned,
        status: None,
        replayed: false,
        failure: None,
        elapsed_us: 0,
        logged_status: entry.recorded.as_ref().map(|(status, _)| *status),
    };
    async move {
        let began = Instant::now();
        let answer = timeout(answer_timeout, transport.deliver(request)).await;
        answered.elapsed_us = micros(began.elapsed());
        match answer {
            Ok(Ok(response)) => {
                answered.status = Some(response.status().as_u16());
                answered.replayed = response.headers().contains_key("idempotent-replayed");
            }
            Ok(Err(error)) => answered.failure = Some(chain(&*error)),
            Err(_) => {
                let millis = answer_timeout.as_millis();
                answered.failure = Some(format!("no answer within {millis} ms"));
            }
        }
        answered
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl<M, T> fmt::Debug for Through<'_, M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Through")
            .field("replay", &self.replay)
            .finish_non_exhaustive()
    }
}

/// The answers, delivery by delivery. `hookgate replay --json` prints this as JSON. An answer is
/// not a commit: only a replay [in process](super::Replay::against) can see whether a receiver
/// really did the work.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AnsweredReport {
    /// The deliveries that were answered, or that failed without an answer, in the order in which
    /// they ended.
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
    /// The number of deliveries that were sent as recorded: the log says that they were refused as
    /// not authentic, or nothing is signed again.
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

/// Time until an answer, in microseconds. A percentile is the nearest rank: a time that one of the
/// answers took.
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
        Latency::of(answered.map(|it| it.elapsed_us))
    }
}

impl Latency {
    /// Computes it from the times until the answers: microseconds, in any order. `None` where there
    /// is no time.
    ///
    /// ```
    /// use hookgate_testing::replay::Latency;
    ///
    /// let latency = Latency::of([300, 100, 200]).ok_or("no time")?;
    /// assert_eq!((latency.p50_us, latency.max_us), (200, 300));
    /// assert_eq!(Latency::of([]), None);
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub fn of(times: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut times: Vec<_> = times.into_iter().collect();
        times.sort_unstable();
        let max_us = *times.last()?;
        // The nearest rank: the smallest time that this percentage of the answers did not exceed.
        let rank = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100);
            times[rank.saturating_sub(1)]
        };
        Some(Self {
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
