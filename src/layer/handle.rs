//! All steps of a delivery in one call, for servers without tower services.

use std::convert::Infallible;
use std::future::{Future, ready};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::body::{ResponseBody, VerifiedBody};
use super::exchange::deliver;
use super::guard::Guard;
use super::handler::{FromDelivery, IntoAnswer};
use crate::pipeline::{Claims, Delivery};

/// See [`Receiver::handle`](crate::Receiver::handle).
pub(crate) fn handle<B, D, H, F>(
    receiver: Arc<Guard<Claims>>,
    request: Request<B>,
    handler: H,
) -> impl Future<Output = Response<Bytes>> + use<B, D, H, F>
where
    B: Body,
    D: FromDelivery + 'static,
    H: FnOnce(D) -> F + Send + 'static,
    F: Future<Output: IntoAnswer> + Send + 'static,
{
    let mut handler = Some(handler);
    let inner = HandlerService::<_, D>::new(move || handler.take());
    let answer = deliver(receiver, inner, request);
    async move {
        match answer.await {
            Ok(response) => response.map(ResponseBody::into_bytes),
            Err(never) => match never {},
        }
    }
}

/// Returns a handler function as a service, for code that takes a service of the bytes that were signed: the
/// [layer](crate::Receiver::layer) outside of axum, a [`Run`](crate::run::Run), the workers of an inbox. The function takes one argument and
/// gives an answer, as a function for [`Receiver::handle`](crate::Receiver::handle) does: see [`FromDelivery`] and [`IntoAnswer`].
///
/// The service takes the delivery out of the request's extensions, where the layer has put it. Without one it answers 500.
///
/// ```
/// use hookgate::layer::handler_service;
/// use hookgate::{Event, MemoryStore, Receiver, Secret};
/// use http::StatusCode;
/// use tower::Layer;
///
/// async fn on_event(_: Event) -> StatusCode {
///     StatusCode::NO_CONTENT
/// }
///
/// let receiver = Receiver::builder()
///     .secret(Secret::new("whsec_made_up_for_this_example")?)
///     .store(MemoryStore::default())
///     .build()?;
/// let guarded = receiver.layer().layer(handler_service(on_event));
/// # let _ = guarded;
/// # Ok::<(), hookgate::ConfigError>(())
/// ```
pub fn handler_service<D, H, F>(
    handler: H,
) -> impl Service<
    Request<VerifiedBody>,
    Response = Response<Bytes>,
    Error = Infallible,
    Future: Send + 'static,
> + Clone
+ Send
+ 'static
where
    D: FromDelivery + 'static,
    H: FnOnce(D) -> F + Clone + Send + 'static,
    F: Future<Output: IntoAnswer> + Send + 'static,
{
    HandlerService::<_, D>::new(move || Some(handler.clone()))
}

/// A handler as the inner service: `next` returns it for one call.
pub(crate) struct HandlerService<N, D> {
    next: N,
    argument: PhantomData<fn(D)>,
}

impl<N, D> HandlerService<N, D> {
    pub(crate) fn new(next: N) -> Self {
        Self {
            next,
            argument: PhantomData,
        }
    }
}

impl<N: Clone, D> Clone for HandlerService<N, D> {
    fn clone(&self) -> Self {
        Self::new(self.next.clone())
    }
}

impl<N, D, H, F> Service<Request<VerifiedBody>> for HandlerService<N, D>
where
    N: FnMut() -> Option<H>,
    D: FromDelivery,
    H: FnOnce(D) -> F,
    F: Future<Output: IntoAnswer> + Send + 'static,
{
    type Response = Response<Bytes>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Bytes>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a `Delivery` is a proof, which only this crate makes"
    )]
    fn call(&mut self, request: Request<VerifiedBody>) -> Self::Future {
        // Both are present: the delivery was put in, and the handler of one request is called once.
        let (Some(delivery), Some(handler)) =
            (request.extensions().get::<Delivery>(), (self.next)())
        else {
            let missing = http::StatusCode::INTERNAL_SERVER_ERROR.into_answer();
            return Box::pin(ready(Ok(missing)));
        };
        match D::from_delivery(delivery) {
            Ok(argument) => {
                let handled = handler(argument);
                Box::pin(async move { Ok(handled.await.into_answer()) })
            }
            Err(mismatch) => Box::pin(ready(Ok(mismatch.into_answer()))),
        }
    }
}
