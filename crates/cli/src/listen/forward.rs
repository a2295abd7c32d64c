//! Passes verified deliveries on to another server, byte for byte.

use bytes::Bytes;
use hookgate::HandlerError;
use hookgate_testing::Transport;
use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{Request, Response, StatusCode, Uri};

use crate::fault::chain;
use crate::http_client::HttpClient;
use crate::send::set_headers;

#[derive(Clone, Debug)]
pub(crate) struct Forward {
    pub(crate) client: HttpClient,
    pub(crate) url: Uri,
    /// Set on each request, in place of a header of that name.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

impl Forward {
    /// Sends the delivery to the server and returns its answer, so that the sender tries again where that server failed. No
    /// answer is a 502.
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

/// The headers that are meant for the other end, in their order: without those of one connection (RFC 9110, section 7.6.1), and
/// without host and length, which the next connection sets itself.
pub(crate) fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let named = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let named: Vec<_> = named
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse::<HeaderName>().ok())
        .collect();
    let is_hop = |name: &HeaderName| {
        [
            CONNECTION,
            HOST,
            CONTENT_LENGTH,
            TE,
            TRAILER,
            TRANSFER_ENCODING,
            UPGRADE,
        ]
        .contains(name)
            || [
                "keep-alive",
                "proxy-connection",
                "proxy-authenticate",
                "proxy-authorization",
            ]
            .contains(&name.as_str())
            || named.contains(name)
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
