//! The way to receivers: HTTP/1.1 to loopback addresses, or a transport that the program gives.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hookgate_testing::{Transport, TransportError};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioExecutor;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, lookup_host};
use tower_service::Service;

pub(crate) const EXAMPLE: &str = "http://127.0.0.1:8787/webhooks";
/// What is read of an answer's body. The rest is left unread: the status decides.
const ANSWER: usize = 64 << 10;
/// The time between the first half of a body and the reset, so that the receiver has read the half.
const HALF_READ: Duration = Duration::from_millis(20);

/// The hosts to which deliveries may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Loopback,
    Anywhere,
}

/// Marks a request whose connection is reset in the middle of its body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reset;

/// The way of all deliveries of an emulator. Clones share their connections.
#[derive(Clone)]
pub(crate) struct Route {
    way: Way,
    given: bool,
}

impl Route {
    /// Returns the way over a transport of the program, which decides itself where deliveries may
    /// go.
    pub(crate) fn to(transport: impl Transport) -> Self {
        Self {
            way: way(transport),
            given: true,
        }
    }

    pub(super) fn http(reach: Reach) -> Self {
        let mut connector = HttpConnector::new_with_resolver(Resolver(reach));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Self {
            way: way(Http { client, reach }),
            given: false,
        }
    }

    pub(super) fn is_given(&self) -> bool {
        self.given
    }
}

impl Transport for Route {
    async fn deliver(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        if self.given && request.extensions().get::<Reset>().is_some() {
            return Err("the connection was reset".into());
        }
        (self.way)(request).await
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route").finish_non_exhaustive()
    }
}

type DeliverFuture = Pin<Box<dyn Future<Output = Result<Response<Bytes>, TransportError>> + Send>>;
type Way = Arc<dyn Fn(Request<Bytes>) -> DeliverFuture + Send + Sync>;

/// A transport of any type, which clones itself for each request.
fn way(transport: impl Transport) -> Way {
    Arc::new(move |request| {
        let transport = transport.clone();
        Box::pin(async move { transport.deliver(request).await })
    })
}

/// Checks the URL of a subscription.
///
/// # Errors
/// A sentence that states the expected form.
pub(super) fn permitted(url: &str, reach: Reach) -> Result<(), String> {
    let wrong = |why: &str| {
        let url = short(url);
        Err(format!(
            "the URL {url} {why}, expected one such as {EXAMPLE}"
        ))
    };
    let Ok(uri) = url.parse::<Uri>() else {
        return wrong("is not well-formed");
    };
    let Some(authority) = uri.authority() else {
        return wrong("names no host");
    };
    if authority.as_str().contains('@') {
        let told = "a URL with a user name or password is not taken, expected one such as";
        return Err(format!("{told} {EXAMPLE}"));
    }
    if uri.scheme_str() != Some("http") {
        return wrong("is not http");
    }
    let host = authority.host();
    // Without this check, 80 would be taken in place of a number that is not a port.
    if authority.as_str() != host && authority.port_u16().is_none_or(|port| port == 0) {
        return wrong("has no port from 1 to 65535");
    }
    let local = match address(host) {
        Some(ip) => is_loopback(ip),
        None => host.eq_ignore_ascii_case("localhost") || ends_in_localhost(host),
    };
    if reach == Reach::Loopback && !local {
        return wrong("is not on this machine, and deliveries to other hosts are not allowed");
    }
    Ok(())
}

fn ends_in_localhost(host: &str) -> bool {
    let last = host.trim_end_matches('.').rsplit('.').next();
    last.is_some_and(|last| last.eq_ignore_ascii_case("localhost"))
}

fn address(host: &str) -> Option<IpAddr> {
    let host = host.strip_prefix('[').unwrap_or(host);
    host.strip_suffix(']').unwrap_or(host).parse().ok()
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// HTTP/1.1 with connections that are used again. Follows no redirect, as the service does not.
#[derive(Clone)]
struct Http {
    client: Client<HttpConnector<Resolver>, Full<Bytes>>,
    reach: Reach,
}

impl Transport for Http {
    async fn deliver(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        // Also after the subscription was made: a snapshot may have come from elsewhere.
        permitted(&request.uri().to_string(), self.reach)?;
        if request.extensions().get::<Reset>().is_some() {
            return Err(self.reset(&request).await?);
        }
        let host = request.uri().authority().map(ToString::to_string);
        let answer = self.client.request(request.map(Full::new)).await;
        let answer = answer.map_err(|error| plain(&error, &host.unwrap_or_default()))?;
        let (parts, mut body) = answer.into_parts();
        let mut read = BytesMut::new();
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame?.into_data() {
                read.extend_from_slice(&data);
            }
            if read.len() > ANSWER {
                read.truncate(ANSWER);
                break;
            }
        }
        Ok(Response::from_parts(parts, read.freeze()))
    }
}

