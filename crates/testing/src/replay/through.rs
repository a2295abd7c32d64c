//! Sends a log through a transport, for example to a URL.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use hookgate::clock::{Clock, SystemClock};
use hookgate::verify::{EVENT_ID, EVENT_TYPE};
use http::Response;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::answered::{Answered, AnsweredReport};
use super::builder::Replay;
use super::entry::{Entry, Evidence};
use super::mode::Portable;
use super::{ReplayError, ReplayErrorKind as Kind};
use crate::messages::chain;
use crate::transport::Transport;

/// The longest gap between two deliveries: the lowest rate is one delivery in this time. It prevents an overflow of a point of
/// time.
const LONGEST_GAP: Duration = Duration::from_secs(24 * 3_600);

/// A replay through a transport; made by [`Replay::through`]. Nothing is sent before [`run`](Self::run).
#[must_use = "nothing is sent before `run`"]
pub struct Through<'t, M, T> {
    replay: Replay<M>,
    transport: T,
    skipped: usize,
    settings: Settings,
    on_answer: Box<dyn FnMut(&Answered) + Send + 't>,
    stop: Pin<Box<dyn Future<Output = ()> + Send + 't>>,
}

struct Settings {
    copies: u32,
    shuffled_by: Option<u64>,
    concurrency: usize,
    gap: Duration,
    answer_timeout: Duration,
}

impl<M: Portable> Replay<M> {
    /// Replays through a transport, to a receiver whose clock and store are out of reach. The receiver's work can't be seen, so
    /// the report says only the *answers*, and never the commits. Faults and waits between deliveries are those of [`Through`]
    /// alone.
    ///
    /// A delivery is signed again where its signature is right under the secrets, or where the log does not say that it was
    /// refused as not authentic: the receiver's secret may differ from the log's. A delivery whose body was not recorded is
    /// skipped, and counted as [`skipped`](AnsweredReport::skipped).
    pub fn through<'t, T: Transport>(self, transport: T) -> Through<'t, M, T> {
        let all = self.chosen.len();
        let replay = self.only(|logged| logged.body.is_some());
        Through {
            skipped: all - replay.chosen.len(),
            replay,
            transport,
            settings: Settings {
                copies: 0,
                shuffled_by: None,
                concurrency: 1,
                gap: Duration::ZERO,
                answer_timeout: Duration::from_secs(5),
            },
            on_answer: Box::new(|_| {}),
            stop: Box::pin(pending()),
        }
    }
}

impl<'t, M: Portable, T: Transport> Through<'t, M, T> {
    /// Sends this number of copies after each delivery. Default: 0.
    pub fn duplicated(mut self, copies: u32) -> Self {
        self.settings.copies = copies;
        self
    }

    /// Sends the deliveries in an order that this seed gives, in place of the log's order.
    pub fn shuffled(mut self, seed: u64) -> Self {
        self.settings.shuffled_by = Some(seed);
        self
    }

    /// Sets how many deliveries may wait for their answers at a time, at least one. Default: 1, one after the other.
    pub fn concurrency(mut self, deliveries: usize) -> Self {
        self.settings.concurrency = deliveries.max(1);
        self
    }

    /// Sets the highest number of deliveries a second. Default: no limit besides the answers. The lowest rate is one a day, even
    /// if a lower one is set.
    pub fn per_second(mut self, deliveries: f64) -> Self {
        let gap = Duration::try_from_secs_f64(1.0 / deliveries);
        self.settings.gap = gap.map_or(LONGEST_GAP, |gap| gap.min(LONGEST_GAP));
        self
    }

    /// Sets the longest wait for an answer. Default: 5 s, as the service does.
    pub fn answer_timeout(mut self, answer_timeout: Duration) -> Self {
        self.settings.answer_timeout = answer_timeout;
        self
    }

    /// Calls this function with each answer, as it arrives.
    pub fn on_answer(mut self, call: impl FnMut(&Answered) + Send + 't) -> Self {
        self.on_answer = Box::new(call);
        self
    }

    /// Sends no further delivery once this future has ended. The report then holds the answers until that time.
    pub fn until(mut self, stop: impl Future<Output = ()> + Send + 't) -> Self {
        self.stop = Box::pin(stop);
        self
    }

