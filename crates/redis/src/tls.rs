//! TLS: its provider of crypto, the certificates that are trusted, a connection, and the reason
//! where it can't be established.
//!
//! `crates/postgres/src/handshake.rs` holds the same code, and `crates/client/src/hyper.rs` the
//! same provider: change all together.

use std::borrow::Cow;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hookgate::dedupe::{StoreError, StoreErrorKind};
use redis::aio::MultiplexedConnection;
use redis::io::tcp::{TcpSettings, socket2::SockRef};
use redis::{AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, RedisResult};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{CertificateError as Fault, ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

const NO_TLS: &str = "the server's answer is not TLS: use its port for TLS, or a URL without TLS";
const REFUSED: &str = "the server and this program agree on no TLS connection: it may ask for a certificate of the client, or for another version of TLS";
const NO_PEM: &str = "the certificates of the authority can't be read: they are in PEM, and begin with -----BEGIN CERTIFICATE-----";
const NO_PROVIDER: &str = "TLS needs a provider of crypto, and this program has none: enable the feature ring or aws-lc-rs of hookgate-redis, or install rustls' default provider first";

/// The source of an error, as the crate redis keeps it.
type Shared = Arc<dyn Error + Send + Sync>;

/// A reason that is not in the error of a crate below.
#[derive(Debug, thiserror::Error)]
enum Unestablished {
    /// The server has taken the connection, and is silent in the handshake.
    #[error("the server did not answer the TLS handshake within {} ms; it may not speak TLS", .0.as_millis())]
    Silent(Duration),
    #[error(
        "a redis::Client with certificates of its own takes rustls' default provider of crypto, and none is installed: install one at the start of the program"
    )]
    NoDefault,
}

/// The task of a connection, which ends with it.
pub(crate) struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns host and port, where the TLS is this crate's.
///
/// # Errors
/// The crate redis makes the TLS of a client with certificates of its own. It would panic or
/// install a provider of crypto where the program has installed none.
pub(crate) fn server(
    settings: &ConnectionInfo,
    has_authorities: bool,
) -> io::Result<Option<(&str, u16)>> {
    match settings.addr() {
        ConnectionAddr::TcpTls {
            host,
            port,
            insecure: false,
            tls_params,
        } if has_authorities || tls_params.is_none() => Ok(Some((host, *port))),
        ConnectionAddr::TcpTls { .. } if CryptoProvider::get_default().is_none() => {
            Err(io::Error::other(Unestablished::NoDefault))
        }
        _ => Ok(None),
    }
}

pub(crate) async fn connect(
    server: (&str, u16),
    settings: &ConnectionInfo,
    authorities: Option<&RootCertStore>,
    limit: Duration,
    config: AsyncConnectionConfig,
) -> RedisResult<(MultiplexedConnection, Driver)> {
    let mut is_in_handshake = false;
    let connecting = handshaken(server, settings, authorities, config, &mut is_in_handshake);
    let connected = timeout(limit, connecting).await;
    connected.unwrap_or_else(|_| {
        Err(if is_in_handshake {
            let silent = Unestablished::Silent(limit);
            io::Error::new(io::ErrorKind::TimedOut, silent).into()
        } else {
            io::Error::from(io::ErrorKind::TimedOut).into()
        })
    })
}

async fn handshaken(
    server: (&str, u16),
    settings: &ConnectionInfo,
    authorities: Option<&RootCertStore>,
    config: AsyncConnectionConfig,
    is_in_handshake: &mut bool,
) -> RedisResult<(MultiplexedConnection, Driver)> {
    let authorities = authorities.cloned();
    let authorities = authorities.unwrap_or_else(system_authorities);
    let tls = tls_config(authorities).map_err(io::Error::other)?;
    let name = ServerName::try_from(server.0)?.to_owned();
    let tcp = TcpStream::connect(server).await?;
    apply(settings.tcp_settings(), &tcp)?;
    *is_in_handshake = true;
    let stream = TlsConnector::from(Arc::new(tls)).connect(name, tcp).await?;
    *is_in_handshake = false;
    let connected =
        MultiplexedConnection::new_with_config(settings.redis_settings(), stream, config);
    let (connection, driver) = connected.await?;
    Ok((connection, Driver(tokio::spawn(driver))))
}

/// As the crate redis does for its own connections.
fn apply(settings: &TcpSettings, tcp: &TcpStream) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    if let Some(keepalive) = settings.keepalive() {
        SockRef::from(tcp).set_tcp_keepalive(keepalive)?;
    }
    #[cfg(target_os = "linux")]
    SockRef::from(tcp).set_tcp_user_timeout(settings.user_timeout())?;
    Ok(())
}

/// Returns the provider that the program has installed, otherwise that of this crate's features.
/// None is installed here.
pub(crate) fn provider() -> Result<Arc<CryptoProvider>, StoreError> {
    if let Some(installed) = CryptoProvider::get_default() {
        return Ok(Arc::clone(installed));
    }
    #[cfg(feature = "ring")]
    let own = Some(rustls::crypto::ring::default_provider());
    #[cfg(all(feature = "aws-lc-rs", not(feature = "ring")))]
    let own = Some(rustls::crypto::aws_lc_rs::default_provider());
    #[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
    let own = None;
    own.map(Arc::new).ok_or_else(|| setting(NO_PROVIDER))
}

