//! One arm: an axum handler whose argument types are erased.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;

pub(super) type BoxFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler. Shared, because one may be used by several arms.
pub(super) type SharedArm<S> = Arc<dyn Fn(Request, S) -> BoxFuture + Send + Sync>;

pub(super) fn arm<H, T, S>(handler: H) -> SharedArm<S>
where
    H: Handler<T, S>,
    T: 'static,
    S: 'static,
{
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
