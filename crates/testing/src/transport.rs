//! Carries requests from a sender to a receiver: in process, or through a transport of your own.

use std::error::Error;
use std::future::Future;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use tower_service::Service;

/// The reason why a request got no answer.
pub type TransportError = Box<dyn Error + Send + Sync>;

/// Whether a header belongs to one connection only, or is written by each sender: a request that is
/// sent again gets a new one.
pub(crate) fn is_of_the_connection(name: &str) -> bool {
    const NAMES: [&str; 10] = [
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    NAMES.contains(&name)
}

/// Carries a delivery to a receiver and its answer back.
///
/// Dropping the future has the same meaning as closing a network connection: the sender hangs up.
pub trait Transport: Clone + Send + Sync + 'static {
    /// Delivers one request.
    ///
    /// # Errors
    /// There was no answer. The sender counts this as a failed attempt.
    fn deliver(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<Response<Bytes>, TransportError>> + Send;
}

/// A tower service in this process, such as an axum `Router`, without a socket.
///
/// It has to take `http_body_util::Full<Bytes>` as its requests' body, as every service does that
/// is generic over bodies.
#[derive(Clone, Debug)]
pub struct InProcess<S>(S);

impl<S> InProcess<S> {
    /// Delivers to this service. Each delivery gets a clone of it.
    #[must_use]
    pub fn new(service: S) -> Self {
        Self(service)
    }
}

impl<S, R> Transport for InProcess<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + Sync + 'static,
    S::Error: Into<TransportError>,
    S::Future: Send,
    R: Body + Send,
    R::Data: Send,
    R::Error: Into<TransportError>,
{
    async fn deliver(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let mut service = self.0.clone();
        std::future::poll_fn(|context| service.poll_ready(context))
            .await
            .map_err(Into::into)?;
        let response = service.call(request.map(Full::new)).await;
        let (parts, body) = response.map_err(Into::into)?.into_parts();
        let body = body.collect().await.map_err(Into::into)?.to_bytes();
        Ok(Response::from_parts(parts, body))
    }
}
