//! The layer and its service, the same in one call, and a handler function as a service.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, ready};
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::body::{ResponseBody, VerifiedBody};
use super::claimed_run::{RunParts, run};
use super::handler::{FromDelivery, IntoAnswer};
use super::receiver_inner::ReceiverInner;
use super::reply::answer_of;
use super::request::{Answered, RequestContext};
use crate::pipeline::{Claims, Delivery};

/// Guards a service: it gets only authentic, fresh, unhandled deliveries. See the [module
/// docs](super).
#[derive(Clone, Debug)]
pub struct WebhookLayer {
    pub(crate) receiver: Arc<ReceiverInner<Claims>>,
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
/// If the future of a call is dropped, a run that has begun goes on in a task of its own, and
/// commits or releases its claim at its end.
#[derive(Clone, Debug)]
pub struct WebhookService<S> {
    receiver: Arc<ReceiverInner<Claims>>,
    inner: S,
}

impl<S> WebhookService<S> {
    /// Returns the inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns the inner service, to change it.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Returns the inner service without its guard.
    ///
    /// # Security
    /// It no longer verifies anything: a request that is passed to it is handled as it is.
    ///
    /// ```
    /// use hookgate::{MemoryStore, Receiver, Secret};
    /// use tower::Layer;
    ///
    /// let receiver = Receiver::builder()
    ///     .secret(Secret::new("whsec_made_up_for_this_example")?)
    ///     .store(MemoryStore::default())
    ///     .build()?;
    /// let guarded = receiver.layer().layer("any service");
    /// assert_eq!(*guarded.get_ref(), "any service");
    /// assert_eq!(guarded.into_inner(), "any service");
    /// # Ok::<(), hookgate::ConfigError>(())
    /// ```
    pub fn into_inner(self) -> S {
        self.inner
    }
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
        // The ready service goes into the future, and a clone that is not yet ready stays: a clone
        // must not be called without its own `poll_ready` (tower-service, "Be careful when cloning
        // inner services").
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        let receiver = Arc::clone(&self.receiver);
        ResponseFuture::new(deliver(receiver, inner, request))
    }
}

/// The future of a guarded service.
pub struct ResponseFuture<R, E>(Pin<Box<dyn Future<Output = Answered<R, E>> + Send>>);

impl<R, E> ResponseFuture<R, E> {
    pub(crate) fn new(answer: impl Future<Output = Answered<R, E>> + Send + 'static) -> Self {
        Self(Box::pin(answer))
    }
}

impl<R, E> Future for ResponseFuture<R, E> {
    type Output = Answered<R, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl<R, E> fmt::Debug for ResponseFuture<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseFuture")
    }
}

/// Takes a delivery from its request to its answer.
///
/// Not an `async fn`: the time for the answer counts from this call, not from the first poll.
#[expect(
    clippy::disallowed_methods,
    reason = "a `Delivery` is a proof, which only this crate makes"
)]
fn deliver<S, B, R>(
    receiver: Arc<ReceiverInner<Claims>>,
    mut service: S,
    request: Request<B>,
) -> impl Future<Output = Answered<R, S::Error>> + use<S, B, R>
where
    S: Service<Request<VerifiedBody>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    R: Send + 'static,
    B: Body,
{
    let (head, body) = request.into_parts();
    let mut context = RequestContext::begin(receiver, &head);
    context.observation.span.clone().around(async move {
        if let Some(delivery) = head.extensions.get::<Delivery>()
            && delivery.by() == context.receiver.auth.gate.id
        {
            // An outer layer of the same receiver, such as `Router::layer` over a route's own
            // layer, already holds the claim. If this layer waited for that claim, the request
            // would wait for itself.
            context.observation.silence();
            let body = VerifiedBody::new(delivery.body().clone());
            let answer = service.call(Request::from_parts(head, body)).await;
            return answer.map(|response| response.map(ResponseBody::inner));
        }
        let delivery = match context.take_in(&head, pin!(body)).await {
            Ok(delivery) => delivery,
            Err(refused) => return Ok(refused),
        };
        let parts = RunParts {
            receiver: Arc::clone(&context.receiver),
            delivery: delivery.clone(),
            service,
            head,
        };
        let end = answer_of(context.answer_due(), |reply| run(parts, reply)).await;
        context.respond(end, delivery)
    })
}

/// See [`Receiver::handle`](crate::Receiver::handle).
pub(crate) fn handle<B, D, H, F>(
    receiver: Arc<ReceiverInner<Claims>>,
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

/// Returns a handler function as a service, for code that takes a service of the bytes that were
/// signed: the [layer](crate::Receiver::layer) outside of axum, a [`Run`](crate::run::Run), the
/// workers of an inbox. The function takes one argument and gives an answer, as a function for
/// [`Receiver::handle`](crate::Receiver::handle) does: see [`FromDelivery`] and [`IntoAnswer`].
///
/// The service takes the delivery out of the request's extensions, where the layer has put it.
/// Without one it answers 500.
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
