//! The answers that the receiver makes itself.

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};

use crate::outcome::{Failure, Outcome, Refusal, RefusalKind};

/// The message to the sender for a delivery that does not fit.
pub(crate) const TYPE_MISMATCH: &str = "the delivery is no event that is handled here";

/// Marks the answer to an event that was already done.
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

pub(super) fn mark_as_replayed(headers: &mut HeaderMap) {
    headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
}

/// Makes the response for an answer of the receiver.
pub(crate) type Shape = dyn Fn(&OwnAnswer) -> Response<Bytes> + Send + Sync;

/// An answer that the receiver makes itself, for [`ReceiverBuilder::with_answers`](crate::ReceiverBuilder::with_answers) to
/// shape.
///
/// It contains only data that the sender may see: it is the same for every delivery that is not authentic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAnswer {
    status: StatusCode,
    error: Option<(&'static str, &'static str)>,
    retry_after: Option<u64>,
    replayed: bool,
}

impl OwnAnswer {
    /// Returns the answer for an outcome that has no handler's response.
    pub(crate) fn to(outcome: Outcome) -> Self {
        let (status, error) = match outcome {
            Outcome::Accepted | Outcome::DeadLettered | Outcome::Replayed { .. } => {
                (StatusCode::OK, None)
            }
            Outcome::Failed(Failure::TypeMismatch | Failure::Unhandled) => {
                let error = ("VALIDATION_ERROR", TYPE_MISMATCH);
                (StatusCode::UNPROCESSABLE_ENTITY, Some(error))
            }
            // For the sender, a run that goes on and a run that was aborted have the same answer: try again later.
            Outcome::RunsOn | Outcome::Failed(Failure::RunLimit | Failure::Drained) => {
                return Self::from(&Refusal::new(RefusalKind::StillRunning));
            }
            _ => {
                let error = ("INTERNAL_ERROR", "the delivery could not be handled");
                (StatusCode::INTERNAL_SERVER_ERROR, Some(error))
            }
        };
        Self {
            status,
            error,
            retry_after: None,
            replayed: matches!(outcome, Outcome::Replayed { .. }),
        }
    }

    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the code of the service's error envelope; `None` for a 200.
    #[must_use]
    pub fn code(&self) -> Option<&'static str> {
        self.error.map(|(code, _)| code)
    }

    /// Returns the message of the service's error envelope; `None` for a 200.
    #[must_use]
    pub fn message(&self) -> Option<&'static str> {
        self.error.map(|(_, message)| message)
    }

    /// Returns the seconds for `Retry-After`, with a 503.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        self.retry_after
    }

    /// Returns whether the event was already done: `Idempotent-Replayed: true`.
    #[must_use]
    pub fn is_replay(&self) -> bool {
        self.replayed
    }

    /// Returns the default response for this answer: the service's error envelope.
    #[must_use]
    pub fn to_response(&self) -> Response<Bytes> {
        let body = self
            .error
            .map_or_else(Bytes::new, |(code, message)| envelope(code, message).into());
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if self.error.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(ALLOW, HeaderValue::from_static("POST"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.replayed {
            mark_as_replayed(headers);
        }
        response
    }
}

impl From<&Refusal> for OwnAnswer {
    fn from(refusal: &Refusal) -> Self {
        Self {
            status: StatusCode::from_u16(refusal.kind().status())
                .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            error: Some((refusal.kind().code(), refusal.kind().message())),
            retry_after: refusal
                .retry_after()
                .map(|wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0)),
            replayed: false,
        }
    }
}

/// Returns the service's error envelope. The texts are from this crate and need no escaping.
pub(crate) fn envelope(code: &str, message: &str) -> String {
    format!(r#"{{"error":{{"code":"{code}","message":"{message}"}}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::VerifyError;
    use crate::verify::VerifyErrorKind;

    #[test]
    fn whatever_is_not_authentic_has_one_answer() {
        let answers = [
            VerifyErrorKind::SignatureMismatch,
            VerifyErrorKind::UnknownSubscription,
            VerifyErrorKind::WorkspaceMismatch,
        ]
        .map(|kind| OwnAnswer::from(&VerifyError::new(kind).into()));
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[0], answers[2]);
        assert_eq!(
            answers[0].to_response().body(),
            r#"{"error":{"code":"UNAUTHORIZED","message":"the delivery could not be authenticated"}}"#
        );
    }

    #[test]
    fn headers_follow_from_the_status() {
        let header = |kind, name: HeaderName| {
            let response = OwnAnswer::from(&Refusal::new(kind)).to_response();
            response.headers().get(name).cloned()
        };
        assert_eq!(
            header(RefusalKind::MethodNotAllowed, ALLOW).unwrap(),
            "POST"
        );
        assert_eq!(header(RefusalKind::StoreFull, RETRY_AFTER).unwrap(), "10");
        assert_eq!(header(RefusalKind::BodyTooSlow, RETRY_AFTER), None);
        let replay = OwnAnswer::to(Outcome::Replayed { same_body: true }).to_response();
        assert_eq!(replay.headers()["idempotent-replayed"], "true");
        assert!(replay.body().is_empty() && replay.headers().len() == 1);
    }
}
