//! Deliveries that were changed after they were signed.

use bytes::Bytes;
use hookgate::verify::{EVENT_ID, SIGNATURE, TIMESTAMP};
use http::{HeaderValue, Request};

/// A change that an attacker makes between sender and receiver.
///
/// A receiver of hookgate answers 401 to each of the first three, and 400 to the last: that header is not signed, so it may
/// be wrong, and is compared with the body.
///
/// ```
/// use hookgate_testing::sender::Tamper;
/// use hookgate_testing::{EventFactory, Signer};
///
/// # let secret = hookgate::Secret::new("whsec_made_up_for_this_example")?;
/// let body = EventFactory::new().row_created().body();
/// let request = Signer::new(secret).request("/webhooks", body.clone());
/// assert_ne!(Tamper::Body.apply(request).body(), &body);
/// # Ok::<(), hookgate::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Tamper {
    /// One more space in the body: the same JSON, but other bytes.
    Body,
    /// Another last digit of the signature.
    Signature,
    /// A timestamp one second later than the signed one.
    Timestamp,
    /// `X-Service-Event-Id` names another event than the body.
    EventId,
}

impl Tamper {
    /// Changes a delivery. A delivery without the part to change stays as it is.
    #[must_use]
    pub fn apply(self, mut request: Request<Bytes>) -> Request<Bytes> {
        match self {
            Self::Body => {
                let mut body = request.body().to_vec();
                body.push(b' ');
                *request.body_mut() = body.into();
            }
            Self::Signature => change(&mut request, SIGNATURE, |signature| {
                let last = signature.pop();
                signature.push(if last == Some('0') { '1' } else { '0' });
            }),
            Self::Timestamp => change(&mut request, TIMESTAMP, |timestamp| {
                let second: i64 = timestamp.parse().unwrap_or_default();
                *timestamp = second.saturating_add(1).to_string();
            }),
            Self::EventId => change(&mut request, EVENT_ID, |id| id.push_str("_of_another")),
        }
        request
    }
}

fn change(request: &mut Request<Bytes>, name: &'static str, change: impl FnOnce(&mut String)) {
    let Some(value) = request.headers().get(name) else {
        return;
    };
    let mut text = value.to_str().unwrap_or_default().to_owned();
    change(&mut text);
    if let Ok(value) = HeaderValue::try_from(text) {
        request.headers_mut().insert(name, value);
    }
}
