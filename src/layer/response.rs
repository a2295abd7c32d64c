//! The responses that the receiver makes itself.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};

use crate::outcome::{DEFAULT_RETRY, Outcome};

/// Marks the answer to an event that was already done.
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

pub(super) fn mark_as_replayed(headers: &mut HeaderMap) {
    headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
}

/// Shapes a response that the receiver makes itself.
pub(crate) type Shape = dyn Fn(Outcome, Response<Bytes>) -> Response<Bytes> + Send + Sync;

/// Returns the default response to an outcome: the service's error envelope.
pub(super) fn own_response(outcome: Outcome, retry_after: Option<Duration>) -> Response<Bytes> {
    let error = outcome.error();
    let body = error.map(|(code, message)| envelope(code, message).into());
    let mut response = Response::new(body.unwrap_or_default());
    let status = StatusCode::from_u16(outcome.own_status());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if error.is_some() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let wait = retry_after.unwrap_or(DEFAULT_RETRY);
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if matches!(outcome, Outcome::Replayed { .. }) {
        mark_as_replayed(headers);
    }
    response
}

/// Returns the service's error envelope. The texts are from this crate and need no escaping.
pub(crate) fn envelope(code: &str, message: &str) -> String {
    format!(r#"{{"error":{{"code":"{code}","message":"{message}"}}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::RefusalKind;

    #[test]
    fn headers_follow_from_the_status() {
        let header = |kind, name: HeaderName| {
            let response = own_response(Outcome::Refused(kind), None);
            response.headers().get(name).cloned()
        };
        assert_eq!(
            header(RefusalKind::MethodNotAllowed, ALLOW).unwrap(),
            "POST"
        );
        assert_eq!(header(RefusalKind::StoreFull, RETRY_AFTER).unwrap(), "10");
        assert_eq!(header(RefusalKind::BodyTooSlow, RETRY_AFTER), None);
        let replay = own_response(Outcome::Replayed { same_body: true }, None);
        assert_eq!(replay.headers()["idempotent-replayed"], "true");
        assert!(replay.body().is_empty() && replay.headers().len() == 1);
    }
}
