//! The span of a run; empty without the feature `tracing`.

#![cfg_attr(not(feature = "tracing"), allow(unused_variables, clippy::unused_self))]

use std::future::Future;

use hookgate::Delivery;

pub(super) struct Span(#[cfg(feature = "tracing")] pub(super) tracing::Span);

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
