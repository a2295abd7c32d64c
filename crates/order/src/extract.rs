//! The order as an argument of an axum handler (feature `axum`).

use axum_core::extract::FromRequestParts;
use axum_core::response::{IntoResponse, Response};
use hookgate::HandlerError;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http::request::Parts;

use super::judge::Order;

/// Without an [`OrderGuard`](super::OrderGuard) the request is answered 500, and the answer names
/// the line of code to add.
impl<S: Sync> FromRequestParts<S> for Order {
    type Rejection = Response;

    #[expect(
        clippy::disallowed_methods,
        reason = "an `Order` decides nothing about a delivery, and the guard writes it over any other"
    )]
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        parts.extensions.get().copied().ok_or_else(|| {
            let message = "no order in this request: guard the route with an `OrderGuard`, as in `post(on_event).layer((receiver.layer(), guard))`";
            let body = format!(r#"{{"error":{{"code":"INTERNAL_ERROR","message":"{message}"}}}}"#);
            let json = [(CONTENT_TYPE, "application/json")];
            let answer = (StatusCode::INTERNAL_SERVER_ERROR, json, body).into_response();
            HandlerError::from(message).mark(answer)
        })
    }
}
