//! The answers to deliveries: a fixed answer, or the answer of a server behind this one, to which
//! they are passed on byte for byte. And deliveries that are signed again for now.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hookgate::internal::from_foreign_json;
use hookgate::verify::{EVENT_ID, EVENT_TYPE};
use hookgate::{Delivery, HandlerError, Scheme, Secret};
use hookgate_record::LoggedDelivery;
use hookgate_testing::log::LoggedDeliveryExt;
use hookgate_testing::{Signer, Transport};
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri};
use serde::de::IgnoredAny;

use super::filter::EventTypes;
use crate::fault::chain;
use crate::http_client::HttpClient;
use crate::send::{FRAMES, set_headers};

#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
    /// None where there is no body.
    pub(crate) content_type: Option<HeaderValue>,
    /// Events of other types are answered 204, and go nowhere.
    pub(crate) events: EventTypes,
    pub(crate) delay: Duration,
    /// The number of runs that are still to fail.
    pub(crate) fail_first: AtomicU64,
    pub(crate) forward: Option<Forward>,
}

/// The Content-Type of this body of all answers.
pub(crate) fn content_type(body: &[u8]) -> Option<HeaderValue> {
    if body.is_empty() {
        return None;
    }
    Some(HeaderValue::from_static(
        match from_foreign_json::<IgnoredAny>(body) {
            Ok(_) => "application/json",
            Err(_) => "text/plain; charset=utf-8",
        },
    ))
}

impl Answers {
    /// Only deliveries that are authentic, fresh and not done come here.
    pub(crate) async fn answer(&self, headers: HeaderMap, delivery: Delivery) -> Response<Bytes> {
        if !self.events.take(delivery.event_type()) {
            return empty(StatusCode::NO_CONTENT);
        }
        tokio::time::sleep(self.delay).await;
        let one_less = |left: u64| left.checked_sub(1);
        if self
            .fail_first
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .is_ok()
        {
            let reason = HandlerError::from("told to fail by --fail-first");
            return reason.mark(empty(StatusCode::INTERNAL_SERVER_ERROR));
        }
        if let Some(forward) = &self.forward {
            return forward.pass_on(&headers, delivery.body().clone()).await;
        }
        let mut response = Response::new(self.body.clone());
        *response.status_mut() = self.status;
        if let Some(content_type) = &self.content_type {
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, content_type.clone());
        }
        if self.status.is_success() {
            return response;
        }
        let reason = format!("told to answer so by --status {}", self.status.as_u16());
        HandlerError::from(reason).mark(response)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Forward {
    pub(crate) client: HttpClient,
    pub(crate) url: Uri,
    /// Set on each request, in place of a header of that name.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

impl Forward {
    /// Sends the delivery to the server and returns its answer, so that the sender tries again
    /// where that server failed. No answer is a 502.
    pub(crate) async fn pass_on(&self, headers: &HeaderMap, body: Bytes) -> Response<Bytes> {
        let mut request = Request::new(body);
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = end_to_end(headers);
        set_headers(request.headers_mut(), &self.headers);
        let reason = match self.client.deliver(request).await {
            Ok(mut response) => {
                *response.headers_mut() = end_to_end(response.headers());
                if response.status().is_success() {
                    return response;
                }
                let reason = format!("{} answered {}", self.url, response.status().as_u16());
                return HandlerError::from(reason).mark(response);
            }
            Err(error) => format!("no answer from {}: {}", self.url, chain(&*error)),
        };
        HandlerError::from(reason).mark(empty(StatusCode::BAD_GATEWAY))
    }
}

/// The headers that are meant for the other end, in their order: without those of one connection
/// (RFC 9110, section 7.6.1), and without host and length, which the next connection sets itself.
pub(crate) fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let named = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let named: Vec<_> = named
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse::<HeaderName>().ok())
        .collect();
    const OTHERS: [&str; 4] = [
        "host",
        "proxy-connection",
        "proxy-authenticate",
        "proxy-authorization",
    ];
    let is_hop = |name: &HeaderName| {
        FRAMES.contains(&name.as_str()) || OTHERS.contains(&name.as_str()) || named.contains(name)
    };
    let kept = headers.iter().filter(|(name, _)| !is_hop(name));
    kept.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Returns an answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response
}

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

/// The same delivery with another body. The headers that name the event have to fit it, since a
/// receiver compares them.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_one_connection_stay_here() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "localhost"),
            ("x-service-signature", "sha256=00"),
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("keep-alive", "5"),
            ("transfer-encoding", "chunked"),
            ("content-length", "2"),
            ("x-doubled", "one"),
            ("x-doubled", "two"),
            ("content-type", "application/json"),
        ] {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        let kept = end_to_end(&headers);
        let kept: Vec<_> = kept
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        assert_eq!(
            kept,
            [
                ("x-service-signature", &b"sha256=00"[..]),
                ("x-doubled", b"one"),
                ("x-doubled", b"two"),
                ("content-type", b"application/json"),
            ]
        );
    }
}
