//! What goes to the inner service and comes back: the request with the signed bytes, and the
//! response.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::Request;
use http::request::Parts;
use http_body::{Body, Frame, SizeHint};

use crate::pipeline::Delivery;

/// Returns the request for the handler, behind a route and behind a queue.
pub(crate) fn request(head: Parts, delivery: &Delivery) -> Request<VerifiedBody> {
    let body = VerifiedBody::new(delivery.body().clone());
    let mut request = Request::from_parts(head, body);
    request.extensions_mut().insert(delivery.clone());
    lift_body_limit(&mut request, delivery.body().len());
    request
}

/// Axum's limit is lifted for bodies above this size. For smaller ones it is not, because lifting
/// it costs an allocation. A limit below this size still holds for them.
#[cfg(feature = "axum")]
const LIFTED_ABOVE: usize = 1 << 10;

/// Switches off axum's own body limit for a delivery with a body of this length; it is 2 MiB unless
/// the app sets it. The body has passed the receiver's limit. Axum would refuse it after the layer,
/// at each retry.
#[cfg_attr(not(feature = "axum"), allow(unused_variables))]
fn lift_body_limit<B>(request: &mut Request<B>, length: usize) {
    #[cfg(feature = "axum")]
    if length > LIFTED_ABOVE {
        axum_core::extract::DefaultBodyLimit::disable().apply(request);
    }
}

/// The body of a verified delivery: exactly the bytes that were signed, in one frame.
#[derive(Clone, Default)]
pub struct VerifiedBody(Option<Bytes>);

impl VerifiedBody {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self((!bytes.is_empty()).then_some(bytes))
    }
}

impl Body for VerifiedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

impl fmt::Debug for VerifiedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.0.as_ref().map_or(0, Bytes::len);
        write!(f, "VerifiedBody({length} bytes)")
    }
}

pin_project_lite::pin_project! {
    /// The body of an answer: the inner service's own, or a short one of the receiver's.
    ///
    /// Its data are [`Bytes`], which axum and others ask for. If the inner service's data are
    /// `Bytes` too, they are passed on unchanged. Data of any other kind become one piece, frame by
    /// frame, by their [`copy_to_bytes`](bytes::Buf::copy_to_bytes). Trailers, the size hint and
    /// the end of the stream pass through.
    ///
    /// The default is an empty body, for every inner service. Outer layers that answer by
    /// themselves, such as time-outs, use it.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use hookgate::layer::ResponseBody;
    /// use http_body::Body;
    /// use http_body_util::Full;
    ///
    /// let empty = ResponseBody::<Full<Bytes>>::default();
    /// assert!(empty.is_end_stream());
    /// assert_eq!(empty.size_hint().exact(), Some(0));
    /// ```
    pub struct ResponseBody<R> {
        #[pin]
        body: Either<R>,
    }
}

pin_project_lite::pin_project! {
    #[project = EitherProjected]
    enum Either<R> {
        Inner { #[pin] body: R },
        Own { body: VerifiedBody },
    }
}

impl<R> ResponseBody<R> {
    pub(super) fn inner(body: R) -> Self {
        Self {
            body: Either::Inner { body },
        }
    }

    pub(super) fn own(bytes: Bytes) -> Self {
        Self {
            body: Either::Own {
                body: VerifiedBody::new(bytes),
            },
        }
    }
}

impl<R> Default for ResponseBody<R> {
    fn default() -> Self {
        Self::own(Bytes::new())
    }
}

impl ResponseBody<Bytes> {
    /// Returns the whole body, if the inner one is in one piece.
    pub(crate) fn into_bytes(self) -> Bytes {
        match self.body {
            Either::Inner { body } => body,
            Either::Own { body } => body.0.unwrap_or_default(),
        }
    }
}

impl<R: Body> Body for ResponseBody<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        match self.project().body.project() {
            // For `Bytes` this takes the bytes themselves: nothing is copied.
            EitherProjected::Inner { body } => body
                .poll_frame(context)
                .map_ok(|frame| frame.map_data(|mut data| data.copy_to_bytes(data.remaining()))),
            EitherProjected::Own { body } => Pin::new(body)
                .poll_frame(context)
                .map_err(|never| match never {}),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Either::Inner { body } => body.is_end_stream(),
            Either::Own { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Either::Inner { body } => body.size_hint(),
            Either::Own { body } => body.size_hint(),
        }
    }
}

impl<R> fmt::Debug for ResponseBody<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseBody")
    }
}
