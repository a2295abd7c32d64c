//! The reports of runs, dead letters and lost leases, and the operator's hooks that get them.
//!
//! A hook runs on a worker's thread, so it must not block. A panic in a hook has no effect.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hookgate::outcome;
use hookgate::{
    Delivery, Outcome,
    dedupe::StoreError,
    event::{EventId, EventType},
    internal::catch_panic,
    outcome::Failure,
};

use crate::engine::{Listed, one_line};
use crate::entry::EntryId;

/// The reason of an attempt that failed.
pub(super) type Reason = Arc<dyn Error + Send + Sync>;

/// How one run ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AttemptReport {
    /// The entry.
    pub id: EntryId,
    /// The outcome of the handler, as the layer would report it: handled, unhandled, dead-lettered
    /// or failed.
    pub outcome: Outcome,
    /// The state of the entry after the run.
    pub disposition: Disposition,
    /// The delivery that was handled.
    pub delivery: Delivery,
    /// The reason, if the run failed, can never succeed, or no handler exists for the event.
    pub reason: Option<Reason>,
    /// The number of this run, from 1.
    pub tries: u32,
    /// From the acceptance to the lease of this run.
    pub waited: Duration,
    /// From the beginning of the handler to its end.
    pub elapsed: Duration,
}

/// The state of an entry after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disposition {
    /// It is done, and stays done.
    Done,
    /// It is run again.
    Retry {
        /// The wait before that.
        after: Duration,
    },
    /// It is a dead letter: it is not run again, unless an operator makes it due.
    Dead,
    /// It was cut off by a shutdown and is due at once. The run does not count.
    Returned,
    /// The result is not stored: the lease was lost before the end, the store could not be reached
    /// in time, or it refused the settlement permanently. Another run will begin, or has begun
    /// already. The effects of this run remain.
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
    /// The number of its runs.
    pub tries: u32,
    /// The reason, in one line, as it is stored with the entry.
    pub error: String,
    /// The delivery. `None` if no run reported the end: the lease of the last run ended without a
    /// settlement, for example because its process was killed; the entry is [too
    /// old](super::Workers::claim_retention) to be run again; or the stored data was changed and is
    /// not a valid delivery.
    pub delivery: Option<Delivery>,
}

/// A lease that was lost while its run was in progress.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LostLease {
    /// The entry.
    pub id: EntryId,
    /// The delivery that is being handled.
    pub delivery: Delivery,
    /// The number of this run, from 1.
    pub tries: u32,
}

/// A step of the workers.
#[derive(Clone, Copy)]
#[allow(dead_code)] // the features decide which observers there are, and so which parts are read
pub(super) enum Step<'a> {
    /// The workers have started.
    Begun,
    /// A run has ended, and its settlement has succeeded or failed.
    Ended(&'a Span, &'a AttemptReport),
    /// An entry became a dead letter.
    DeadLettered(&'a DeadEntry),
    /// A lease was lost while its handler was running.
    LeaseLost(&'a LostLease),
    /// This call of the inbox's store failed.
    StoreFailed(&'static str, &'a StoreError),
}

type Hook<T> = Option<Arc<dyn Fn(&T) + Send + Sync>>;

/// The hooks that the user has set.
#[derive(Default)]
pub(super) struct Hooks {
    pub(super) settled: Hook<AttemptReport>,
    pub(super) failed: Hook<AttemptReport>,
    pub(super) dead: Hook<DeadEntry>,
    pub(super) lost: Hook<LostLease>,
}

impl Hooks {
    pub(super) fn observe(&self, step: Step<'_>) {
        match step {
            Step::Ended(_, report) => {
                call(&self.settled, report);
                if matches!(report.outcome, Outcome::Failed(_))
                    && report.disposition != Disposition::Returned
                {
                    call(&self.failed, report);
                }
            }
            Step::DeadLettered(entry) => call(&self.dead, entry),
            Step::LeaseLost(lost) => call(&self.lost, lost),
            Step::Begun | Step::StoreFailed(..) => {}
        }
    }
}

fn call<T>(hook: &Hook<T>, report: &T) {
    if let Some(hook) = hook {
        let _ = catch_panic(|| hook(report));
    }
}

impl Disposition {
    /// The name in metrics and logs.
    #[cfg(any(feature = "metrics", feature = "tracing"))]
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Retry { .. } => "retry",
            Self::Dead => "dead",
            Self::Returned => "returned",
            Self::Unrecorded => "unrecorded",
        }
    }
}

impl From<&Listed> for DeadEntry {
    /// A dead letter without a handler's result.
    fn from(listed: &Listed) -> Self {
        Self {
            id: listed.id,
            event_id: listed.event_id.clone(),
            event_type: listed.event_type.clone(),
            tries: listed.tries,
            error: listed.last_error.clone().unwrap_or_default(),
            delivery: None,
        }
    }
}

impl DeadEntry {
    /// The dead letter that a run has left, with the error that is stored with it.
    pub(super) fn of(report: &AttemptReport, error: Option<&str>) -> Self {
        let head = report.delivery.head();
        Self {
            id: report.id,
            event_id: head.id.clone(),
            event_type: head.event_type.clone(),
            tries: report.tries,
            error: error.unwrap_or_default().to_owned(),
            delivery: Some(report.delivery.clone()),
        }
    }
}

/// Returns the error that is stored with an entry after a failed run: one line of bounded length
/// with the name of the outcome and the reason that the handler gave. It contains no body and no
/// header.
pub(super) fn error_line(outcome: Outcome, reason: Option<&Reason>) -> String {
    let mut line = outcome.name().to_owned();
    if let Outcome::Failed(Failure::Status(status)) = outcome {
        line.push_str(&format!(" {status}"));
    }
    if let Some(reason) = reason {
        line.push_str(&format!(": {}", outcome::one_line(reason)));
    }
    one_line(&line)
}

/// The span of a run; empty without the feature `tracing`.
pub(super) struct Span(#[cfg(feature = "tracing")] pub(super) tracing::Span);

#[cfg_attr(not(feature = "tracing"), allow(unused_variables, clippy::unused_self))]
impl Span {
    pub(super) fn of(delivery: &Delivery, tries: u32) -> Self {
        #[cfg(feature = "tracing")]
        use tracing::field::Empty;
        Self(
            #[cfg(feature = "tracing")]
            tracing::info_span!(
                target: "hookgate::inbox",
                "inbox job",
                otel.kind = "consumer",
                error.r#type = Empty,
                messaging.operation.r#type = "process",
                messaging.message.id = delivery.event_id(),
                messaging.message.body.size = delivery.body().len(),
                hookgate.event.r#type = delivery.event_type(),
                hookgate.scope = delivery.verified().scope(),
                hookgate.key.name = delivery.verified().key_name(),
                hookgate.tries = tries,
                hookgate.outcome = Empty,
                hookgate.reason = Empty,
                traceparent = delivery.traceparent(),
            ),
        )
    }

    /// Returns a future that runs inside this span.
    pub(super) fn around<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        #[cfg(feature = "tracing")]
        let future = tracing::Instrument::instrument(future, self.0.clone());
        future
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

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
}
