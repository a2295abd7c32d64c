//! The answers for a claim in a transaction, where the handler has nothing to do or cannot work.

use axum_core::response::{IntoResponse, Response};

use crate::dedupe::StoreError;
use crate::effects::NotFresh;
use crate::layer::{AlreadyHandled, FailureReason};

/// In seconds. A transaction that holds the claim ends within the sender's time-out, or when its connection ends.
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

/// Answers 503 with `Retry-After`, for every kind: the event is neither handled nor refused, and at a retry the database may
/// work again. The operator gets the reason.
impl IntoResponse for StoreError {
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
