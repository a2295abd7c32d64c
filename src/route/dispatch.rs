//! The router at work: a delivery comes in, its arm is looked up and called.

use std::future::ready;
use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::IntoResponse;
use http::StatusCode;

use super::arm::{BoxFuture, SharedArm};
use super::table::ArmTable;
use crate::event::model_id;
use crate::extract::LayerMissing;
use crate::layer::Unhandled;
use crate::walk::Delivery;

/// A router that is built. Cheap to clone, because axum clones it for each request.
pub(super) struct Dispatch<S>(Arc<Routing<S>>);

struct Routing<S> {
    table: ArmTable<SharedArm<S>>,
    refuse_unhandled: bool,
}

impl<S> Dispatch<S> {
    pub(super) fn new(table: ArmTable<SharedArm<S>>, refuse_unhandled: bool) -> Self {
        Self(Arc::new(Routing {
            table,
            refuse_unhandled,
        }))
    }
}

impl<S> Clone for Dispatch<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Distinguishes this handler from axum's own.
pub(super) struct ByEvent;

impl<S: Send + Sync + 'static> Handler<ByEvent, S> for Dispatch<S> {
    type Future = BoxFuture;

    fn call(self, request: Request, state: S) -> BoxFuture {
        match self.0.arm(&request) {
            Ok(arm) => arm(request, state),
            Err(answer) => answer,
        }
    }
}

impl<S> Routing<S> {
    /// Returns the arm for a request, or the answer if there is none.
    #[expect(
        clippy::disallowed_methods,
        reason = "a `Delivery` is a proof, which only this crate makes"
    )]
    fn arm(&self, request: &Request) -> Result<&SharedArm<S>, BoxFuture> {
        // The layer has put it there. An event type in a header is not signed and does not decide.
        let delivery = request.extensions().get::<Delivery>();
        let delivery = delivery.ok_or_else(|| answer(LayerMissing))?;
        let arm = self
            .table
            .arm(delivery.event_type(), || model_id(delivery.verified()))
            .map_err(answer)?;
        arm.ok_or_else(|| {
            let unhandled = Unhandled::of(delivery);
            if self.refuse_unhandled {
                // The layer writes the body.
                answer(unhandled.mark(StatusCode::UNPROCESSABLE_ENTITY.into_response()))
            } else {
                answer(unhandled)
            }
        })
    }
}

fn answer(response: impl IntoResponse) -> BoxFuture {
    Box::pin(ready(response.into_response()))
}
