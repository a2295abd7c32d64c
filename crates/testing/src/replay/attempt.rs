//! One attempt: a request that is sent, and its answer.

use std::time::Duration;

use bytes::Bytes;
use hookgate::layer::Answer;
use http::{Request, Response};
use tokio::time::timeout;

use super::report::AttemptReport;
use crate::messages::chain;
use crate::transport::{Transport, TransportError};

/// The result of an attempt: an answer, the reason why there is none, or `Err(None)` where the app panicked.
pub(super) type AttemptResult = Result<Response<Bytes>, Option<Unanswered>>;

/// Why there is no answer.
pub(super) enum Unanswered {
    HungUp(Duration),
    Failed(TransportError),
}

pub(super) async fn deliver(
    transport: impl Transport,
    request: Request<Bytes>,
    answer_timeout: Duration,
) -> Result<Response<Bytes>, Unanswered> {
    match timeout(answer_timeout, transport.deliver(request)).await {
        Ok(answered) => answered.map_err(Unanswered::Failed),
        Err(_) => Err(Unanswered::HungUp(answer_timeout)),
    }
}

impl AttemptReport {
    pub(super) fn set_answer(&mut self, result: AttemptResult) {
        match result {
            Ok(response) => {
                self.status = Some(response.status().as_u16());
                let answer = response.extensions().get::<Answer>();
                let outcome = answer.map_or("unknown", |answer| answer.outcome.name());
                self.outcome = outcome.to_owned();
                let reason = answer.and_then(|answer| answer.reason.as_ref());
                let reason = reason.filter(|_| !self.is_success());
                self.reason = reason.map(|reason| chain(&**reason));
            }
            Err(Some(Unanswered::HungUp(after))) => {
                self.outcome = format!("the sender hung up after {} ms", after.as_millis());
            }
            Err(Some(Unanswered::Failed(error))) => self.outcome = format!("failed: {error}"),
            Err(None) => self.outcome = "the app panicked".to_owned(),
        }
    }
}
