//! TLS that can't be established is reported with its reason.
//!
//! `ConnectionManager` tries again for longer than a call waits, also where the server's certificate is refused, or the server answers
//! without TLS, or not at all: the call would end by its limit, without a reason.

use std::future::pending;
use std::io;
use std::time::Duration;

use ::redis::{AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, RedisError};
use rustls::crypto::{CryptoProvider, ring};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

/// A call that has waited this long for its first answer on a connection looks for the reason. Less than the limit of a call,
/// so that it ends with the reason.
const LOOK_AFTER: Duration = Duration::from_millis(200);

/// Makes one try to connect at a time, where calls get no answer.
#[derive(Default)]
pub(super) struct Handshake {
    /// The reason that was found last, and when. Calls that waited then are told it; a later call looks anew.
    refused: Mutex<Option<(Instant, RedisError)>>,
}

impl Handshake {
    /// Connects, where the URL asks for TLS, until that succeeds or TLS is refused: then returns the error.
    pub(super) async fn refused(&self, client: &Client, limit: Duration) -> RedisError {
        let begun = Instant::now();
        let config = AsyncConnectionConfig::new().set_connection_timeout(Some(limit));
        while is_tls(client.get_connection_info()) {
            sleep(LOOK_AFTER).await;
            let mut last = self.refused.lock().await;
            if let Some((found, error)) = &*last
                && *found > begun
            {
                return error.clone();
            }
            let connected = client.get_multiplexed_async_connection_with_config(&config);
            let Err(mut error) = connected.await else {
                break;
            };
            if error.is_timeout() && takes_connections(client, limit).await {
                let source = error;
                let unanswered = crate::tls::Unanswered { limit, source };
                error = io::Error::new(io::ErrorKind::TimedOut, unanswered).into();
            }
            if crate::tls::refused_handshake(&error).is_some() {
                *last = Some((Instant::now(), error.clone()));
                return error;
            }
        }
        pending().await
    }
}

fn is_tls(settings: &ConnectionInfo) -> bool {
    matches!(settings.addr(), ConnectionAddr::TcpTls { .. })
}

/// Whether the server's port is open, so that a silence was in the handshake, or in the login after it.
async fn takes_connections(client: &Client, limit: Duration) -> bool {
    let ConnectionAddr::TcpTls { host, port, .. } = client.get_connection_info().addr() else {
        return false;
    };
    let connected = timeout(limit, TcpStream::connect((host.as_str(), *port))).await;
    connected.is_ok_and(|connected| connected.is_ok())
}

/// The crate redis takes the process' provider of crypto. Where two are compiled in and none was chosen, rustls would panic: then
/// it is ring.
pub(super) fn choose_provider(settings: &ConnectionInfo) {
    if is_tls(settings) && CryptoProvider::get_default().is_none() {
        // Another thread may have been faster.
        let _ = ring::default_provider().install_default();
    }
}
