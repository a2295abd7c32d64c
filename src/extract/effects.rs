//! The answers for a claim in a transaction, where the handler has nothing to do or cannot work.

use axum_core::body::Body;
use axum_core::response::{IntoResponse, Response};

use crate::dedupe::StoreError;
use crate::effects::NotFresh;
use crate::layer::IntoAnswer as _;

impl IntoResponse for NotFresh {
    fn into_response(self) -> Response {
        self.into_answer().map(Body::from)
    }
}

/// Answers 503 with `Retry-After`, for every kind: the event is neither handled nor refused, and at a retry the database may
/// work again. The operator gets the reason.
impl IntoResponse for StoreError {
    fn into_response(self) -> Response {
        self.into_answer().map(Body::from)
    }
}
