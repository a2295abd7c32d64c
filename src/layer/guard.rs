//! The guard: authentication and the settings of the layer, before a handler or before a sink.

use std::fmt;

use http::Response;

use super::body::ResponseBody;
use super::catch::caught;
use super::response::OwnAnswer;
use super::settings::LayerSettings;
use crate::observe::{Failed, Reason, Step};
use crate::outcome::{Outcome, RefusalKind};
use crate::verify::Verified;
use crate::walk::{Authenticator, Delivery};

/// Authenticates requests, and answers them under the settings of the layer.
pub(crate) struct Guard {
    pub(crate) auth: Authenticator,
    pub(crate) settings: LayerSettings,
}

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
    pub(super) fn own_response<R>(
        &self,
        answer: impl Into<OwnAnswer>,
    ) -> Response<ResponseBody<R>> {
        let answer = answer.into();
        let shape = self.settings.shape.as_ref();
        // If the shape panics, the delivery still gets the default answer.
        let shaped = shape.and_then(|shape| caught(|| shape(&answer)).ok());
        shaped
            .unwrap_or_else(|| answer.to_response())
            .map(ResponseBody::own)
    }
}

/// A guard and the step that follows it: claims, for a handler, or a sink.
pub(crate) struct Guarded<N> {
    pub(crate) guard: Guard,
    pub(crate) next: N,
}

impl<N: fmt::Debug> fmt::Debug for Guarded<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded")
            .field("auth", &self.guard.auth)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}
