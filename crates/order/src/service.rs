//! The service that a guard makes of another one.

use std::sync::Arc;
use std::task::{Context, Poll};

use hookgate::{Delivery, dedupe::StoreFuture};
use http::{Request, Response, StatusCode};
use tower_layer::Layer;
use tower_service::Service;

use super::guard::OrderGuard;
use super::run::run;

/// The answer to a request without a delivery.
const OUTSIDE: &str = r#"{"error":{"code":"INTERNAL_ERROR","message":"no verified delivery in this request: put the order guard inside the receiver's layer, as in `post(on_event).layer((receiver.layer(), guard))`"}}"#;

/// A service whose requests have the [`Order`](super::Order) of their event in their extensions;
/// made by [`OrderGuard`].
#[derive(Clone, Debug)]
pub struct OrderService<S> {
    guard: Arc<OrderGuard>,
    inner: S,
}

impl<S> Layer<S> for OrderGuard {
    type Service = OrderService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        OrderService {
            guard: self.started(),
            inner,
        }
    }
}

impl<S, B, R> Service<Request<B>> for OrderService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    R: From<&'static str> + Send + 'static,
    B: Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = StoreFuture<'static, Response<R>, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a `Delivery` is a proof, which only hookgate makes"
    )]
    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let Some(delivery) = request.extensions().get::<Delivery>().cloned() else {
            let mut response = Response::new(R::from(OUTSIDE));
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            return StoreFuture::ready(Ok(response));
        };
        // The ready service goes into the future, and a clone that is not yet ready stays.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let guard = Arc::clone(&self.guard);
        StoreFuture::boxed(async move {
            let handle = |order| {
                request.extensions_mut().insert(order);
                inner.call(request)
            };
            run(&guard, &delivery, handle).await
        })
    }
}
