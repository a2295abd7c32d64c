//! Bodies: requests are read under a limit, answers are whole or a stream.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::channel::Channel;
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::Incoming;

use crate::answer::ApiError;

/// The body of an answer.
pub(crate) type Reply = Either<Full<Bytes>, Channel<Bytes, Infallible>>;

/// A client that stops sending is not waited for.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads a body of at most `most` bytes.
///
/// # Errors
/// 400: it is longer, it broke off, or it took too long.
pub(super) async fn read(body: Incoming, most: usize) -> Result<Bytes, ApiError> {
    let collected = Limited::new(body, most).collect();
    let read = tokio::time::timeout(BODY_TIMEOUT, collected).await;
    match read {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ApiError::validation(format!(
            "the body is longer than {most} bytes"
        ))),
        Ok(Err(_)) => Err(ApiError::validation("the body broke off")),
        Err(_) => Err(ApiError::validation("the body did not arrive in time")),
    }
}
