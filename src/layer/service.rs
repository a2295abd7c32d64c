//! The layer and its service.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::body::{ResponseBody, VerifiedBody};
use super::exchange::{Answered, deliver};
use super::guard::Guard;
use crate::pipeline::Claims;

/// The future of a guarded service.
pub(crate) type ResponseFuture<R, E> = Pin<Box<dyn Future<Output = Answered<R, E>> + Send>>;

/// Guards a service: it gets only authentic, fresh, unhandled deliveries. See the [module docs](super).
#[derive(Clone, Debug)]
pub struct WebhookLayer {
    pub(crate) receiver: Arc<Guard<Claims>>,
}

impl<S> Layer<S> for WebhookLayer {
    type Service = WebhookService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        WebhookService {
            receiver: Arc::clone(&self.receiver),
            inner,
        }
    }
}

/// A guarded service; made by [`WebhookLayer`].
///
/// If the future of a call is dropped, a run that has begun goes on: it moves to its own task, and commits or releases its claim at
/// its end.
#[derive(Clone, Debug)]
pub struct WebhookService<S> {
    receiver: Arc<Guard<Claims>>,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for WebhookService<S>
where
    S: Service<Request<VerifiedBody>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    R: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<R, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The ready service goes into the future, and a clone that is not yet ready stays: a clone must not be called without
        // its own `poll_ready` (tower-service, "Be careful when cloning inner services").
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        let receiver = Arc::clone(&self.receiver);
        Box::pin(deliver(receiver, inner, request))
    }
}