/// Verifies certificates by these authorities.
fn tls_config(authorities: RootCertStore) -> Result<ClientConfig, StoreError> {
    let config = ClientConfig::builder_with_provider(provider()?);
    let config = config.with_safe_default_protocol_versions();
    let config = config.map_err(|error| {
        setting("the program's provider of crypto offers no version of TLS that is safe")
            .caused_by(error)
    })?;
    let config = config.with_root_certificates(authorities);
    Ok(config.with_no_client_auth())
}

/// Returns the authorities that the system trusts. Where some can't be read, those that can are
/// trusted.
fn system_authorities() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Reads one or more certificates in PEM.
pub(crate) fn authorities(pem: &[u8]) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| setting(NO_PEM).caused_by(error))?;
        let added = roots.add(certificate);
        added.map_err(|error| setting(NO_PEM).caused_by(error))?;
    }
    if roots.is_empty() {
        return Err(setting(NO_PEM));
    }
    Ok(roots)
}

fn setting(message: &'static str) -> StoreError {
    StoreError::saying(StoreErrorKind::Setting, message)
}

/// Returns the reason in plain words, where the error or one of its causes is that the server's
/// certificate was refused, that the server refused the handshake or did not answer it, that it
/// does not speak TLS, or that there is no provider of crypto.
pub(crate) fn refused_handshake(error: &(dyn Error + 'static)) -> Option<Cow<'static, str>> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(reason) = error.downcast_ref::<Unestablished>() {
            return Some(reason.to_string().into());
        }
        if let Some(reason) = error.downcast_ref::<StoreError>() {
            return Some(reason.to_string().into());
        }
        if let Some(rustls::Error::InvalidCertificate(fault)) = error.downcast_ref() {
            return Some(advice(fault).into());
        }
        match error.downcast_ref() {
            Some(rustls::Error::InvalidMessage(_)) => return Some(NO_TLS.into()),
            Some(rustls::Error::AlertReceived(_) | rustls::Error::PeerIncompatible(_)) => {
                return Some(REFUSED.into());
            }
            _ => {}
        }
        next = match error.downcast_ref::<io::Error>().map(io::Error::get_ref) {
            // Its `source` is that of the error inside, and leaves the inner error itself out.
            Some(inner) => inner.map(|inner| inner as _),
            None => match error.downcast_ref::<Shared>() {
                Some(shared) => Some(&**shared as _),
                None => error.source(),
            },
        };
    }
    None
}

fn advice(fault: &Fault) -> &'static str {
    match fault {
        Fault::UnknownIssuer => {
            "the server's certificate is signed by no authority that this program trusts: give the certificate of the provider's authority"
        }
        Fault::NotValidForName | Fault::NotValidForNameContext { .. } => {
            "the server's certificate is for another host name: connect by a name that it is for"
        }
        Fault::Expired | Fault::ExpiredContext { .. } => {
            "the server's certificate has expired: renew it, or set the clock of this machine right"
        }
        Fault::NotValidYet | Fault::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet: set the clock of this machine right"
        }
        _ => "the server's certificate is not valid",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // fault P8: TLS to a server that answers without it, refuses the handshake or is silent in it, ends as a time-out without a reason
    #[test]
    fn a_certificate_fault_is_found_below_the_errors_of_the_drivers() {
        let io = |fault| {
            let refused = rustls::Error::InvalidCertificate(fault);
            io::Error::new(io::ErrorKind::InvalidData, refused)
        };
        let shared: Shared = Arc::new(io(Fault::UnknownIssuer));
        let advice = refused_handshake(&shared).unwrap();
        assert!(advice.contains("certificate of the provider"), "{advice}");
        for (fault, words) in [
            (Fault::NotValidForName, "another host name"),
            (Fault::Expired, "has expired"),
            (Fault::NotValidYet, "not valid yet"),
            (Fault::Revoked, "is not valid"),
        ] {
            let advice = refused_handshake(&io(fault)).unwrap();
            assert!(
                advice.contains("certificate") && advice.contains(words),
                "{advice}"
            );
        }
        let wrapped = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let plain = wrapped(rustls::Error::InvalidMessage(
            rustls::InvalidMessage::InvalidContentType,
        ));
        assert_eq!(refused_handshake(&plain).as_deref(), Some(NO_TLS));
        let alert = rustls::AlertDescription::HandshakeFailure;
        let alert = wrapped(rustls::Error::AlertReceived(alert));
        assert_eq!(refused_handshake(&alert).as_deref(), Some(REFUSED));
        let other = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(refused_handshake(&other), None);
        let other = io::Error::other(rustls::Error::DecryptError);
        assert_eq!(refused_handshake(&other), None);
    }
}
