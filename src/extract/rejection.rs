//! The rejections of a handler's arguments.

#[cfg(feature = "tracing")]
use std::sync::Once;

use axum_core::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};

use crate::event::EventError;
use crate::layer::{HandlerError, envelope};
use crate::outcome::TYPE_MISMATCH;

/// The reasons why a handler got no [`Event`](crate::Event), [`Delivery`](crate::Delivery) or [`Verified`](crate::Verified).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventRejection {
    /// The route is not guarded: 500. A fault of the program, not of the request.
    ///
    /// With the feature `tracing` it is logged at ERROR once per process: any client can send such requests, and they must not fill
    /// the log.
    #[error(
        "no verified delivery in this request: guard the route with `.layer(receiver.layer())`, as in `post(on_event).layer(receiver.layer())`"
    )]
    LayerMissing,
    /// The whole body is not a well-formed event, or its data does not fit the type that the handler asks for: 422, and the claim
    /// is released. A repaired deployment can still take the retry. A handler that parses more, such as
    /// `row.properties.to::<Order>()?`, gives the same answer as its argument.
    #[error("the delivery does not fit the handler's event type")]
    TypeMismatch(#[from] EventError),
}

/// Completed once a missing layer is logged.
#[cfg(feature = "tracing")]
static LOGGED: Once = Once::new();

impl IntoResponse for EventError {
    fn into_response(self) -> Response {
        let response = answer(
            StatusCode::UNPROCESSABLE_ENTITY,
            "VALIDATION_ERROR",
            TYPE_MISMATCH,
        );
        HandlerError::from(self).mark(response)
    }
}

impl IntoResponse for EventRejection {
    fn into_response(self) -> Response {
        match self {
            Self::LayerMissing => {
                // Only the layer could report this to the operator, and the layer is missing. The sentence names a line of code and
                // no data of the request, so it is safe to answer with it.
                #[cfg(feature = "tracing")]
                LOGGED.call_once(|| tracing::error!(target: "hookgate", "{self}"));
                answer(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "INTERNAL_ERROR",
                    &self.to_string(),
                )
            }
            Self::TypeMismatch(error) => error.into_response(),
        }
    }
}

fn answer(status: StatusCode, code: &str, message: &str) -> Response {
    let json = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
    (status, [json], envelope(code, message)).into_response()
}
