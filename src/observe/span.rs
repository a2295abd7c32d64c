//! The span of a request; empty without the feature `tracing`.
//!
//! Field names are OpenTelemetry's where it has one: `http.request.method`,
//! `http.response.status_code`, `error.type`, `messaging.message.id`,
//! `messaging.message.body.size`. The others start with `hookgate.`.

#![cfg_attr(not(feature = "tracing"), allow(unused_variables, clippy::unused_self))]

use std::future::Future;

#[cfg(feature = "tracing")]
use tracing::field::Empty;

use crate::pipeline::Delivery;

/// The most characters that are shown of a method that HTTP does not know. A sender can make it any
/// length.
#[cfg(feature = "tracing")]
const LONGEST_METHOD: usize = 32;

#[derive(Clone)]
pub(crate) struct Span(#[cfg(feature = "tracing")] pub(crate) tracing::Span);

impl Span {
    /// Begins the span of a request.
    pub(super) fn new(method: &http::Method) -> Self {
        #[cfg(feature = "tracing")]
        let (known, original) = shown(method.as_str());
        Self(
            #[cfg(feature = "tracing")]
            tracing::info_span!(
                target: "hookgate",
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
                hookgate.reason = Empty,
                hookgate.claimed_subscription = Empty,
                traceparent = Empty,
            ),
        )
    }

    /// Records the data of a delivery that is authentic.
    pub(super) fn verified(&self, delivery: &Delivery) {
        #[cfg(feature = "tracing")]
        {
            self.0
                .record("messaging.message.id", delivery.event_id())
                .record("messaging.message.body.size", delivery.body().len())
                .record("hookgate.event.type", delivery.event_type())
                .record("hookgate.scope", delivery.verified().scope())
                .record("hookgate.key.name", delivery.verified().key_name());
            if let Some(traceparent) = delivery.traceparent() {
                self.0.record("traceparent", traceparent);
            }
        }
    }

    /// Returns a future that runs inside this span.
    pub(crate) fn around<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        #[cfg(feature = "tracing")]
        let future = tracing::Instrument::instrument(future, self.0.clone());
        future
    }
}

/// Takes the current span along when a future moves to another task.
pub(crate) fn in_this_span<F: Future>(future: F) -> impl Future<Output = F::Output> + use<F> {
    #[cfg(feature = "tracing")]
    let future = tracing::Instrument::in_current_span(future);
    future
}

/// Returns a method as OpenTelemetry names it: one that HTTP knows, or `_OTHER` and the beginning
/// of the method.
#[cfg(feature = "tracing")]
fn shown(method: &str) -> (&str, Option<String>) {
    if let "CONNECT" | "DELETE" | "GET" | "HEAD" | "OPTIONS" | "PATCH" | "POST" | "PUT" | "TRACE" =
        method
    {
        return (method, None);
    }
    let original = match method.char_indices().nth(LONGEST_METHOD) {
        Some((end, _)) => format!("{}…", &method[..end]),
        None => method.to_owned(),
    };
    ("_OTHER", Some(original))
}
