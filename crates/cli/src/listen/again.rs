//! Delivers a delivery once more: the bytes received, but signed for now.

use bytes::Bytes;
use hookgate::verify::{EVENT_ID, EVENT_TYPE};
use hookgate::{Scheme, Secret};
use hookgate_record::LoggedDelivery;
use hookgate_testing::log::LoggedDeliveryExt;
use hookgate_testing::{Signer, Transport};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri};

use super::forward::end_to_end;
use crate::fault::chain;
use crate::http_client::HttpClient;

#[derive(Clone)]
pub(crate) struct Again {
    pub(crate) client: HttpClient,
    pub(crate) secret: Secret,
}

impl Again {
    /// Returns the answer.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(crate) async fn deliver(
        &self,
        delivery: &LoggedDelivery,
        to: &Uri,
    ) -> Result<Response<Bytes>, String> {
        let Some(request) = signed_again(delivery, &self.secret, to) else {
            return Err("its body was not read, so there is nothing to sign".to_owned());
        };
        let answered = self.client.deliver(request).await;
        answered.map_err(|error| format!("{to} can't be reached: {}", chain(&*error)))
    }
}

/// The same delivery with another body. The headers that name the event have to fit it, since a receiver compares them.
pub(crate) fn changed(delivery: &LoggedDelivery, body: Bytes) -> LoggedDelivery {
    let mut changed = delivery.clone();
    changed
        .headers
        .retain(|(name, _)| ![EVENT_ID, EVENT_TYPE].contains(&&**name));
    changed.body = Some(body);
    let head = changed.read_by(Scheme::WORKSPACE);
    let named = [(EVENT_ID, head.event_id), (EVENT_TYPE, head.event_type)];
    for (name, text) in named {
        if let Some(text) = text {
            changed.headers.push((name.to_owned(), text.into()));
        }
    }
    changed
}

fn signed_again(delivery: &LoggedDelivery, secret: &Secret, to: &Uri) -> Option<Request<Bytes>> {
    let delivery = delivery.resigned(&Signer::new(secret.clone()))?;
    let mut headers = HeaderMap::new();
    for (name, value) in &delivery.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    let mut request = Request::new(delivery.body?);
    *request.method_mut() = delivery.method.parse().ok()?;
    *request.uri_mut() = to.clone();
    *request.headers_mut() = end_to_end(&headers);
    Some(request)
}
