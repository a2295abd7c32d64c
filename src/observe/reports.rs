//! The reports to the operator: one for each delivery, for each run, and for each failure.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::dedupe::Attempt;
use crate::lookup::SubscriptionId;
use crate::outcome::{Outcome, Refusal};
use crate::pipeline::Delivery;
use crate::readable::Chain;
use crate::verify::{Verified, VerifyError};

/// The reason of a refusal or failure: an error with its chain of sources.
pub(crate) type Reason = Arc<dyn Error + Send + Sync>;

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
    /// The reason, if the delivery was refused, failed or had no handler. Its chain of sources
    /// gives the exact cause.
    pub reason: Option<Reason>,
    /// Time from the layer's `call` to the answer.
    pub elapsed: Duration,
}

/// The end of one run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settled {
    /// The outcome of the run: handled, unhandled, dead-lettered, failed, or found done by the
    /// handler itself (`Replayed`). For an acceptance: accepted, replayed, refused by the sink, or
    /// aborted by a drain.
    pub outcome: Outcome,
    /// The delivery that was handled.
    pub delivery: Delivery,
    /// The reason, if the run failed or the event had no handler.
    pub reason: Option<Reason>,
    /// Time from the claim to the end of the handler. For an acceptance, the time of the sink.
    pub elapsed: Duration,
    /// Whether the request had been answered, or its sender had hung up, before the run ended. The
    /// run ends with the handler, or with a commit or release that is slow.
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
    /// The probable number of the attempt, from the event's `createdAt` and the retry schedule.
    /// `None` if the body has no such time.
    pub attempt: Option<Attempt>,
}

impl Answer {
    /// Returns the reason why the delivery was not authentic; `None` for other outcomes.
    #[must_use]
    pub fn verify_error(&self) -> Option<&VerifyError> {
        self.refusal()?.verify_error()
    }

    /// Returns the subscription that a refused request claims to come from; see
    /// [`Refusal::claimed_subscription`].
    ///
    /// # Security
    /// **Unproven**: any client can send any id of this form.
    #[must_use]
    pub fn claimed_subscription(&self) -> Option<&SubscriptionId> {
        self.refusal()?.claimed_subscription()
    }

    /// Returns the reason and its sources in one line, without control characters and not longer
    /// than 2 KiB, as the log lines have it. `None` if there is no reason, or if its text panicked.
    ///
    /// ```
    /// use hookgate::{Delivery, MemoryStore, Receiver, Secret, layer::Answer};
    /// use http::{Request, StatusCode};
    /// use http_body_util::Full;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let receiver = Receiver::builder()
    ///     .secret(Secret::new("whsec_made_up_for_this_example")?)
    ///     .store(MemoryStore::default())
    ///     .build()?;
    /// let request = Request::post("/").body(Full::<bytes::Bytes>::from("{}"))?;
    /// let response = receiver.handle(request, async |_: Delivery| StatusCode::NO_CONTENT).await;
    ///
    /// let answer: &Answer = response.extensions().get().expect("each response has it");
    /// let reason = answer.reason_line().expect("it was refused");
    /// assert!(reason.ends_with(": header x-service-signature is missing"), "{reason}");
    /// assert!(answer.authentic().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn reason_line(&self) -> Option<String> {
        let reason = self.reason.as_ref();
        reason.map(|reason| Chain(reason).to_string())
    }

    pub(super) fn refusal(&self) -> Option<&Refusal> {
        self.reason.as_ref()?.downcast_ref()
    }

    /// Returns the delivery as it was received, if it is authentic; also where it was refused
    /// because of its content, so that [`delivery`](Self::delivery) is `None`.
    #[must_use]
    pub fn authentic(&self) -> Option<&Verified> {
        let delivery = self.delivery.as_ref().map(Delivery::verified);
        delivery.or_else(|| self.refusal()?.authentic())
    }
}

/// One line: the status, the outcome, and the reason; of a refused request also the subscription
/// that it claims to come from.
///
/// ```text
/// 401 not_authentic: delivery refused: not authentic or not fresh: the signature is not that of these bytes under any live key (claimed subscription, unproven: wh_1)
/// ```
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status, self.outcome.name())?;
        write_reason(f, self.reason.as_ref())?;
        match self.claimed_subscription() {
            Some(id) => write!(f, " (claimed subscription, unproven: {id})"),
            None => Ok(()),
        }
    }
}

/// One line: the outcome, and the reason.
impl fmt::Display for Settled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.outcome.name())?;
        write_reason(f, self.reason.as_ref())
    }
}

/// One line: the outcome, and the reason.
impl fmt::Display for Failed {
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
