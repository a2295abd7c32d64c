//! Builds the request that the layer would have passed on, from an entry.

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request};

use crate::layer::VerifiedBody;
use crate::verify::{EVENT_ID, EVENT_TYPE, TIMESTAMP, WEBHOOK_ID};
use crate::walk::Delivery;

/// Returns a POST to `/` with the bytes that were signed, and the delivery in its extensions. It has the headers whose values are
/// stored. The signature was not stored, and the request must not be verified again.
pub(super) fn request(delivery: &Delivery) -> Request<VerifiedBody> {
    let mut request = Request::new(VerifiedBody::new(delivery.body().clone()));
    *request.method_mut() = Method::POST;
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let proof = delivery.verified().proof();
    let known = [
        (TIMESTAMP, Some(proof.timestamp().as_str())),
        (WEBHOOK_ID, proof.subscription_id()),
        (EVENT_ID, Some(delivery.event_id())),
        (EVENT_TYPE, Some(delivery.event_type())),
    ];
    for (name, value) in known {
        // An id may be any text. If it cannot be the value of a header, the header is left out.
        if let Some(Ok(value)) = value.map(|value| HeaderValue::from_bytes(value.as_bytes())) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    request.extensions_mut().insert(delivery.clone());
    #[cfg(feature = "axum")]
    crate::extract::lift_body_limit(&mut request, delivery);
    request
}
