//! One span for each run, if the feature `tracing` is on. The field names are the same as in the layer.

#[cfg(feature = "tracing")]
pub(super) use on::{Trace, dead_lettered, lost, store_failed};

#[cfg(not(feature = "tracing"))]
pub(super) use off::{Trace, dead_lettered, lost, store_failed};

#[cfg(feature = "tracing")]
mod on {
    use std::error::Error;
    use std::fmt;
    use std::future::Future;

    use tracing::field::Empty;
    use tracing::{Instrument, Span};

    use crate::caught::caught;
    use crate::dedupe::StoreError;
    use crate::inbox::engine::Listed;
    use crate::inbox::workers::hooks::{AttemptReport, Disposition, LostLease};
    use crate::readable::Chain;
    use crate::walk::Delivery;

    pub(crate) struct Trace(Span);

    /// An error with its sources, only the first line of each: in further lines a database adds the row that it refused.
    struct Causes<'a>(&'a StoreError);

    impl fmt::Display for Causes<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let mut next: Option<&dyn Error> = Some(self.0);
            let mut between = "";
            while let Some(error) = next {
                let line = error.to_string();
                write!(f, "{between}{}", line.lines().next().unwrap_or_default())?;
                (next, between) = (error.source(), ": ");
            }
            Ok(())
        }
    }

    impl Trace {
        pub(crate) fn begin(delivery: &Delivery, tries: u32) -> Self {
            Self(tracing::info_span!(
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
            ))
        }

        pub(crate) fn within<F: Future>(&self, future: F) -> impl Future<Output = F::Output> {
            future.instrument(self.0.clone())
        }

        pub(crate) fn ended(&self, tried: &AttemptReport) {
            let name = tried.outcome.name();
            self.0.record("hookgate.outcome", name);
            if tried.disposition != Disposition::Done {
                self.0.record("error.type", name);
            }
            // The `Display` of a handler's own error may panic, and must not end the run.
            let _ = caught(|| {
                let _entered = self.0.enter();
                let next = match tried.disposition {
                    Disposition::Done => "done",
                    Disposition::Retry { .. } => "retry",
                    Disposition::Dead => "dead",
                    Disposition::Returned => "returned",
                    Disposition::Unrecorded => "unrecorded",
                };
                match (&tried.reason, tried.disposition) {
                    (None, Disposition::Done) => tracing::debug!(outcome = name, next, "job ended"),
                    (Some(reason), Disposition::Done) => {
                        tracing::info!(outcome = name, next, reason = %Chain(reason), "job ended");
                    }
                    (Some(reason), _) => {
                        tracing::warn!(outcome = name, next, reason = %Chain(reason), "job ended");
                    }
                    (None, _) => tracing::warn!(outcome = name, next, "job ended"),
                }
            });
        }
    }

    pub(crate) fn store_failed(call: &'static str, error: &StoreError) {
        let _ = caught(|| {
            let error = Causes(error);
            tracing::warn!(call, error = %error, "the inbox's store failed");
        });
    }

    pub(crate) fn dead_lettered(listed: &Listed) {
        let _ = caught(|| {
            tracing::warn!(
                event = listed.event_id.as_str(),
                tries = listed.tries,
                reason = listed.last_error,
                "a dead letter without a try's end"
            );
        });
    }

    pub(crate) fn lost(lost: &LostLease) {
        let _ = caught(|| {
            let event = lost.delivery.event_id();
            tracing::warn!(
                event,
                tries = lost.tries,
                "the lease of a running job is lost"
            );
        });
    }
}

#[cfg(not(feature = "tracing"))]
mod off {
    use crate::dedupe::StoreError;
    use crate::inbox::engine::Listed;
    use crate::inbox::workers::hooks::{AttemptReport, LostLease};
    use crate::walk::Delivery;

    pub(crate) struct Trace;

    #[allow(clippy::unused_self)] // the same methods as the traced one
    impl Trace {
        pub(crate) fn begin(_: &Delivery, _: u32) -> Self {
            Self
        }

        pub(crate) fn within<F>(&self, future: F) -> F {
            future
        }

        pub(crate) fn ended(&self, _: &AttemptReport) {}
    }

    pub(crate) fn store_failed(_: &'static str, _: &StoreError) {}

    pub(crate) fn dead_lettered(_: &Listed) {}

    pub(crate) fn lost(_: &LostLease) {}
}
