//! The default transport: hyper's pooling client, with TLS by rustls. All use of hyper-util is in
//! this file.

use std::time::Duration;

use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::error::{Error, ErrorKind};
use crate::transport::{Body, NotSent, Transport};

/// A host that drops packets never answers; this leaves time for another attempt.
const CONNECTING: Duration = Duration::from_secs(10);

/// Makes the transport. Idle connections are dropped after `idle`, so that none is used that the
/// other side is about to close.
pub(crate) fn transport(secure: bool, idle: Duration) -> Result<Transport, Error> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECTING));
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(idle);
    if !secure {
        return Ok(over(builder.build(connector)));
    }
    #[cfg(feature = "tls")]
    {
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(provider()?)
            .map_err(|error| {
                Error::new(
                    ErrorKind::Config,
                    format!("the certificates that the system trusts can't be read: {error}"),
                )
            })?
            .https_only()
            .enable_http1()
            .wrap_connector(connector);
        Ok(over(builder.build(connector)))
    }
    #[cfg(not(feature = "tls"))]
    Err(Error::new(
        ErrorKind::Config,
        "https needs the feature `tls` of hookgate-client",
    ))
}

/// Returns the provider that the program has installed, otherwise that of this crate's features.
/// None is installed here. `crates/postgres/src/handshake.rs` and `crates/redis/src/tls.rs` hold
/// the same: change all together.
#[cfg(feature = "tls")]
fn provider() -> Result<std::sync::Arc<rustls::crypto::CryptoProvider>, Error> {
    let installed = rustls::crypto::CryptoProvider::get_default().cloned();
    #[cfg(feature = "ring")]
    let own = Some(rustls::crypto::ring::default_provider());
    #[cfg(all(feature = "aws-lc-rs", not(feature = "ring")))]
    let own = Some(rustls::crypto::aws_lc_rs::default_provider());
    #[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
    let own = None;
    installed.or_else(|| own.map(std::sync::Arc::new)).ok_or_else(|| {
        Error::new(
            ErrorKind::Config,
            "https needs a provider of crypto, and this program has none: enable the feature ring or aws-lc-rs of hookgate-client, or install rustls' default provider first",
        )
    })
}

fn over<C: Connect + Clone + Send + Sync + 'static>(client: Client<C, Body>) -> Transport {
    Transport::of(move |request| {
        let answering = client.request(request);
        async move {
            answering.await.map_err(|error| {
                if error.is_connect() {
                    NotSent(error.into()).into()
                } else {
                    error.into()
                }
            })
        }
    })
}
