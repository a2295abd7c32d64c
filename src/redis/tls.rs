//! A connection over TLS. Where it can't be established, the error has the reason.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::io::tcp::{TcpSettings, socket2::SockRef};
use ::redis::{AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, RedisResult};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::tls::{self, Unestablished};

/// The task of a connection, which ends with it.
pub(super) struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns host and port, where the TLS is this crate's.
///
/// # Errors
/// The crate redis makes the TLS of a client with certificates of its own. It would panic or install a provider of crypto where the program
/// has installed none.
pub(super) fn server(
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

pub(super) async fn connect(
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
    let authorities = authorities.unwrap_or_else(tls::system_authorities);
    let tls = tls::config(authorities).map_err(io::Error::other)?;
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
