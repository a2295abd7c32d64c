//! Makes connections.
//!
//! This crate makes the TLS connections itself. The crate redis would use the provider of crypto
//! that the process has installed. Where none is installed, it would install the only one that it
//! finds, and panic if the program has two.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, RedisResult};
use tokio::time::sleep;

use crate::failure::while_connecting;
#[cfg(feature = "tls")]
use crate::tls;

/// Waits between tries to connect, in milliseconds.
const WAITS: [u64; 6] = [50, 100, 200, 400, 500, 500];

/// A connection that is being made. All calls that need it wait for it.
pub(crate) type Connecting = Shared<BoxFuture<'static, RedisResult<Live>>>;

/// A connection, with the task that drives it.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) connection: MultiplexedConnection,
    /// The task of a connection over this crate's TLS. `None` for any other: the crate redis keeps
    /// its task.
    #[cfg(feature = "tls")]
    _driver: Option<std::sync::Arc<tls::Driver>>,
}

/// The server, and how it is connected to.
#[derive(Clone)]
pub(crate) struct Dial {
    pub(crate) client: Client,
    /// The limit for making a connection.
    pub(crate) connect: Duration,
    /// The limit for an answer.
    pub(crate) response: Duration,
    /// The authorities that alone are trusted.
    #[cfg(feature = "tls")]
    pub(crate) authorities: Option<std::sync::Arc<rustls::RootCertStore>>,
}

impl Dial {
    /// Connects after this wait. Where the server can't be reached it tries again, until the waits
    /// are used up: it may be about to start. Any other error, a refused TLS handshake included,
    /// would occur again, so it is returned at once.
    pub(crate) fn begin(&self, wait: Duration) -> Connecting {
        let dial = self.clone();
        let connecting = async move {
            if !wait.is_zero() {
                sleep(wait).await;
            }
            for wait in WAITS.map(Duration::from_millis) {
                match dial.once().await {
                    Err(error) if error.is_io_error() && !is_refused(&error) => sleep(wait).await,
                    connected => return connected.map_err(while_connecting),
                }
            }
            dial.once().await.map_err(while_connecting)
        };
        connecting.boxed().shared()
    }

    async fn once(&self) -> RedisResult<Live> {
        let settings = self.client.get_connection_info();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect))
            .set_response_timeout(Some(self.response));
        #[cfg(feature = "tls")]
        if let Some(server) = tls::server(settings, self.authorities.is_some())? {
            let authorities = self.authorities.as_deref();
            let connecting = tls::connect(server, settings, authorities, self.connect, config);
            let (connection, driver) = connecting.await?;
            return Ok(Live {
                connection,
                _driver: Some(std::sync::Arc::new(driver)),
            });
        }
        // Many small commands share one connection. If they were held back to be sent together,
        // each would wait for the previous answer.
        let tcp: TcpSettings = settings.tcp_settings().clone().set_nodelay(true);
        let client = Client::open(settings.clone().set_tcp_settings(tcp))?;
        let connection = client.get_multiplexed_async_connection_with_config(&config);
        Ok(Live {
            connection: connection.await?,
            #[cfg(feature = "tls")]
            _driver: None,
        })
    }
}

#[cfg(feature = "tls")]
fn is_refused(error: &redis::RedisError) -> bool {
    crate::tls::refused_handshake(error).is_some()
}

#[cfg(not(feature = "tls"))]
fn is_refused(_: &redis::RedisError) -> bool {
    false
}
