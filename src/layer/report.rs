//! The reports of a guard: its own answers, which the operator may shape, and the deliveries that were not handled.

use super::body::ResponseBody;
use super::catch::caught;
use super::guard::Guard;
use super::hooks::{Failed, Reason};
use super::metrics;
use super::response::{Own, OwnAnswer};
use crate::dedupe::Attempt;
use crate::event::created_at;
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
        let hook = self.settings.hooks.failed.as_ref();
        if hook.is_none() && !cfg!(feature = "metrics") {
            return;
        }
        let attempt = self.attempt(verified);
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
        metrics::failed(self, may_be_last);
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

    /// Returns the probable attempt of a delivery; `None` if its body does not contain the time of its creation.
    pub(crate) fn attempt(&self, verified: &Verified) -> Option<Attempt> {
        // The time is part of the signed body. An event from the future counts as new.
        let created = created_at(verified)?;
        let age = self.auth.clock.now().since(created).unwrap_or_default();
        Some(self.auth.schedule.probable_attempt(age))
    }

    /// Makes the response for an answer of the receiver.
    pub(super) fn own_response<R>(&self, own: &Own) -> Response<ResponseBody<R>> {
        let answer = OwnAnswer::from(own);
        let shape = self.settings.hooks.shape.as_ref();
        // If the shape panics, the delivery still gets the default answer.
        let shaped = shape.and_then(|shape| caught(|| shape(&answer)).ok());
        shaped
            .unwrap_or_else(|| answer.to_response())
            .map(ResponseBody::own)
    }
}
