//! TLS that can't be established is reported with its reason.
//!
//! `ConnectionManager` tries again for longer than a call waits, also where the server's certificate is refused, or the server answers
//! without TLS, or not at all: the call would end by its limit, without a reason.

use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use ::redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, RedisError, RedisResult,
};
use rustls::crypto::{CryptoProvider, ring};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

/// A call that has waited this long for its first answer on a connection looks for the reason. Less than the limit of a call,
/// so that it ends with the reason.
const LOOK_AFTER: Duration = Duration::from_millis(200);

/// Makes one try to connect at a time, where calls get no answer.
#[derive(Default)]
pub(super) struct Handshake {
    /// One more than the last generation of the connection that has answered.
    answered: AtomicU64,
    /// The reason that was found last, and the generation.
    refused: Mutex<Option<(u64, RedisError)>>,
}

impl Handshake {
    /// Returns the answer, or before it the reason why TLS is refused.
    pub(super) async fn watch<T>(
        &self,
        client: &Client,
        limit: Duration,
        generation: u64,
        asked: impl Future<Output = RedisResult<T>>,
    ) -> RedisResult<T> {
        let is_tls = matches!(
            client.get_connection_info().addr(),
            ConnectionAddr::TcpTls { .. }
        );
        if !is_tls || self.answered.load(Ordering::Relaxed) > generation {
            return asked.await;
        }
        let mut asked = pin!(asked);
        let mut refused = pin!(self.refused(client, limit, generation));
        let mut is_sound = false;
        std::future::poll_fn(|context| {
            if let Poll::Ready(answered) = asked.as_mut().poll(context) {
                if answered.is_ok() {
                    self.answered.store(generation + 1, Ordering::Relaxed);
                }
                return Poll::Ready(answered);
            }
            if !is_sound && let Poll::Ready(found) = refused.as_mut().poll(context) {
                match found {
                    Some(error) => return Poll::Ready(Err(error)),
                    None => is_sound = true,
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Connects until that succeeds, or TLS is refused: then returns the error.
    async fn refused(
        &self,
        client: &Client,
        limit: Duration,
        generation: u64,
    ) -> Option<RedisError> {
        let config = AsyncConnectionConfig::new().set_connection_timeout(Some(limit));
        loop {
            sleep(LOOK_AFTER).await;
            let mut last = self.refused.lock().await;
            if let Some((of, error)) = &*last
                && *of == generation
            {
                return Some(error.clone());
            }
            let connected = client.get_multiplexed_async_connection_with_config(&config);
            let mut error = connected.await.err()?;
            if error.is_timeout() && takes_connections(client, limit).await {
                let source = error;
                let unanswered = crate::tls::Unanswered { limit, source };
                error = io::Error::new(io::ErrorKind::TimedOut, unanswered).into();
            }
            if crate::tls::refused_handshake(&error).is_some() {
                *last = Some((generation, error.clone()));
                return Some(error);
            }
        }
    }
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
    let is_tls = matches!(settings.addr(), ConnectionAddr::TcpTls { .. });
    if is_tls && CryptoProvider::get_default().is_none() {
        // Another thread may have been faster.
        let _ = ring::default_provider().install_default();
    }
}
