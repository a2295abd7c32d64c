//! Delivers over HTTP/1.1, with TLS by rustls and the certificates that the system trusts.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use hookgate::testing::{Transport, TransportError};

use crate::fault::{Class, Fault};

/// An answer longer than this is cut off with an error: what a receiver answers is a few hundred bytes.
const LONGEST_ANSWER: usize = 16 << 20;

/// A client whose clones share their connections. Follows no redirect, as the service's sender does not.
#[derive(Clone, Debug)]
pub(crate) struct HttpClient(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl HttpClient {
    pub(crate) fn new() -> Result<Self, Fault> {
        let connector = HttpsConnectorBuilder::new()
            .with_native_roots()
            .map_err(|error| {
                Fault::caused_by(
                    Class::Network,
                    "the system's certificates can't be read",
                    &error,
                )
            })?
            .https_or_http()
            .enable_http1()
            .build();
        Ok(Self(Client::builder(TokioExecutor::new()).build(connector)))
    }
}

impl Transport for HttpClient {
    async fn deliver(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let response = self.0.request(request.map(Full::new)).await?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, LONGEST_ANSWER)
            .collect()
            .await?
            .to_bytes();
        Ok(Response::from_parts(parts, body))
    }
}
