//! What the operator is told: once a delivery, once a run, and for each failure.
//!
//! The sender learns a status and a flat message; everything that explains it comes here, to `tracing` and into the
//! response's extensions. A hook runs on the thread that answers, so it must not block; a panic in it is swallowed.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::catch::caught;
use super::response::Shape;
use crate::dedupe::Attempt;
use crate::delivery::Delivery;
use crate::error::{VerifyError, VerifyErrorKind};
use crate::event::created_at;
use crate::outcome::{Outcome, Refusal, RefusalKind};
use crate::receiver::Receiver;
use crate::verify::Verified;

/// What a dead-letter hook may fail with.
pub type HookError = Box<dyn Error + Send + Sync>;

/// Why something was refused or failed: an error with its chain of sources.
pub type Reason = Arc<dyn Error + Send + Sync>;
type Hook<T> = Arc<dyn Fn(&T) + Send + Sync>;
type DeadLetterHook = dyn Fn(DeadLettered) -> Pin<Box<dyn Future<Output = Result<(), HookError>> + Send>>
    + Send
    + Sync;

/// How a delivery was answered. Also found in the extensions of the response.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// What became of the delivery.
    pub outcome: Outcome,
    /// The status that was answered.
    pub status: u16,
    /// The delivery, where it was recognised: id, type, key and scope.
    pub delivery: Option<Delivery>,
    /// Why, where it was refused, failed or found nobody to handle it. Its chain of sources says exactly what was wrong.
    pub reason: Option<Reason>,
    /// Time from the layer's `call` to the answer.
    pub elapsed: Duration,
}

/// How a run ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settled {
    /// What became of the run: handled, unhandled, dead-lettered, failed, or found done by the handler itself (`Replayed`).
    /// Of an acceptance: accepted, replayed, refused by the sink, or cut off by a drain.
    pub outcome: Outcome,
    /// The delivery that was handled.
    pub delivery: Delivery,
    /// Why, where it failed or found nobody to handle it.
    pub reason: Option<Reason>,
    /// Time from the claim to the end of the handler; of an acceptance, the sink's.
    pub elapsed: Duration,
    /// Whether the request had been answered, or its sender had hung up, before the end: that of the handler, or that of a commit or
    /// release that was slow.
    pub late: bool,
}

/// An authentic delivery that came to nothing this time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failed {
    /// The raw delivery.
    pub verified: Verified,
    /// The same with its id and type, where it has usable ones.
    pub delivery: Option<Delivery>,
    /// What became of it.
    pub outcome: Outcome,
    /// Why.
    pub reason: Option<Reason>,
    /// Which attempt it probably was, by the event's `createdAt` and the retry schedule. `None` where the body does not say.
    pub attempt: Option<Attempt>,
}

/// A delivery that can never succeed, for the dead-letter hook to keep.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadLettered {
    /// The raw delivery.
    pub delivery: Delivery,
    /// What the handler said.
    pub reason: String,
}

impl Answer {
    /// In which way the delivery was not authentic, where that was the reason.
    #[must_use]
    pub fn verify_error(&self) -> Option<&VerifyError> {
        let refusal = self.reason.as_ref()?.downcast_ref::<Refusal>()?;
        refusal.verify_error()
    }

    /// Whether the delivery was refused as stale although its signature is right: the one sign that the sender's retries
    /// carry their first timestamp. Looked for in at most eight stale deliveries a second, so count it as a sign and not as a number.
    #[must_use]
    pub fn is_stale_but_authentic(&self) -> bool {
        let kind = self.verify_error().map(VerifyError::kind);
        matches!(kind, Some(VerifyErrorKind::StaleButAuthentic { .. }))
    }
}

/// In one line: the status, the outcome, and why.
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

/// In one line: the outcome, and why.
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

/// An error and what lies below it, in one line.
pub(crate) struct Chain<'a>(pub(crate) &'a Reason);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut below = self.0.source();
        while let Some(error) = below {
            write!(f, ": {error}")?;
            below = error.source();
        }
        Ok(())
    }
}

/// What the receiver was told to call.
#[derive(Default)]
pub(super) struct Hooks {
    pub(super) answer: Option<Hook<Answer>>,
    pub(super) settled: Option<Hook<Settled>>,
    pub(super) failed: Option<Hook<Failed>>,
    pub(super) dead_letter: Option<Arc<DeadLetterHook>>,
    pub(super) shape: Option<Arc<Shape>>,
}

/// A panic in a hook harms nothing: the delivery is answered all the same.
impl Hooks {
    pub(super) fn answered(&self, answer: &Answer) {
        if let Some(hook) = &self.answer {
            let _ = caught(|| hook(answer));
        }
    }

    pub(super) fn settled(&self, settled: &Settled) {
        if let Some(hook) = &self.settled {
            let _ = caught(|| hook(settled));
        }
    }
}

#[cfg(feature = "testing")]
impl crate::receiver::ReceiverBuilder {
    /// Tells the hooks that were set nothing more once `holds` says no.
    pub(crate) fn tell_only_if(
        mut self,
        holds: impl Fn() -> bool + Clone + Send + Sync + 'static,
    ) -> Self {
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
        let hooks = &mut self.layer.hooks;
        guarded(&mut hooks.answer, holds.clone());
        guarded(&mut hooks.settled, holds.clone());
        guarded(&mut hooks.failed, holds);
        self
    }
}

impl Receiver {
    /// Tells the operator of an authentic delivery that came to nothing.
    pub(super) fn report_failure(
        &self,
        verified: &Verified,
        delivery: Option<&Delivery>,
        outcome: Outcome,
        reason: Option<Reason>,
    ) {
        let hook = self.shared.layer.hooks.failed.as_ref();
        if hook.is_none() && !cfg!(feature = "metrics") {
            return;
        }
        let attempt = self.attempt(verified);
        // A copy that found another one running is no failure: the other one tells its own end. But it may be a claim that
        // died with its process, and the sender may not come again.
        let beside_a_run = matches!(
            outcome,
            Outcome::Refused(RefusalKind::StillRunning | RefusalKind::TooManyWaiting)
        );
        let may_be_last = attempt.as_ref().is_some_and(|attempt| attempt.may_be_last);
        if beside_a_run && !may_be_last {
            return;
        }
        super::metrics::failed(self, may_be_last);
        let Some(hook) = hook else { return };
        let failed = Failed {
            verified: verified.clone(),
            delivery: delivery.cloned(),
            outcome,
            reason,
            attempt,
        };
        let _ = caught(|| hook(&failed));
    }

    /// Which attempt a delivery probably is; `None` where its body does not say when it was created.
    pub(super) fn attempt(&self, verified: &Verified) -> Option<Attempt> {
        // Unsigned by itself, but part of the signed body; an event from the future counts as brand new.
        let created = created_at(verified)?;
        let age = self.shared.clock.now().since(created).unwrap_or_default();
        Some(self.shared.schedule.probable_attempt(age))
    }
}
