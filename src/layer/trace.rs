//! One span a delivery, where the feature `tracing` is on.
//!
//! Field names are OpenTelemetry's where it has one: `http.request.method`, `http.response.status_code`, `error.type`,
//! `messaging.message.id`, `messaging.message.body.size`. The rest is under `hookgate.`.

#[cfg(feature = "tracing")]
pub(super) use on::{Trace, ended, in_this_span};

#[cfg(not(feature = "tracing"))]
pub(super) use off::{Trace, ended, in_this_span};

#[cfg(feature = "tracing")]
mod on {
    use std::future::Future;

    use tracing::field::Empty;
    use tracing::{Instrument, Span};

    use crate::caught::caught;
    use crate::delivery::Delivery;
    use crate::layer::hooks::{Answer, Chain, Settled};
    use crate::outcome::Outcome;

    #[derive(Clone)]
    pub(crate) struct Trace(Span);

    impl Trace {
        pub(crate) fn begin(method: &http::Method) -> Self {
            Self(tracing::info_span!(
                "webhook delivery",
                otel.kind = "consumer",
                http.request.method = method.as_str(),
                http.response.status_code = Empty,
                error.r#type = Empty,
                messaging.operation.r#type = "process",
                messaging.message.id = Empty,
                messaging.message.body.size = Empty,
                hookgate.event.r#type = Empty,
                hookgate.scope = Empty,
                hookgate.key.name = Empty,
                hookgate.outcome = Empty,
            ))
        }

        pub(crate) fn recognised(&self, delivery: &Delivery) {
            self.0
                .record("messaging.message.id", delivery.event_id())
                .record("messaging.message.body.size", delivery.body().len())
                .record("hookgate.event.type", delivery.event_type())
                .record("hookgate.scope", delivery.verified().scope())
                .record("hookgate.key.name", delivery.verified().key_name());
        }

        pub(crate) fn answered(&self, answer: &Answer) {
            let name = answer.outcome.name();
            self.0
                .record("http.response.status_code", answer.status)
                .record("hookgate.outcome", name);
            let done = matches!(
                answer.outcome,
                Outcome::Accepted | Outcome::Handled | Outcome::Replayed { same_body: true }
            );
            if !done {
                self.0.record("error.type", name);
            }
            // A handler's own error may panic where it is written, and must not take the answer along.
            let _ = caught(|| {
                let _entered = self.0.enter();
                match &answer.reason {
                    // As wished by whoever subscribed to more than is handled, and perhaps for most of what comes.
                    Some(reason) if answer.outcome == Outcome::Unhandled => {
                        tracing::info!(outcome = name, reason = %Chain(reason), "delivery not handled");
                    }
                    Some(reason) => tracing::warn!(
                        outcome = name,
                        reason = %Chain(reason),
                        "delivery not handled"
                    ),
                    None if done => tracing::debug!(outcome = name, "delivery answered"),
                    None => tracing::warn!(outcome = name, "delivery answered"),
                }
            });
        }

        pub(crate) fn within<F: Future>(
            &self,
            future: F,
        ) -> impl Future<Output = F::Output> + use<F> {
            future.instrument(self.0.clone())
        }
    }

    /// A run that outlived its request tells its end here, since no answer does. Called inside its span.
    pub(crate) fn ended(run: &Settled) {
        if !run.late {
            return;
        }
        let name = run.outcome.name();
        // As above; the hooks are told after this.
        let _ = caught(|| match (&run.reason, run.outcome) {
            (
                None,
                Outcome::Accepted | Outcome::Handled | Outcome::Replayed { same_body: true },
            ) => {
                tracing::debug!(outcome = name, "run ended late");
            }
            (None, _) => tracing::warn!(outcome = name, "run ended late"),
            (Some(reason), Outcome::Unhandled) => {
                tracing::info!(outcome = name, reason = %Chain(reason), "run ended late");
            }
            (Some(reason), _) => {
                tracing::warn!(outcome = name, reason = %Chain(reason), "run ended late");
            }
        });
    }

    /// Takes the current span along when a future moves to another task.
    pub(crate) fn in_this_span<F: Future>(future: F) -> impl Future<Output = F::Output> + use<F> {
        future.in_current_span()
    }
}

#[cfg(not(feature = "tracing"))]
mod off {
    use crate::delivery::Delivery;
    use crate::layer::hooks::{Answer, Settled};

    #[derive(Clone)]
    pub(crate) struct Trace;

    #[allow(clippy::unused_self)] // stands in for the traced one
    impl Trace {
        pub(crate) fn begin(_: &http::Method) -> Self {
            Self
        }

        pub(crate) fn recognised(&self, _: &Delivery) {}

        pub(crate) fn answered(&self, _: &Answer) {}

        pub(crate) fn within<F>(&self, future: F) -> F {
            future
        }
    }

    pub(crate) fn ended(_: &Settled) {}

    pub(crate) fn in_this_span<F>(future: F) -> F {
        future
    }
}
