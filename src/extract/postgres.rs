//! What a claim in a transaction answers where the handler has nothing to do, or can't.

use axum_core::response::{IntoResponse, Response};

use crate::error::PostgresError;
use crate::layer::{AlreadyHandled, FailureReason};
use crate::postgres::NotFresh;

/// In seconds: a transaction that is held ends within the sender's time-out, or goes with its connection.
const RETRY_AFTER: &str = "5";

impl IntoResponse for NotFresh {
    fn into_response(self) -> Response {
        match self {
            Self::Duplicate { same_body: true } => AlreadyHandled::new().into_response(),
            Self::Duplicate { same_body: false } => {
                AlreadyHandled::with_other_body().into_response()
            }
            Self::Held => unavailable(FailureReason::new(self)),
        }
    }
}

/// 503 with `Retry-After`, whatever the kind: the event is neither handled nor refused, and a retry may find the database mended. The
/// reason goes to the operator.
impl IntoResponse for PostgresError {
    fn into_response(self) -> Response {
        unavailable(FailureReason::new(self))
    }
}

fn unavailable(reason: FailureReason) -> Response {
    let mut response = reason.into_response();
    *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(
        http::header::RETRY_AFTER,
        http::HeaderValue::from_static(RETRY_AFTER),
    );
    response
}
