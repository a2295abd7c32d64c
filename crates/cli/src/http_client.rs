//! Delivers over HTTP/1.1, with TLS by rustls and the certificates that the system trusts.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::uri::Scheme;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use hookgate_testing::{Transport, TransportError};

use crate::fault::{Class, Fault, chain};

/// A longer answer is cut off with an error: a receiver's answer has a few hundred bytes.
const LONGEST_ANSWER: usize = 16 << 20;
/// The time limit for an answer, where nothing else is set: far longer than the service's.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The time limit for a connection, within the limit above. A host that drops unwanted packets
/// never answers.
const CONNECTING: Duration = Duration::from_secs(10);

/// A client whose clones share their connections. Follows no redirect, as the service's sender does
/// not.
#[derive(Clone, Debug)]
pub(crate) struct HttpClient {
    plain: Client<HttpConnector, Full<Bytes>>,
    /// Made when it is first needed: a system without certificates can still use http, and reading
    /// them takes time.
    secure: Arc<OnceLock<Result<SecureClient, Arc<io::Error>>>>,
    timeout: Duration,
}

type SecureClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

impl HttpClient {
    pub(crate) fn new() -> Result<Self, Fault> {
        Ok(Self {
            plain: Client::builder(TokioExecutor::new()).build(connector()),
            secure: Arc::default(),
            timeout: ANSWER_TIMEOUT,
        })
    }

    /// Gives up after this time, the connection, the request and the whole answer included.
    pub(crate) fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn secure(&self) -> Result<&SecureClient, TransportError> {
        let made = self
            .secure
            .get_or_init(|| secure_client().map_err(Arc::new));
        made.as_ref()
            .map_err(|error| TransportError::from(NoCertificates(Arc::clone(error))))
    }

    async fn ask(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let request = request.map(Full::new);
        let response = if request.uri().scheme() == Some(&Scheme::HTTPS) {
            self.secure()?.request(request).await.map_err(Unreached)?
        } else {
            self.plain.request(request).await.map_err(Unreached)?
        };
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, LONGEST_ANSWER)
            .collect()
            .await
            .map_err(|error| match error.downcast::<LengthLimitError>() {
                Ok(_) => TransportError::from(TooLong),
                Err(error) => error,
            })?
            .to_bytes();
        Ok(Response::from_parts(parts, body))
    }
}

impl Transport for HttpClient {
    async fn deliver(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        match tokio::time::timeout(self.timeout, self.ask(request)).await {
            Ok(answered) => answered,
            Err(_) => Err(TransportError::from(NoAnswer(self.timeout))),
        }
    }
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECTING));
    connector
}

fn secure_client() -> io::Result<SecureClient> {
    let connector = HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(rustls::crypto::ring::default_provider())?
        .https_only()
        .enable_http1()
        .wrap_connector(connector());
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

/// The client's own error, told without the parts that say no more than that it is one.
#[derive(Debug)]
struct Unreached(hyper_util::client::legacy::Error);

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.0.source().map(chain);
        let reason = reason.unwrap_or_else(|| self.0.to_string());
        f.write_str(
            reason
                .strip_prefix("tcp connect error: ")
                .unwrap_or(&reason),
        )
    }
}

impl Error for Unreached {}

#[derive(Debug, thiserror::Error)]
#[error("no answer within {} s", .0.as_secs_f64())]
struct NoAnswer(Duration);

#[derive(Debug, thiserror::Error)]
#[error("the answer is longer than {} MiB", LONGEST_ANSWER >> 20)]
struct TooLong;

#[derive(Debug, thiserror::Error)]
#[error("the certificates that the system trusts can't be read")]
struct NoCertificates(#[source] Arc<io::Error>);

/// Reads a URL to deliver to.
pub(crate) fn target(text: &str) -> Result<Uri, Fault> {
    let wrong = |what: &str| {
        // The text before an @ may be a password.
        let shown = text.rsplit('@').next().unwrap_or_default();
        let what = format!("{shown:?} is not a URL to deliver to: {what}");
        Fault::new(Class::Usage, what).advise("write it whole: http://localhost:8080/webhooks")
    };
    let uri: Uri = text.parse().map_err(|_| wrong("it is not well-formed"))?;
    match uri.scheme_str() {
        Some("http" | "https") => {}
        Some(other) => return Err(wrong(&format!("{other} is neither http nor https"))),
        None => return Err(wrong("it does not begin with http:// or https://")),
    }
    match uri.authority() {
        Some(authority) if authority.as_str().contains('@') => Err(wrong(
            "it has a user name or a password, which are never sent and show in the list of processes",
        )),
        Some(authority) if !authority.host().is_empty() => Ok(uri),
        _ => Err(wrong("it names no host")),
    }
}

/// Describes why no answer came from the target, and how the user can fix it.
pub(crate) fn unreachable(target: &Uri, error: &TransportError) -> Fault {
    let host = target
        .authority()
        .map_or("", |authority| authority.as_str());
    let fault = Fault::caused_by(
        Class::Network,
        &format!("no answer from {host}"),
        error.as_ref(),
    );
    fault.advise(advice(host, error.as_ref()))
}

fn advice(host: &str, error: &(dyn Error + 'static)) -> String {
    let mut next = match error.downcast_ref() {
        Some(Unreached(error)) => error.source(),
        None => Some(error),
    };
    while let Some(error) = next {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if kind == Some(io::ErrorKind::ConnectionRefused) {
            return format!("is the receiver running, and does it listen at {host}?");
        }
        // The libraries below keep two kinds private: those that are told by their text.
        let text = error.to_string();
        let found = if error.is::<NoAnswer>() || kind == Some(io::ErrorKind::TimedOut) {
            "is the receiver overloaded, or does a firewall drop what you send?"
        } else if error.is::<TooLong>() {
            "is it a receiver? an answer to a delivery needs no body"
        } else if error.is::<NoCertificates>() {
            "install the system's certificates (Debian: ca-certificates), or name a file of them: SSL_CERT_FILE=ca.pem"
        } else if text.contains("dns error") {
            "check the host's name"
        } else if text.contains("certificate") {
            "if you issued the certificate yourself, name the certificate of its issuer: SSL_CERT_FILE=ca.pem"
        } else {
            next = error.source();
            continue;
        };
        return found.to_owned();
    }
    "is the port right, and is it http or https?".to_owned()
}
