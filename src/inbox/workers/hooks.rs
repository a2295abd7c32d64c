//! What the operator is told of tries, dead letters and lost leases.
//!
//! A hook runs on the thread that works, so it must not block; a panic in it harms nothing.

use std::sync::Arc;
use std::time::Duration;

use crate::caught::caught;
use crate::delivery::Delivery;
use crate::event::{EventId, EventType};
use crate::inbox::engine::{EntryId, Listed};
use crate::inbox::line::one_line;
use crate::layer::{Chain, Reason};
use crate::outcome::Outcome;

type Hook<T> = Arc<dyn Fn(&T) + Send + Sync>;

/// How one try ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tried {
    /// The entry.
    pub id: EntryId,
    /// What the handler made of it, as the layer would say: handled, unhandled, dead-lettered or failed.
    pub outcome: Outcome,
    /// What becomes of the entry.
    pub fate: Fate,
    /// The delivery that was handled.
    pub delivery: Delivery,
    /// Why, where it failed, can never succeed or found nobody to handle it.
    pub reason: Option<Reason>,
    /// Which try it was, from 1.
    pub tries: u32,
    /// From the acceptance to the lease of this try.
    pub waited: Duration,
    /// From the beginning of the handler to its end.
    pub elapsed: Duration,
}

/// What becomes of an entry after a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// It is done, and stays so.
    Done,
    /// It is tried again.
    Retry {
        /// After so long.
        after: Duration,
    },
    /// It is a dead letter: nobody tries again, unless told to.
    Dead,
    /// It was cut off by a shutdown and is due at once. The try does not count.
    Returned,
    /// The lease was lost before the end, or the store could not be told of it in time, or has refused it for good: another try comes, or
    /// is under way. The effects of this one stand.
    Unrecorded,
}

/// An entry that became a dead letter.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadEntry {
    /// The entry.
    pub id: EntryId,
    /// The event's id.
    pub event_id: EventId,
    /// The event's type.
    pub event_type: EventType,
    /// How often it was tried.
    pub tries: u32,
    /// Why, in one line, as it is kept with the entry.
    pub error: String,
    /// The delivery. `None` where no try could tell: the lease of the last one ended without a word, as when its process was killed, the
    /// entry is [too old](super::Workers::claim_retention) to be run again, or what is stored is no delivery, since it was changed.
    pub delivery: Option<Delivery>,
}

/// A lease that was lost while its try was running.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LostLease {
    /// The entry.
    pub id: EntryId,
    /// The delivery that is being handled.
    pub delivery: Delivery,
    /// Which try it is, from 1.
    pub tries: u32,
}

/// What the workers were told to call.
#[derive(Default)]
pub(super) struct Hooks {
    pub(super) settled: Option<Hook<Tried>>,
    pub(super) failed: Option<Hook<Tried>>,
    pub(super) dead: Option<Hook<DeadEntry>>,
    pub(super) lost: Option<Hook<LostLease>>,
}

impl Hooks {
    /// Tells of a try's end, once it is settled.
    pub(super) fn tried(&self, tried: &Tried, error: Option<&str>) {
        call(self.settled.as_ref(), tried);
        if matches!(tried.outcome, Outcome::Failed(_)) && tried.fate != Fate::Returned {
            call(self.failed.as_ref(), tried);
        }
        if tried.fate == Fate::Dead {
            let head = tried.delivery.head();
            call(
                self.dead.as_ref(),
                &DeadEntry {
                    id: tried.id,
                    event_id: head.id.clone(),
                    event_type: head.event_type.clone(),
                    tries: tried.tries,
                    error: error.unwrap_or_default().to_owned(),
                    delivery: Some(tried.delivery.clone()),
                },
            );
        }
    }

    /// Tells of an entry that no handler has made a dead letter.
    pub(super) fn buried(&self, listed: &Listed) {
        call(
            self.dead.as_ref(),
            &DeadEntry {
                id: listed.id,
                event_id: listed.event_id.clone(),
                event_type: listed.event_type.clone(),
                tries: listed.tries,
                error: listed.last_error.clone().unwrap_or_default(),
                delivery: None,
            },
        );
    }

    pub(super) fn lost(&self, lost: &LostLease) {
        call(self.lost.as_ref(), lost);
    }
}

fn call<T>(hook: Option<&Hook<T>>, told: &T) {
    if let Some(hook) = hook {
        let _ = caught(|| hook(told));
    }
}

/// What is kept with an entry of a try that failed: one line of bounded length, made of the outcome's name, and of what the handler gave
/// as its reason. No body, no header.
pub(super) fn error_line(outcome: Outcome, reason: Option<&Reason>) -> String {
    let mut line = outcome.name().to_owned();
    if let Outcome::Failed(crate::outcome::Failure::Status(status)) = outcome {
        line.push_str(&format!(" {status}"));
    }
    if let Some(reason) = reason {
        // A handler's own error may panic where it is written.
        let said = caught(|| Chain(reason).to_string());
        line.push_str(": ");
        line.push_str(&said.unwrap_or_else(|_| "the reason panicked when it was written".into()));
    }
    one_line(&line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Failure;
    use std::fmt;

    #[test]
    fn an_error_is_one_line() {
        let reason: Reason = Arc::from(Box::<dyn std::error::Error + Send + Sync>::from(
            "first\nsecond\r\u{1b}[2Jthird",
        ));
        let failed = Outcome::Failed(Failure::Status(503));
        let line = error_line(failed, Some(&reason));
        assert_eq!(line, "handler_status 503: first second  [2Jthird");
        assert_eq!(
            error_line(Outcome::Failed(Failure::Panicked), None),
            "panicked"
        );
    }

    #[test]
    fn a_reason_that_panics_where_it_is_written_stays_in() {
        #[derive(Debug)]
        struct Bomb;
        impl fmt::Display for Bomb {
            fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
                panic!("made-up panic")
            }
        }
        impl std::error::Error for Bomb {}
        let reason: Reason = Arc::new(Bomb);
        let line = error_line(Outcome::Failed(Failure::Misfit), Some(&reason));
        assert_eq!(line, "misfit: the reason panicked when it was written");
    }
}
