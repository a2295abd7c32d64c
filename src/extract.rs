//! Typed events as arguments of axum handlers.
//!
//! ```
//! use axum::{Router, extract::State, http::StatusCode, routing::post};
//! use hookgate::{Event, EventData, MemoryStore, Receiver, Secret};
//!
//! #[derive(serde::Deserialize)]
//! struct Order {
//!     #[serde(rename = "Total")]
//!     total: f64,
//! }
//!
//! async fn on_event(event: Event<Order>, State(currency): State<&'static str>) -> StatusCode {
//!     if let EventData::RowCreated(row) = event.data {
//!         println!("{}: {} {currency}", row.row_id, row.properties.total);
//!     }
//!     StatusCode::NO_CONTENT
//! }
//!
//! let receiver = Receiver::builder()
//!     .secret(Secret::new("whsec_made_up_for_this_example")?)
//!     .store(MemoryStore::default())
//!     .build()?;
//! let app: Router = Router::new()
//!     .route("/webhooks", post(on_event).layer(receiver.layer()))
//!     .with_state("EUR");
//! assert!(app.has_routes());
//! # Ok::<(), hookgate::ConfigError>(())
//! ```
//!
//! [`Event<R>`](crate::Event), [`Delivery`] and [`Verified`] come from the request's extensions,
//! where the layer has put the delivery. They do not read the body. So they can be arguments in any
//! position, beside `State` and other extractors. `Bytes` or `Json` can still read the body, of any
//! size: see [where to put the layer](crate::layer#where-to-put-it).
//!
//! Never take `Json<serde_json::Value>` of a delivery, and never parse [`Delivery::body`] as a
//! `Value`: a nested body can overflow the stack and abort the process (see `SECURITY.md`); take
//! `Event<serde_json::Value>`. A `DefaultBodyLimit` outside the layer does not protect such a
//! handler, because the layer lifts it.
//!
//! If one URL takes several data models or event types, [`route`](crate::route) sends each to its
//! own handler.
//!
//! Without the layer there is no delivery to take: the request is answered 500, and the answer
//! names the line of code to add. A handler never gets an unverified event.

#[cfg(feature = "tracing")]
use std::sync::Once;

use axum_core::body::Body;
use axum_core::extract::{FromRequestParts, OptionalFromRequestParts};
use axum_core::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use serde::de::DeserializeOwned;

use crate::dedupe::{NotFresh, StoreError};
use crate::event::{Event, EventError, Signed};
use crate::layer::{
    AlreadyHandled, DeadLetter, HandlerError, IntoAnswer as _, Unhandled, envelope,
};
use crate::outcome::TYPE_MISMATCH;
use crate::pipeline::Delivery;
use crate::scheme::Scheme;
use crate::verify::Verified;

impl<R: DeserializeOwned, S: Sync> FromRequestParts<S> for Event<R> {
    type Rejection = EventRejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let delivery = delivery(parts)?;
        of_default_scheme(delivery)?;
        delivery.event().map_err(EventRejection::from)
    }
}

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Signed<T> {
    type Rejection = EventRejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        delivery(parts)?.signed().map_err(EventRejection::from)
    }
}

impl<S: Sync> FromRequestParts<S> for Delivery {
    type Rejection = EventRejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        delivery(parts).cloned()
    }
}

/// `None` if the route is not guarded, for a handler that also serves requests that are not
/// deliveries.
impl<S: Sync> OptionalFromRequestParts<S> for Delivery {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Self::Rejection> {
        Ok(delivery(parts).ok().cloned())
    }
}

impl<S: Sync> FromRequestParts<S> for Verified {
    type Rejection = EventRejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        delivery(parts).map(|delivery| delivery.verified().clone())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a `Delivery` is a proof, which only this crate makes"
)]
fn delivery(parts: &Parts) -> Result<&Delivery, EventRejection> {
    parts.extensions.get().ok_or(EventRejection::LayerMissing)
}

/// Checks that the delivery can be an [`Event`].
pub(crate) fn of_default_scheme(delivery: &Delivery) -> Result<(), EventRejection> {
    let scheme = delivery.verified().scheme();
    let is_default = scheme.is_some_and(Scheme::is_workspace);
    is_default.then_some(()).ok_or(EventRejection::OtherScheme)
}

/// Implements `IntoResponse` with the answer that the type has without axum.
macro_rules! responses {
    ($($(#[$attribute:meta])* $type:ty;)*) => {
        $(
            $(#[$attribute])*
            impl IntoResponse for $type {
                fn into_response(self) -> Response {
                    self.into_answer().map(Body::from)
                }
            }
        )*
    };
}

responses! {
    /// Answers 204: done, and reported as unhandled.
    Unhandled;
    /// Answers 200, empty, `Idempotent-Replayed: true`.
    AlreadyHandled;
    DeadLetter;
    /// Answers 500, or as the error of this crate that it holds, with an empty body. For another
    /// status, [`mark`](HandlerError::mark) a response that has it.
    HandlerError;
    NotFresh;
    /// Answers 503 with `Retry-After`, for every kind: the event is neither handled nor refused,
    /// and at a retry the database may work again. The operator gets the reason.
    StoreError;
}

/// The reasons why a handler got no [`Event`], [`Delivery`] or [`Verified`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventRejection {
    /// The route is not guarded: 500. A fault of the program, not of the request.
    ///
    /// With the feature `tracing` it is logged at ERROR once per process: any client can send such
    /// requests, and they must not fill the log.
    #[error(
        "no verified delivery in this request: guard the route with `.layer(receiver.layer())`, as in `post(on_event).layer(receiver.layer())`"
    )]
    LayerMissing,
    /// The receiver has another [scheme](crate::Scheme) than the default one, and the handler takes
    /// an [`Event`], or is the event router:
    /// 500. A fault of the program.
    #[error(
        "this receiver's scheme has no such events: take `Signed<T>` in place of `Event<R>`, and no event router"
    )]
    OtherScheme,
    /// The whole body is not a well-formed event, or its data does not fit the type that the
    /// handler asks for: 422, and the claim is released. A repaired deployment can still take the
    /// retry. A handler that parses more, such as `row.properties.to::<Order>()?`, gives the same
    /// answer as its argument.
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
            Self::OtherScheme => {
                let sentence = self.to_string();
                let code = StatusCode::INTERNAL_SERVER_ERROR;
                HandlerError::from(self).mark(answer(code, "INTERNAL_ERROR", &sentence))
            }
            Self::LayerMissing => {
                // Only the layer could report this to the operator, and the layer is missing. The
                // sentence names a line of code and no data of the request, so it is safe to answer
                // with it.
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
