//! HTTP/1.1 over hyper: who may call, what is read of a request, and where it goes.

mod guard;
mod inspect;
mod serve;
mod server;

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::header::CONTENT_TYPE;
use http_body_util::channel::Channel;
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

use crate::answer::ApiError;
use crate::live::Live;
pub(crate) use guard::Access;
pub(crate) use server::Server;

/// The body of an answer.
pub(crate) type Reply = Either<Full<Bytes>, Channel<Bytes, Infallible>>;

/// A client that stops sending is not waited for.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads a body of at most `most` bytes.
///
/// # Errors
/// 400: it is longer, it broke off, or it took too long.
async fn read(body: Incoming, most: usize) -> Result<Bytes, ApiError> {
    let collected = Limited::new(body, most).collect();
    let read = timeout(BODY_TIMEOUT, collected).await;
    match read {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ApiError::validation(format!(
            "the body is longer than {most} bytes"
        ))),
        Ok(Err(_)) => Err(ApiError::validation("the body broke off")),
        Err(_) => Err(ApiError::validation("the body did not arrive in time")),
    }
}

/// Changes that wait for a slow reader; those that come meanwhile wait in `Live`.
const WAITING: usize = 16;
/// After this time without a change, a comment is sent: it keeps the connection open, and its
/// failure shows that the reader is gone.
const STILL_THERE: Duration = Duration::from_secs(15);

/// Answers with a stream that ends when the reader goes.
fn stream(live: &Live) -> Response<Reply> {
    let (mut sender, body) = Channel::new(WAITING);
    let mut told = live.listen();
    tokio::spawn(async move {
        let mut text = "retry: 1000\n\n".to_owned();
        while sender.send_data(Bytes::from(text)).await.is_ok() {
            text = match timeout(STILL_THERE, told.recv()).await {
                Ok(Ok(told)) => format!("event: {}\ndata: {}\n\n", told.kind, told.data),
                // The reader was too slow and has missed changes. On this event it loads everything
                // again.
                Ok(Err(RecvError::Lagged(_))) => "event: missed\ndata: null\n\n".to_owned(),
                Ok(Err(RecvError::Closed)) => return,
                Err(_) => ":\n\n".to_owned(),
            };
        }
    });
    let mut answer = Response::new(Either::Right(body));
    let kind = http::HeaderValue::from_static("text/event-stream");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}
