//! All steps of a delivery in one call, for servers without tower services.

use std::convert::Infallible;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::body::{ResponseBody, VerifiedBody};
use super::handler::{FromDelivery, IntoAnswer};
use super::service::Delivering;
use crate::delivery::Delivery;
use crate::receiver::Receiver;

impl Receiver {
    /// Takes a delivery from its request to its answer. Calls `handler` if the delivery is authentic, fresh and not handled
    /// yet.
    ///
    /// It does the same as the layer, with the same guarantees, for a server without tower services. Turn the server's request
    /// into an [`http::Request`], and the returned response into the server's answer. The handler is a function of one
    /// argument, an [`Event<R>`](crate::Event) or a [`Delivery`], and answers with a [`StatusCode`](http::StatusCode) or more:
    /// see [`FromDelivery`] and [`IntoAnswer`].
    ///
    /// Pass all headers unchanged, doubled ones too, and the body as it arrives, not decoded. The head is refused before a byte
    /// of the body is read, and the limit and the deadline apply while the body is read. The body need not be [`Send`], and the
    /// future is `Send` if the body is. A body that is already complete also works.
    ///
    /// If the server drops the future, for example because its client hangs up, a run that has begun goes on: it moves to its
    /// own task on the tokio runtime that polled it. If a server stops such runtimes, as actix-web does with its workers, call
    /// [`drain`](Self::drain) first.
    ///
    /// The answer's extensions hold an [`Answer`](crate::Answer).
    ///
    /// # Panics
    /// Panics without a tokio runtime that has its timers enabled, as tokio's timers do.
    ///
    /// # Security
    /// The method and the headers must be those of the request, and the body its raw bytes. A body that was decoded, re-encoded
    /// or cut does not verify. A doubled header that is passed on only once hides a forgery.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use hookgate::{Event, EventData, MemoryStore, Receiver, Secret};
    /// use http::{Request, StatusCode};
    /// use http_body_util::Full;
    /// # use hookgate::{Clock, Signature, SystemClock, Timestamp};
    ///
    /// async fn on_event(event: Event) -> StatusCode {
    ///     if let EventData::RowDeleted(row) = event.data {
    ///         assert_eq!(row.row_id, "row_1");
    ///     }
    ///     StatusCode::NO_CONTENT
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// # let secret = Secret::new("whsec_made_up_for_this_example")?;
    /// # let timestamp = Timestamp::at(SystemClock.now())?;
    /// # let body = r#"{"id":"evt_1","type":"row.deleted","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","deletedBy":{"id":"usr_1","name":"Bo"}}}"#;
    /// # let signature = Signature::sign(&secret, &timestamp, body.as_bytes()).to_header_value();
    /// let receiver = Receiver::builder().secret(secret).store(MemoryStore::default()).build()?;
    /// // For each request of the server at hand:
    /// let request = Request::post("/webhooks")
    ///     .header("x-service-timestamp", timestamp.as_str())
    ///     .header("x-service-signature", &signature)
    ///     .body(Full::new(Bytes::from(body)))?;
    /// # let again = request.clone();
    /// let answer = receiver.handle(request, on_event).await;
    /// assert_eq!(answer.status(), 204);
    /// # assert_eq!(receiver.handle(again, on_event).await.headers()["idempotent-replayed"], "true");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn handle<B, D, H, F>(
        &self,
        request: Request<B>,
        handler: H,
    ) -> impl Future<Output = Response<Bytes>> + use<B, D, H, F>
    where
        B: Body,
        D: FromDelivery + 'static,
        H: FnOnce(D) -> F + Send + 'static,
        F: Future<Output: IntoAnswer> + Send + 'static,
    {
        let delivering = Delivering::begin(self.clone(), request.method());
        let trace = delivering.trace.clone();
        let inner = Once {
            handler: Some(handler),
            argument: PhantomData::<fn(D)>,
        };
        let answer = trace.within(delivering.answer(inner, request));
        async move {
            match answer.await {
                Ok(response) => response.map(ResponseBody::into_bytes),
                Err(never) => match never {},
            }
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
            Err(misfit) => Box::pin(std::future::ready(Ok(misfit.into_answer()))),
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