    /// The number of deliveries that will be sent, copies included.
    #[must_use]
    pub fn planned(&self) -> usize {
        let copies = usize::try_from(self.settings.copies).unwrap_or(usize::MAX);
        let each = copies.saturating_add(1);
        self.replay.chosen.len().saturating_mul(each)
    }

    /// Sends all deliveries.
    ///
    /// # Errors
    /// `Empty`, `NoSecret`, `Keys`, `Unsendable`. A receiver that can't be reached is not an error: the report says so for each
    /// delivery.
    pub async fn run(mut self) -> Result<AnsweredReport, ReplayError> {
        let portable = self.replay.entries(Evidence::SignatureOrLog)?;
        if portable.is_empty() {
            return Err(ReplayError::new(Kind::Empty));
        }
        let mut order: VecDeque<_> = (0..portable.len())
            .flat_map(|entry| (0..=self.settings.copies).map(move |copy| (entry, copy)))
            .collect();
        if let Some(seed) = self.settings.shuffled_by {
            fastrand::Rng::with_seed(seed).shuffle(order.make_contiguous());
        }
        let planned = order.len();
        let began = Instant::now();
        let (mut tasks, mut next_at) = (JoinSet::new(), began);
        let mut answers = Vec::with_capacity(planned);
        let interrupted = loop {
            let free = tasks.len() < self.settings.concurrency;
            let may_send = free && !order.is_empty();
            if !may_send && tasks.is_empty() {
                break false;
            }
            let mut turn = pin!(sleep_until(next_at));
            let step = poll_fn(|context| {
                if self.stop.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Step::Stop);
                }
                if let Poll::Ready(Some(joined)) = tasks.poll_join_next(context) {
                    return Poll::Ready(Step::Answered(joined));
                }
                if may_send
                    && (self.settings.gap.is_zero() || turn.as_mut().poll(context).is_ready())
                {
                    return Poll::Ready(Step::Send);
                }
                Poll::Pending
            });
            match step.await {
                Step::Stop => break true,
                Step::Send => {
                    // No burst after a delay: the rate is an upper limit.
                    next_at = next_at.max(Instant::now()) + self.settings.gap;
                    if let Some((entry, copy)) = order.pop_front() {
                        let transport = self.transport.clone();
                        let answer_timeout = self.settings.answer_timeout;
                        tasks.spawn(send(transport, answer_timeout, &portable[entry], copy));
                    }
                }
                Step::Answered(Ok(answered)) => {
                    (self.on_answer)(&answered);
                    answers.push(answered);
                }
                // A transport that panics has no answer to report.
                Step::Answered(Err(_)) => {}
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
    let mut answered = Answered {
        line: entry.line,
        copy,
        event_id: unsigned(EVENT_ID),
        event_type: unsigned(EVENT_TYPE),
        resigned: entry.resigned,
        status: None,
        replayed: false,
        failure: None,
        elapsed_us: 0,
        logged_status: entry.recorded.as_ref().map(|(status, _)| *status),
    };
    if let Some(event) = entry.event() {
        answered.event_id = Some(event.id.clone());
        answered.event_type = Some(event.event_type.clone());
    }
    async move {
        let began = Instant::now();
        let answer = timeout(answer_timeout, transport.deliver(request)).await;
        answered.elapsed_us = micros(began.elapsed());
        match answer {
            Ok(Ok(response)) => answered.set_answer(&response),
            Ok(Err(error)) => answered.failure = Some(chain(&*error)),
            Err(_) => {
                let millis = answer_timeout.as_millis();
                answered.failure = Some(format!("no answer within {millis} ms"));
            }
        }
        answered
    }
}

enum Step {
    Stop,
    Send,
    Answered(Result<Answered, tokio::task::JoinError>),
}

impl Answered {
    fn set_answer(&mut self, response: &Response<Bytes>) {
        self.status = Some(response.status().as_u16());
        self.replayed = response.headers().contains_key("idempotent-replayed");
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl<M: fmt::Debug, T> fmt::Debug for Through<'_, M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Through")
            .field("replay", &self.replay)
            .finish_non_exhaustive()
    }
}