/// The innermost reason why no answer came. The client's own words around it say no more than that
/// it is a client.
fn plain(error: &(dyn Error + 'static), host: &str) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    if kind == Some(io::ErrorKind::ConnectionRefused) {
        return format!("connection refused: nothing listens at {host}");
    }
    let reason = error.to_string();
    let number = reason.find(" (os error");
    reason[..number.unwrap_or(reason.len())].to_owned()
}

impl Http {
    /// Sends the head and half of the body, and resets the connection. Returns the end of this.
    async fn reset(&self, request: &Request<Bytes>) -> io::Result<TransportError> {
        let uri = request.uri();
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let found: Vec<_> = lookup_host((host, uri.port_u16().unwrap_or(80)))
            .await?
            .collect();
        let allowed = allowed(found, self.reach)?;
        let mut stream = TcpStream::connect(&allowed[..]).await?;
        let body = request.body();
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut head = format!("POST {path} HTTP/1.1\r\nhost: {authority}\r\n");
        for (name, value) in request.headers() {
            let value = String::from_utf8_lossy(value.as_bytes());
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&body[..body.len() / 2]).await?;
        stream.flush().await?;
        tokio::time::sleep(HALF_READ).await;
        // Closed without a linger, the connection is reset.
        stream.set_zero_linger()?;
        drop(stream);
        Ok("the connection was reset".into())
    }
}

/// Looks names up, and leaves out the addresses that deliveries may not go to: a name can lead
/// anywhere.
#[derive(Clone, Copy)]
struct Resolver(Reach);

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let reach = self.0;
        Box::pin(async move {
            let found: Vec<_> = lookup_host((name.as_str(), 0)).await?.collect();
            Ok(allowed(found, reach)?.into_iter())
        })
    }
}

fn allowed(found: Vec<SocketAddr>, reach: Reach) -> io::Result<Vec<SocketAddr>> {
    let mut allowed = found;
    allowed.retain(|address| reach == Reach::Anywhere || is_loopback(address.ip()));
    if allowed.is_empty() {
        return Err(io::Error::other(
            "the name has no address on this machine, and deliveries to other hosts are not allowed",
        ));
    }
    Ok(allowed)
}

/// A text of a message: a long one is cut off.
pub(super) fn short(text: &str) -> String {
    let cut: String = text.chars().take(80).collect();
    format!("{cut:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_gets_deliveries() {
        for url in [
            "http://127.0.0.1:8787/webhooks",
            "http://127.8.9.1/",
            "http://[::1]:80/a?b=c",
            "http://[::ffff:127.0.0.1]/",
            "http://localhost:3000",
            "http://LocalHost./",
            "http://app.localhost/",
        ] {
            assert_eq!(permitted(url, Reach::Loopback), Ok(()), "{url}");
        }
        for url in [
            "http://example.com/",
            "http://localhost.example.com/",
            "http://0.0.0.0:80/",
            "http://169.254.169.254/latest",
            "http://[::]/",
            "http://2130706433/",
            "http://192.168.0.1/",
        ] {
            let told = permitted(url, Reach::Loopback).unwrap_err();
            assert!(told.contains("not allowed"), "{url}: {told}");
            assert_eq!(permitted(url, Reach::Anywhere), Ok(()), "{url}");
        }
        for url in [
            "",
            "/webhooks",
            "127.0.0.1:80",
            "https://127.0.0.1/",
            "ftp://localhost/",
            "http://",
            "http://user:pw@localhost/",
            "http://127.0.0.1:99999/",
            "http://127.0.0.1:0/",
            "http://localhost/ä b",
        ] {
            let told = permitted(url, Reach::Anywhere).unwrap_err();
            assert!(
                told.contains("expected one such as") && !told.contains("pw"),
                "{url}: {told}"
            );
        }
        let away = "93.184.216.34:80".parse().unwrap();
        let here = "127.0.0.1:80".parse().unwrap();
        assert_eq!(allowed(vec![away, here], Reach::Loopback).unwrap(), [here]);
        assert!(allowed(vec![away], Reach::Loopback).is_err());
    }
}
