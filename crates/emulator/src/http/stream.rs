//! Server-sent events: each change as it happens, for the page.

use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::header::CONTENT_TYPE;
use http_body_util::Either;
use http_body_util::channel::Channel;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

use super::Reply;
use crate::live::Live;

/// Changes that wait for a slow reader; those that come meanwhile wait in `Live`.
const WAITING: usize = 16;
/// After this time without a change, a comment is sent: it keeps the connection open, and its failure shows that the reader is gone.
const STILL_THERE: Duration = Duration::from_secs(15);

/// Answers with a stream that ends when the reader goes.
pub(crate) fn stream(live: &Live) -> Response<Reply> {
    let (mut sender, body) = Channel::new(WAITING);
    let mut told = live.listen();
    tokio::spawn(async move {
        let mut text = "retry: 1000\n\n".to_owned();
        while sender.send_data(Bytes::from(text)).await.is_ok() {
            text = match timeout(STILL_THERE, told.recv()).await {
                Ok(Ok(told)) => format!("event: {}\ndata: {}\n\n", told.kind, told.data),
                // The reader was too slow and has missed changes. On this event it loads everything again.
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
