//! What a handler's argument is refused with.

use axum_core::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};

use crate::error::EventError;
use crate::layer::{FailureReason, MISFIT, envelope};

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
    error: EventError,
}

impl EventMisfit {
    /// Where and how it does not fit.
    #[must_use]
    pub fn error(&self) -> &EventError {
        &self.error
    }
}

/// So that a handler that asks for more, as `row.properties.to::<Order>()?` does, is answered as its argument would be.
impl From<EventError> for EventMisfit {
    fn from(error: EventError) -> Self {
        Self { error }
    }
}

impl From<EventError> for EventRejection {
    fn from(error: EventError) -> Self {
        EventMisfit::from(error).into()
    }
}

impl IntoResponse for EventError {
    fn into_response(self) -> Response {
        EventMisfit::from(self).into_response()
    }
}

impl IntoResponse for LayerMissing {
    fn into_response(self) -> Response {
        // Nobody but the layer could tell the operator, and it is not there. The sentence names a line of code and
        // nothing of the request, so it may be answered.
        #[cfg(feature = "tracing")]
        tracing::error!("{self}");
        answer(
            StatusCode::INTERNAL_SERVER_ERROR,
            "INTERNAL_ERROR",
            &self.to_string(),
        )
    }
}

impl IntoResponse for EventMisfit {
    fn into_response(self) -> Response {
        let response = answer(StatusCode::UNPROCESSABLE_ENTITY, "VALIDATION_ERROR", MISFIT);
        FailureReason::new(self.error).mark(response)
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

fn answer(status: StatusCode, code: &str, message: &str) -> Response {
    let json = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
    (status, [json], envelope(code, message)).into_response()
}
