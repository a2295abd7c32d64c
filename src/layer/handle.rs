//! All steps of a delivery in one call, for servers without tower services.

use std::convert::Infallible;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::body::{ResponseBody, VerifiedBody};
use super::delivering::Delivering;
use super::guard::Guarded;
use super::handler::{FromDelivery, IntoAnswer};
use crate::walk::{Claims, Delivery};

/// See [`Receiver::handle`](crate::Receiver::handle).
pub(crate) fn handle<B, D, H, F>(
    receiver: Arc<Guarded<Claims>>,
    request: Request<B>,
    handler: H,
) -> impl Future<Output = Response<Bytes>> + use<B, D, H, F>
where
    B: Body,
    D: FromDelivery + 'static,
    H: FnOnce(D) -> F + Send + 'static,
    F: Future<Output: IntoAnswer> + Send + 'static,
{
    let delivering = Delivering::begin(receiver, request.method());
    let span = delivering.span();
    let inner = Once {
        handler: Some(handler),
        argument: PhantomData::<fn(D)>,
    };
    let answer = span.around(delivering.answer(inner, request));
    async move {
        match answer.await {
            Ok(response) => response.map(ResponseBody::into_bytes),
            Err(never) => match never {},
        }
    }
}

/// A handler as the inner service of one request.
struct Once<H, D> {
    handler: Option<H>,
    argument: PhantomData<fn(D)>,
}

impl<H, D, F> Service<Request<VerifiedBody>> for Once<H, D>
where
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
        // Both are present: the layer code puts the delivery in and calls once.
        let (Some(delivery), Some(handler)) =
            (request.extensions().get::<Delivery>(), self.handler.take())
        else {
            let missing = http::StatusCode::INTERNAL_SERVER_ERROR.into_answer();
            return Box::pin(std::future::ready(Ok(missing)));
        };
        match D::from_delivery(delivery) {
            Ok(argument) => {
                let handled = handler(argument);
                Box::pin(async move { Ok(handled.await.into_answer()) })
            }
            Err(mismatch) => Box::pin(std::future::ready(Ok(mismatch.into_answer()))),
        }
    }
}

/// A handler as the inner service of every request, for the workers of an inbox.
#[cfg(feature = "inbox")]
pub(crate) struct Each<H, D> {
    handler: H,
    argument: PhantomData<fn(D)>,
}

#[cfg(feature = "inbox")]
impl<H, D> Each<H, D> {
    pub(crate) fn new(handler: H) -> Self {
        Self {
            handler,
            argument: PhantomData,
        }
    }
}

#[cfg(feature = "inbox")]
impl<H: Clone, D> Clone for Each<H, D> {
    fn clone(&self) -> Self {
        Self::new(self.handler.clone())
    }
}

#[cfg(feature = "inbox")]
impl<H, D, F> Service<Request<VerifiedBody>> for Each<H, D>
where
    D: FromDelivery,
    H: FnOnce(D) -> F + Clone,
    F: Future<Output: IntoAnswer> + Send + 'static,
{
    type Response = Response<Bytes>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Bytes>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<VerifiedBody>) -> Self::Future {
        let mut once = Once {
            handler: Some(self.handler.clone()),
            argument: PhantomData,
        };
        once.call(request)
    }
}
