//! What became of what was sent.

use std::fmt;
use std::time::Duration;

use super::faults::NetworkFault;
use crate::clock::UnixSeconds;

/// One event on its way to one subscription.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SentEvent {
    /// The subscription's id.
    pub subscription: String,
    /// The event's id.
    pub id: String,
    /// The event's type.
    pub event_type: String,
    /// When the event occurred, by the sender's clock.
    pub emitted_at: UnixSeconds,
    /// What became of it.
    pub fate: Fate,
    /// Every attempt so far.
    pub attempts: Vec<SentAttempt>,
    /// How long the sender waits after the last attempt until it tries again, where it does. Divided by the sender's speed already.
    pub next_wait: Option<Duration>,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fate {
    /// Not decided yet.
    UnderWay,
    /// Answered 2xx.
    Delivered,
    /// No attempt was answered 2xx, and the last one is over.
    Discarded,
}

/// One attempt to deliver.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SentAttempt {
    /// Counted from 1.
    pub number: u32,
    /// When it began, by the sender's clock.
    pub at: UnixSeconds,
    /// When it began, since the event occurred.
    pub since_emitted: Duration,
    /// The time that it was signed with.
    pub timestamp: UnixSeconds,
    /// How it ended.
    pub end: AttemptEnd,
    /// How long it took.
    pub elapsed: Duration,
    /// Whether the receiver said that the event was handled before: `Idempotent-Replayed`.
    pub replayed: bool,
    /// What it met on its way.
    pub fault: Option<NetworkFault>,
    /// How the second copy ended, where the network made one.
    pub copy: Option<AttemptEnd>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AttemptEnd {
    /// With this status.
    Answered(u16),
    /// The sender's patience was over, and it hung up.
    TimedOut,
    /// There was no answer, for this reason.
    Failed(String),
}

/// What became of everything that was sent so far.
///
/// Printed, it counts, names every event that was discarded with all its attempts, and says the seed of the faults: enough for the
/// message of a failed assertion.
#[derive(Clone, Debug)]
#[must_use]
pub struct SenderReport {
    pub(super) seed: Option<u64>,
    pub(super) events: Vec<SentEvent>,
}

impl AttemptEnd {
    /// Whether the service counts the event as delivered: 2xx, and nothing else.
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
    /// Every event for every subscription that takes it, in the order of their occurrence.
    #[must_use]
    pub fn events(&self) -> &[SentEvent] {
        &self.events
    }

    /// Those that were answered 2xx.
    pub fn delivered(&self) -> impl Iterator<Item = &SentEvent> {
        self.of(Fate::Delivered)
    }

    /// Those that the sender has given up: lost, unless the receiver has handled them all the same.
    pub fn discarded(&self) -> impl Iterator<Item = &SentEvent> {
        self.of(Fate::Discarded)
    }

    /// Those that are not decided yet.
    pub fn under_way(&self) -> impl Iterator<Item = &SentEvent> {
        self.of(Fate::UnderWay)
    }

    /// How many attempts there were.
    #[must_use]
    pub fn attempts(&self) -> usize {
        self.events.iter().map(|event| event.attempts.len()).sum()
    }

    /// The seed of the network's faults, where there are some.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }

    fn of(&self, fate: Fate) -> impl Iterator<Item = &SentEvent> {
        self.events.iter().filter(move |event| event.fate == fate)
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
