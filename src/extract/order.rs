//! The order of the event as an argument.

use axum_core::extract::FromRequestParts;
use axum_core::response::Response;
use http::StatusCode;
use http::request::Parts;

use super::rejection::answer;
use crate::order::Order;

/// Without an [`OrderGuard`](crate::order::OrderGuard) the request is answered 500, and the answer names the line of code to add.
impl<S: Sync> FromRequestParts<S> for Order {
    type Rejection = Response;

    #[expect(
        clippy::disallowed_methods,
        reason = "an `Order` decides nothing about a delivery, and the guard writes it over any other"
    )]
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        parts.extensions.get().copied().ok_or_else(|| {
            let message = "no order in this request: guard the route with an `OrderGuard`, as in `post(on_event).layer((receiver.layer(), guard))`";
            answer(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", message)
        })
    }
}
