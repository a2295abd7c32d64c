//! The transport: any tower service over `http` types.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tower_service::Service;

use crate::error::BoxError;

/// A longer answer is refused.
const LONGEST_ANSWER: usize = 64 << 20;

/// The error of a transport that had no connection, so that nothing was sent.
#[derive(Debug)]
#[cfg_attr(not(feature = "hyper"), allow(dead_code))] // only the default transport reports it
pub(crate) struct NotSent(pub(crate) BoxError);

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no connection")
    }
}

impl Error for NotSent {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

/// The error of an answer that is longer than is read.
#[derive(Debug)]
pub(crate) struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the answer is longer than {} MiB", LONGEST_ANSWER >> 20)
    }
}

impl Error for TooLong {}

/// The body of a request, in one piece.
///
/// It records whether it was read. A transport should read it only after it has a connection: then
/// the client knows that an unread body was not sent, and may repeat the request.
#[derive(Debug)]
pub struct Body {
    data: Option<Bytes>,
    read: Arc<AtomicBool>,
}

impl Body {
    /// Returns a body, and the flag that is set when it is read.
    pub(crate) fn new(data: Bytes) -> (Self, Arc<AtomicBool>) {
        let read = Arc::new(AtomicBool::new(false));
        let body = Self {
            data: Some(data).filter(|data| !data.is_empty()),
            read: Arc::clone(&read),
        };
        (body, read)
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.read.store(true, Ordering::Release);
        Poll::Ready(self.data.take().map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.as_ref().map_or(0, |data| data.len() as u64))
    }
}

type Answering = Pin<Box<dyn Future<Output = Result<Response<Bytes>, BoxError>> + Send>>;

/// A service whose answers are read whole. Clones share it.
#[derive(Clone)]
pub(crate) struct Transport(Arc<dyn Fn(Request<Body>) -> Answering + Send + Sync>);

impl Transport {
    pub(crate) fn new<S, B>(service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
        B: HttpBody + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        Self::of(move |request| {
            let mut service = service.clone();
            async move {
                let ready = poll_fn(|context| service.poll_ready(context)).await;
                ready.map_err(Into::into)?;
                service.call(request).await.map_err(Into::into)
            }
        })
    }

    /// Makes a transport of a function.
    pub(crate) fn of<F, B>(call: impl Fn(Request<Body>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Response<B>, BoxError>> + Send + 'static,
        B: HttpBody + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        Self(Arc::new(move |request| {
            let answering = call(request);
            Box::pin(async move {
                let (head, body) = answering.await?.into_parts();
                Ok(Response::from_parts(head, read(body).await?))
            })
        }))
    }

    pub(crate) fn send(&self, request: Request<Body>) -> Answering {
        (self.0)(request)
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transport")
    }
}

async fn read<B: HttpBody>(body: B) -> Result<Bytes, BoxError>
where
    B::Error: Into<BoxError>,
{
    use bytes::Buf as _;

    let mut body = pin!(body);
    let mut whole = BytesMut::new();
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let Ok(mut data) = frame.map_err(Into::into)?.into_data() else {
            continue;
        };
        let length = data.remaining();
        if whole.len().saturating_add(length) > LONGEST_ANSWER {
            return Err(TooLong.into());
        }
        whole.extend_from_slice(&data.copy_to_bytes(length));
    }
    Ok(whole.freeze())
}
