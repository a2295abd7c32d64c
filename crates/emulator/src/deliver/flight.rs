//! One attempt with its fault: what is signed, what is changed after that, and how it goes through the network.

use std::time::Duration;

use bytes::Bytes;
use hookgate::clock::UnixSeconds;
use hookgate_testing::sender::{Attempted, NetworkFault, Subscription};
use http::{HeaderValue, Request, header};

use super::route::Reset;
use crate::faults::{Fault, gzip};

/// How far `stale` and `ahead` are off: twice the time that receivers accept.
const OFF: i64 = 600;

/// An attempt that is about to begin.
pub(super) struct Flight {
    /// Signs with another secret where that is the fault.
    pub(super) subscription: Subscription,
    pub(super) event_id: String,
    pub(super) event_type: String,
    pub(super) body: Bytes,
    pub(super) timestamp: UnixSeconds,
    pub(super) fault: Option<Fault>,
    pub(super) timeout: Duration,
}

impl Flight {
    /// Makes the request as it is sent.
    pub(super) fn request(&self) -> Request<Bytes> {
        let off = match self.fault {
            Some(Fault::Stale) => -OFF,
            Some(Fault::Ahead) => OFF,
            _ => 0,
        };
        let at = UnixSeconds::new(self.timestamp.as_i64().saturating_add(off));
        let mut request =
            self.subscription
                .signed(at, &self.event_id, &self.event_type, &self.body);
        match self.fault {
            Some(Fault::AlteredByte) => {
                let mut body = request.body().to_vec();
                let middle = body.len() / 2;
                if let Some(byte) = body.get_mut(middle) {
                    *byte ^= 1;
                }
                *request.body_mut() = body.into();
            }
            Some(Fault::Gzip) => {
                let body = gzip(request.body());
                *request.body_mut() = body.into();
                let encoding = HeaderValue::from_static("gzip");
                request
                    .headers_mut()
                    .insert(header::CONTENT_ENCODING, encoding);
            }
            Some(Fault::Reset) => {
                request.extensions_mut().insert(Reset);
            }
            _ => {}
        }
        request
    }

    pub(super) async fn fly(&self, request: Request<Bytes>) -> Attempted {
        let fault = match self.fault {
            Some(Fault::Duplicated) => Some(NetworkFault::Duplicated),
            Some(Fault::LostAnswer) => Some(NetworkFault::AnswerLost),
            Some(Fault::Slow) => Some(NetworkFault::Slow),
            _ => None,
        };
        self.subscription
            .attempt(request, fault, self.timeout)
            .await
    }
}
