//! The report of a sender: the result of each event.

use std::fmt;
use std::time::Duration;

use hookgate::clock::UnixSeconds;

use super::faults::NetworkFault;

/// One event for one subscription.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SentEvent {
    /// The subscription's id.
    pub subscription: String,
    /// The event's id.
    pub id: String,
    /// The event's type.
    pub event_type: String,
    /// The time of the event, by the sender's clock.
    pub emitted_at: UnixSeconds,
    /// The result.
    pub disposition: Disposition,
    /// All attempts so far.
    pub attempts: Vec<SentAttempt>,
    /// The wait after the last attempt until the next one, where there is one. Already divided by
    /// the sender's speed.
    pub next_wait: Option<Duration>,
}

/// The result of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Disposition {
    /// Not finished: an attempt runs, or the sender waits for the next one.
    UnderWay,
    /// Answered 2xx.
    Delivered,
    /// No attempt was answered 2xx, and there are no more attempts.
    Discarded,
}

/// One attempt.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SentAttempt {
    /// The number of the attempt, counted from 1.
    pub number: u32,
    /// The time of its start, by the sender's clock.
    pub at: UnixSeconds,
    /// The time from the event to the start of the attempt.
    pub since_emitted: Duration,
    /// The time that the delivery was signed with.
    pub timestamp: UnixSeconds,
    /// The end of the attempt.
    pub end: AttemptEnd,
    /// The duration of the attempt.
    pub elapsed: Duration,
    /// Whether the receiver answered that the event was handled before: `Idempotent-Replayed`.
    pub replayed: bool,
    /// The fault of the network.
    pub fault: Option<NetworkFault>,
    /// The end of the second copy, where the network made one.
    pub copy: Option<AttemptEnd>,
}

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AttemptEnd {
    /// The receiver answered with this status.
    Answered(u16),
    /// The sender's timeout was over, and it hung up.
    TimedOut,
    /// There was no answer, for this reason.
    Failed(String),
}

/// The results of all events that were sent so far.
///
/// `Display` prints the counts, every discarded event with all its attempts, and the seed of the
/// faults: enough for the message of a failed assertion.
#[derive(Clone, Debug)]
#[must_use]
pub struct SenderReport {
    pub(super) seed: Option<u64>,
    pub(super) events: Vec<SentEvent>,
}

impl AttemptEnd {
    /// Returns whether the service counts the event as delivered: only 2xx.
    #[must_use]
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Answered(200..=299))
    }

    /// The status, where there was an answer.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Answered(status) => Some(*status),
            Self::TimedOut | Self::Failed(_) => None,
        }
    }
}

impl SenderReport {
    /// All events of all subscriptions that take them, in the order of `emit`.
    #[must_use]
    pub fn events(&self) -> &[SentEvent] {
        &self.events
    }

    /// The events that were answered 2xx.
    pub fn delivered(&self) -> impl Iterator<Item = &SentEvent> {
        self.of(Disposition::Delivered)
    }

    /// The events that the sender has discarded: lost, unless the receiver has handled them
    /// although it did not answer 2xx.
    pub fn discarded(&self) -> impl Iterator<Item = &SentEvent> {
        self.of(Disposition::Discarded)
    }

    /// The events that are not finished.
    pub fn under_way(&self) -> impl Iterator<Item = &SentEvent> {
        self.of(Disposition::UnderWay)
    }

    /// The number of all attempts.
    #[must_use]
    pub fn attempts(&self) -> usize {
        self.events.iter().map(|event| event.attempts.len()).sum()
    }

    /// The seed of the network's faults, where faults are set.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }

    fn of(&self, disposition: Disposition) -> impl Iterator<Item = &SentEvent> {
        self.events
            .iter()
            .filter(move |event| event.disposition == disposition)
    }
}

impl fmt::Display for SenderReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} events: {} delivered, {} discarded, {} under way; {} attempts",
            self.events.len(),
            self.delivered().count(),
            self.discarded().count(),
            self.under_way().count(),
            self.attempts(),
        )?;
        if let Some(seed) = self.seed {
            write!(f, "; network faults by the seed {seed}")?;
        }
        for event in self.discarded() {
            write!(f, "\ndiscarded: {event}")?;
        }
        Ok(())
    }
}

impl fmt::Display for SentEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} for {}",
            self.id, self.event_type, self.subscription
        )?;
        for (at, attempt) in self.attempts.iter().enumerate() {
            let before = if at == 0 { ": " } else { ", " };
            write!(
                f,
                "{before}{} after {} s",
                attempt.end,
                attempt.since_emitted.as_secs()
            )?;
            if let Some(fault) = attempt.fault {
                write!(f, " ({fault})")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for AttemptEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered(status) => status.fmt(f),
            Self::TimedOut => f.write_str("no answer in time"),
            Self::Failed(reason) => f.write_str(reason),
        }
    }
}

/// Returns the meaning of a status, in one line, where a receiver of hookgate answers it: the table
/// of outcomes in reverse.
///
/// Another receiver may use the status with another meaning.
///
/// ```
/// use hookgate_testing::sender::meaning;
///
/// assert!(meaning(401).contains("not authentic"));
/// assert!(meaning(204).starts_with("handled"));
/// ```
#[must_use]
pub fn meaning(status: u16) -> &'static str {
    match status {
        200..=299 => "handled, or handled before: the service does not send it again",
        300..=399 => {
            "a redirect, which the service does not follow: give the subscription the URL that it leads to"
        }
        400 => {
            "authentic, but its body has no usable id and type, or a header names another event than the body"
        }
        401 => {
            "not authentic or not fresh: another secret, a body that was changed on the way, a clock that is off, a header that is missing or repeated, or an unknown subscription"
        }
        404 => {
            "there is no receiver at this path: compare it with the path of the receiver's route"
        }
        405 => {
            "the receiver takes POST alone; where it was POST, the server in front of it does not"
        }
        408 => "the body did not arrive within the receiver's deadline",
        413 => "the body is longer than the receiver's limit",
        415 => "the receiver takes application/json without compression",
        422 => {
            "authentic, but the event does not fit the type that the handler asks for, or nothing here handles such events"
        }
        429 => "a server in front of the receiver refuses too many requests at once",
        500 => {
            "the handler failed or panicked, or the server that it passes deliveries on to; or a dead-letter hook is missing or failed"
        }
        502 | 504 => "a proxy has no answer from the receiver",
        503 => {
            "not now: the run goes on beyond its budget, a copy is still running, all permits are in use, a store or look-up is down, or the receiver is shutting down"
        }
        _ => {
            "what the handler or a server in front of it answered: any status but 2xx is sent again"
        }
    }
}
