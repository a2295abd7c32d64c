//! One span for each delivery (feature `tracing`).
//!
//! Field names are OpenTelemetry's where it has one: `http.request.method`, `http.response.status_code`, `error.type`,
//! `messaging.message.id`, `messaging.message.body.size`. The others start with `hookgate.`.
//!
//! Text from a client without the secret is always cut to a short length, and such a client cannot fill the log: see
//! `warnings`.

#[cfg(feature = "tracing")]
pub(crate) use on::{Trace, ended, in_this_span};

#[cfg(not(feature = "tracing"))]
pub(crate) use off::{Trace, ended, in_this_span};

#[cfg(feature = "tracing")]
mod on {
    use std::future::Future;

    use tracing::field::Empty;
    use tracing::{Instrument, Span};

    use crate::caught::caught;
    use crate::layer::guard::Guard;
    use crate::layer::hooks::{Answer, Reason, Settled};
    use crate::layer::warnings::LogLevel;
    use crate::outcome::{Outcome, Refusal};
    use crate::readable::Chain;
    use crate::walk::Delivery;

    /// The most characters that are shown of a method that HTTP does not know. A sender can make it any length.
    const LONGEST_METHOD: usize = 32;

    #[derive(Clone)]
    pub(crate) struct Trace(Span);

    impl Trace {
        pub(crate) fn begin(method: &http::Method) -> Self {
            let (known, original) = shown(method.as_str());
            Self(tracing::info_span!(
                "webhook delivery",
                otel.kind = "consumer",
                http.request.method = known,
                http.request.method_original = original.as_deref(),
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

        pub(crate) fn answered(&self, guard: &Guard, answer: &Answer) {
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
            // A handler's own error may panic while it is written, and must not take the answer with it.
            let _ = caught(|| {
                let _entered = self.0.enter();
                match &answer.reason {
                    // Logged at INFO: this is normal where a subscription has more event types than are handled, and it may be
                    // most deliveries.
                    Some(reason) if answer.outcome == Outcome::Unhandled => {
                        tracing::info!(outcome = name, reason = %Chain(reason), "delivery not handled");
                    }
                    Some(reason) => match log_level(guard, answer, reason) {
                        LogLevel::Warning { suppressed } => tracing::warn!(
                            outcome = name,
                            reason = %Chain(reason),
                            suppressed = (suppressed > 0).then_some(suppressed),
                            "delivery not handled"
                        ),
                        LogLevel::Suppressed => tracing::debug!(
                            outcome = name,
                            reason = %Chain(reason),
                            "delivery not handled"
                        ),
                    },
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

    /// Returns a method as OpenTelemetry names it: one that HTTP knows, or `_OTHER` and the beginning of the method.
    fn shown(method: &str) -> (&str, Option<String>) {
        if let "CONNECT" | "DELETE" | "GET" | "HEAD" | "OPTIONS" | "PATCH" | "POST" | "PUT"
        | "TRACE" = method
        {
            return (method, None);
        }
        let original = match method.char_indices().nth(LONGEST_METHOD) {
            Some((end, _)) => format!("{}…", &method[..end]),
            None => method.to_owned(),
        };
        ("_OTHER", Some(original))
    }

    /// Authentic deliveries are always logged at WARN. Any client can cause any number of the others, so those are limited.
    fn log_level(guard: &Guard, answer: &Answer, reason: &Reason) -> LogLevel {
        match reason.downcast_ref::<Refusal>() {
            Some(refusal) if answer.delivery.is_none() && refusal.authentic().is_none() => {
                let name = match refusal.verify_error() {
                    Some(error) => error.kind().name(),
                    None => refusal.kind().name(),
                };
                let now = guard.auth.clock.monotonic();
                guard.settings.warnings.log_level(name, now)
            }
            _ => LogLevel::Warning { suppressed: 0 },
        }
    }

    /// Logs the end of a run that outlived its request, because no answer does. Called inside its span.
    pub(crate) fn ended(run: &Settled) {
        if !run.late {
            return;
        }
        let name = run.outcome.name();
        // A panic is caught, as above; the hooks are called after this.
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
    use crate::layer::guard::Guard;
    use crate::layer::hooks::{Answer, Settled};
    use crate::walk::Delivery;

    #[derive(Clone)]
    pub(crate) struct Trace;

    #[allow(clippy::unused_self)] // takes the place of the type that traces
    impl Trace {
        pub(crate) fn begin(_: &http::Method) -> Self {
            Self
        }

        pub(crate) fn recognised(&self, _: &Delivery) {}

        pub(crate) fn answered(&self, _: &Guard, _: &Answer) {}

        pub(crate) fn within<F>(&self, future: F) -> F {
            future
        }
    }

    pub(crate) fn ended(_: &Settled) {}

    pub(crate) fn in_this_span<F>(future: F) -> F {
        future
    }
}
