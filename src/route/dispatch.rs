//! The router at work: a delivery comes in, its arm is looked up and called.

use std::any::Any;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use http::StatusCode;

use super::table::ArmTable;
use crate::event::model_id;
use crate::extract::EventRejection;
use crate::layer::Unhandled;
use crate::pipeline::Delivery;

type BoxFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// An axum handler whose argument types are erased. Shared, because one may be used by several arms.
pub(super) type SharedArm<S> = Arc<dyn Fn(Request, S) -> BoxFuture + Send + Sync>;

pub(super) fn arm<T: 'static, S: 'static>(handler: impl Handler<T, S>) -> SharedArm<S> {
    Arc::new(move |request, state| boxed(handler.clone().call(request, state)))
}

/// Boxes a future, unless it is already boxed, as the future of every handler function is.
fn boxed<F: Future<Output = Response> + Send + 'static>(future: F) -> BoxFuture {
    let mut future = Some(future);
    let place: &mut dyn Any = &mut future;
    if let Some(boxed) = place.downcast_mut().and_then(Option::<BoxFuture>::take) {
        return boxed;
    }
    Box::pin(async move {
        match future {
            Some(future) => future.await,
            None => unreachable!("it is taken only where it is returned"),
        }
    })
}

/// A router that is built. Cheap to clone, because axum clones it for each request.
#[derive(Clone)]
pub(super) struct Dispatch<S> {
    pub(super) table: Arc<ArmTable<SharedArm<S>>>,
    pub(super) refuse_unhandled: bool,
}

/// Distinguishes this handler from axum's own.
pub(super) struct ByEvent;

impl<S: Clone + Send + Sync + 'static> Handler<ByEvent, S> for Dispatch<S> {
    type Future = BoxFuture;

    fn call(self, request: Request, state: S) -> BoxFuture {
        match self.arm(&request) {
            Ok(arm) => arm(request, state),
            Err(answer) => answer,
        }
    }
}

impl<S> Dispatch<S> {
    /// Returns the arm for a request, or the answer if there is none.
    #[expect(
        clippy::disallowed_methods,
        reason = "a `Delivery` is a proof, which only this crate makes"
    )]
    fn arm(&self, request: &Request) -> Result<&SharedArm<S>, BoxFuture> {
        // The layer has put it there. An event type in a header is not signed and does not decide.
        let delivery = request.extensions().get::<Delivery>();
        let delivery = delivery.ok_or_else(|| answer(EventRejection::LayerMissing))?;
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
