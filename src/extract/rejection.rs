//! What a handler's argument is refused with.

use std::sync::Arc;

use axum_core::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};

use crate::error::EventError;
use crate::layer::Misfit;

/// Why a handler got no [`Event`](crate::Event).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventRejection {
    /// The route is not guarded.
    #[error(transparent)]
    LayerMissing(#[from] LayerMissing),
    /// The body does not fit.
    #[error(transparent)]
    Misfit(#[from] EventMisfit),
}

/// The route is not guarded: 500. A fault of the program, not of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no verified delivery in this request: guard the route with `.layer(receiver.layer())`, as in `post(on_event).layer(receiver.layer())`"
)]
pub struct LayerMissing;

/// The body as a whole is no well-formed event, or its data does not fit the type that the handler asks for: 422, and
/// the claim is released. A mended deployment can still take the retry.
#[derive(Debug, thiserror::Error)]
#[error("the delivery does not fit the handler's event type")]
pub struct EventMisfit {
    #[source]
    error: Arc<EventError>,
}

impl EventMisfit {
    pub(super) fn new(error: EventError) -> Self {
        Self {
            error: Arc::new(error),
        }
    }

    /// Where and how it does not fit.
    #[must_use]
    pub fn error(&self) -> &EventError {
        &self.error
    }
}

impl IntoResponse for LayerMissing {
    fn into_response(self) -> Response {
        // Nobody but the layer could tell the operator, and it is not there. The sentence names a line of code and
        // nothing of the request, so it may be answered.
        #[cfg(feature = "tracing")]
        tracing::error!("{self}");
        envelope(
            StatusCode::INTERNAL_SERVER_ERROR,
            "INTERNAL_ERROR",
            &self.to_string(),
        )
    }
}

impl IntoResponse for EventMisfit {
    fn into_response(self) -> Response {
        let message = "the delivery is no event that is handled here";
        let mut response = envelope(
            StatusCode::UNPROCESSABLE_ENTITY,
            "VALIDATION_ERROR",
            message,
        );
        response.extensions_mut().insert(Misfit(self.error));
        response
    }
}

impl IntoResponse for EventRejection {
    fn into_response(self) -> Response {
        match self {
            Self::LayerMissing(rejection) => rejection.into_response(),
            Self::Misfit(rejection) => rejection.into_response(),
        }
    }
}

/// The service's error envelope. The words are our own and need no escaping.
fn envelope(status: StatusCode, code: &str, message: &str) -> Response {
    let body = format!(r#"{{"error":{{"code":"{code}","message":"{message}"}}}}"#);
    let json = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
    (status, [json], body).into_response()
}
