//! The reports of a guard: its own answers, which the operator may shape, and the deliveries that were not handled.

use super::body::ResponseBody;
use super::catch::caught;
use super::guard::Guard;
use super::response::{Own, OwnAnswer};
use crate::observe::{Failed, Reason, Step};
use crate::outcome::{Outcome, RefusalKind};
use crate::verify::Verified;
use crate::walk::Delivery;
use http::Response;

impl Guard {
    /// Reports an authentic delivery that was not handled.
    pub(crate) fn report_failure(
        &self,
        verified: &Verified,
        delivery: Option<&Delivery>,
        outcome: Outcome,
        reason: Option<Reason>,
    ) {
        let attempt = self.auth.attempt(verified);
        // A copy that found another copy running is not a failure: the running copy reports its own end. But the claim may
        // belong to a process that died, and the sender may not try again.
        let beside_a_run = matches!(
            outcome,
            Outcome::Refused(RefusalKind::StillRunning | RefusalKind::TooManyWaiting)
        );
        let may_be_last = attempt.as_ref().is_some_and(|attempt| attempt.may_be_last);
        if beside_a_run && !may_be_last {
            return;
        }
        self.tell(Step::Failed(&Failed {
            verified: verified.clone(),
            delivery: delivery.cloned(),
            outcome,
            reason,
            attempt,
        }));
    }

    /// Tells the observers of a step.
    #[inline]
    pub(crate) fn tell(&self, step: Step<'_>) {
        self.settings.observers.tell(step);
    }

    /// Makes the response for an answer of the receiver.
    pub(super) fn own_response<R>(&self, own: &Own) -> Response<ResponseBody<R>> {
        let answer = OwnAnswer::from(own);
        let shape = self.settings.shape.as_ref();
        // If the shape panics, the delivery still gets the default answer.
        let shaped = shape.and_then(|shape| caught(|| shape(&answer)).ok());
        shaped
            .unwrap_or_else(|| answer.to_response())
            .map(ResponseBody::own)
    }
}
