//! One attempt: a request that is sent, and its answer.

use std::time::Duration;

use bytes::Bytes;
use hookgate::Answer;
use http::{Request, Response};
use tokio::time::timeout;

use super::report::AttemptReport;
use crate::messages::chain;
use crate::transport::{Transport, TransportError};

/// The result of an attempt: an answer, the reason why there is none, or `Err(None)` where the app panicked.
pub(super) type Heard = Result<Response<Bytes>, Option<Unanswered>>;

/// Why no answer was heard.
pub(super) enum Unanswered {
    HungUp(Duration),
    Failed(TransportError),
}

pub(super) async fn deliver(
    transport: impl Transport,
    request: Request<Bytes>,
    patience: Duration,
) -> Result<Response<Bytes>, Unanswered> {
    match timeout(patience, transport.deliver(request)).await {
        Ok(answered) => answered.map_err(Unanswered::Failed),
        Err(_) => Err(Unanswered::HungUp(patience)),
    }
}

impl AttemptReport {
    pub(super) fn takes(&mut self, heard: Heard) {
        match heard {
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
