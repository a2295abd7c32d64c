//! The hooks for the operator: one call for each delivery, for each run, and for each failure.
//!
//! The sender gets a status and a short message. All details go to the hooks, to `tracing` and into the response's extensions.
//! A hook runs on the thread that answers, so it must not block. A panic in a hook is caught and ignored.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::catch::caught;
use super::response::Shape;
use crate::dedupe::Attempt;
use crate::outcome::{Outcome, Refusal};
use crate::readable::Chain;
use crate::verify::Verified;
use crate::verify::{VerifyError, VerifyErrorKind};
use crate::walk::Delivery;

/// The error of a dead-letter hook.
pub type HookError = Box<dyn Error + Send + Sync>;

/// The reason of a refusal or failure: an error with its chain of sources.
pub type Reason = Arc<dyn Error + Send + Sync>;
pub(crate) type Hook<T> = Arc<dyn Fn(&T) + Send + Sync>;
type DeadLetterHook = dyn Fn(DeadLettered) -> Pin<Box<dyn Future<Output = Result<(), HookError>> + Send>>
    + Send
    + Sync;

/// The answer to one delivery. It is also in the extensions of the response.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The outcome of the delivery.
    pub outcome: Outcome,
    /// The status that was answered.
    pub status: u16,
    /// The delivery, where it was recognised: id, type, key and scope.
    pub delivery: Option<Delivery>,
    /// The reason, if the delivery was refused, failed or had no handler. Its chain of sources gives the exact cause.
    pub reason: Option<Reason>,
    /// Time from the layer's `call` to the answer.
    pub elapsed: Duration,
}

/// The end of one run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settled {
    /// The outcome of the run: handled, unhandled, dead-lettered, failed, or found done by the handler itself (`Replayed`). For
    /// an acceptance: accepted, replayed, refused by the sink, or aborted by a drain.
    pub outcome: Outcome,
    /// The delivery that was handled.
    pub delivery: Delivery,
    /// The reason, if the run failed or the event had no handler.
    pub reason: Option<Reason>,
    /// Time from the claim to the end of the handler. For an acceptance, the time of the sink.
    pub elapsed: Duration,
    /// Whether the request had been answered, or its sender had hung up, before the run ended. The run ends with the handler,
    /// or with a commit or release that is slow.
    pub late: bool,
}

/// An authentic delivery that was not handled this time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failed {
    /// The raw delivery.
    pub verified: Verified,
    /// The same delivery with its id and type, if they are usable.
    pub delivery: Option<Delivery>,
    /// The outcome of the delivery.
    pub outcome: Outcome,
    /// The reason.
    pub reason: Option<Reason>,
    /// The probable number of the attempt, from the event's `createdAt` and the retry schedule. `None` if the body has no such
    /// time.
    pub attempt: Option<Attempt>,
}

/// A delivery that can never succeed, for the dead-letter hook to store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadLettered {
    /// The raw delivery.
    pub delivery: Delivery,
    /// The reason that the handler gave.
    pub reason: String,
}

impl Answer {
    /// Returns the reason why the delivery was not authentic; `None` for other outcomes.
    #[must_use]
    pub fn verify_error(&self) -> Option<&VerifyError> {
        let refusal = self.reason.as_ref()?.downcast_ref::<Refusal>()?;
        refusal.verify_error()
    }

    /// Returns whether the delivery was refused as stale although its signature is right. This is the only sign that the
    /// sender's retries carry their first timestamp. The receiver checks at most eight stale deliveries a second for it, so use
    /// it as a sign and not as a count.
    #[must_use]
    pub fn is_stale_but_authentic(&self) -> bool {
        let kind = self.verify_error().map(VerifyError::kind);
        matches!(kind, Some(VerifyErrorKind::StaleButAuthentic { .. }))
    }
}

/// One line: the status, the outcome, and the reason.
///
/// ```text
/// 401 not_authentic: delivery refused: not authentic or not fresh: the signature is not that of these bytes under any live key
/// ```
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status, self.outcome.name())?;
        write_reason(f, self.reason.as_ref())
    }
}

/// One line: the outcome, and the reason.
impl fmt::Display for Settled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.outcome.name())?;
        write_reason(f, self.reason.as_ref())
    }
}

fn write_reason(f: &mut fmt::Formatter<'_>, reason: Option<&Reason>) -> fmt::Result {
    match reason {
        Some(reason) => write!(f, ": {}", Chain(reason)),
        None => Ok(()),
    }
}

/// The hooks that are set on the receiver.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) answer: Option<Hook<Answer>>,
    pub(crate) settled: Option<Hook<Settled>>,
    pub(crate) failed: Option<Hook<Failed>>,
    pub(crate) dead_letter: Option<Arc<DeadLetterHook>>,
    pub(crate) shape: Option<Arc<Shape>>,
}

/// A panic in a hook does no harm: the delivery is still answered.
impl Hooks {
    pub(crate) fn answered(&self, answer: &Answer) {
        if let Some(hook) = &self.answer {
            let _ = caught(|| hook(answer));
        }
    }

    pub(crate) fn settled(&self, settled: &Settled) {
        if let Some(hook) = &self.settled {
            let _ = caught(|| hook(settled));
        }
    }

    /// Stops the calls of the hooks that were set, once `holds` returns false.
    pub(crate) fn only_if(&mut self, holds: impl Fn() -> bool + Clone + Send + Sync + 'static) {
        fn guarded<T: 'static>(
            hook: &mut Option<Hook<T>>,
            holds: impl Fn() -> bool + Send + Sync + 'static,
        ) {
            *hook = hook.take().map(|hook| -> Hook<T> {
                Arc::new(move |told: &T| {
                    if holds() {
                        hook(told);
                    }
                })
            });
        }
        guarded(&mut self.answer, holds.clone());
        guarded(&mut self.settled, holds.clone());
        guarded(&mut self.failed, holds);
    }
}
