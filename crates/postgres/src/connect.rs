//! Makes connections: for the pool, beside it, and for listening.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use deadpool_postgres::Connect;
use tokio::task::JoinHandle;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Client, Config, Error, Socket};

use super::session::Sessions;

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// Polls for the messages that the server sends by itself, which drives the connection.
type Messages =
    Box<dyn FnMut(&mut Context<'_>) -> Poll<Option<Result<AsyncMessage, Error>>> + Send>;
/// Dials once.
type Dial = dyn Fn() -> Boxed<'static, Result<(Client, Messages), Error>> + Send + Sync;

/// Sets the defaults by which a silent peer is noticed in seconds, and not in the system's two
/// hours.
pub(super) fn set_keepalives(config: &mut Config) {
    const TWO_HOURS: Duration = Duration::from_secs(2 * 60 * 60);
    const SILENCE: Duration = Duration::from_secs(10);
    if config.get_keepalives_idle() == TWO_HOURS {
        config.keepalives_idle(SILENCE);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(Duration::from_secs(3));
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(3);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
}

/// Makes connections: the configuration with its connector, whose type is hidden from other code.
#[derive(Clone)]
pub(super) struct Connector {
    dial: Arc<Dial>,
    sessions: Arc<Sessions>,
}

impl Connector {
    pub(super) fn new<T>(config: Config, tls: T, sessions: Arc<Sessions>) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + Sync,
        T::TlsConnect: Send + Sync,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let dial = move || -> Boxed<'static, _> {
            let (config, tls) = (config.clone(), tls.clone());
            Box::pin(async move {
                let (client, mut connection) = config.connect(tls).await?;
                let messages: Messages = Box::new(move |context| connection.poll_message(context));
                Ok((client, messages))
            })
        };
        Self {
            dial: Arc::new(dial),
            sessions,
        }
    }

    /// Opens a connection whose messages a separate task passes to `heard`.
    pub(super) async fn open(
        &self,
        mut heard: impl FnMut(AsyncMessage) + Send + 'static,
    ) -> Result<(Client, ConnectionTask), Error> {
        let (client, mut messages) = (self.dial)().await?;
        let driven = ConnectionTask(Some(tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(&mut messages).await {
                heard(message);
            }
        })));
        if let Some(settings) = self.sessions.settings() {
            client.batch_execute(settings).await?;
        }
        Ok((client, driven))
    }

    /// Opens a connection whose task the caller has to end.
    pub(super) async fn connected(&self) -> Result<(Client, JoinHandle<()>), Error> {
        let (client, mut driven) = self.open(drop).await?;
        let driven = driven.0.take().unwrap_or_else(|| tokio::spawn(async {}));
        Ok((client, driven))
    }
}

/// For the pool, which ends the task with its connection.
impl Connect for Connector {
    /// Connects by the configuration that the pool was made from, which is the connector's own.
    fn connect(&self, _: &Config) -> Boxed<'_, Result<(Client, JoinHandle<()>), Error>> {
        Box::pin(self.connected())
    }
}

/// The task that drives a connection. When it is dropped, the socket is closed, also with a
/// statement under way.
pub(super) struct ConnectionTask(Option<JoinHandle<()>>);

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// The greatest number of notifications kept. More are dropped: each says only that there is new
/// data.
#[cfg(feature = "inbox")]
const NOTIFICATIONS: usize = 64;

/// A separate connection that listens on a channel, until it breaks or is dropped.
#[cfg(feature = "inbox")]
pub(crate) struct Listener {
    heard: tokio::sync::mpsc::Receiver<String>,
    /// The connection is closed when this is dropped.
    _client: Client,
    _driven: ConnectionTask,
}

#[cfg(feature = "inbox")]
impl Listener {
    /// `channel` is a name that needs no quotes.
    pub(super) async fn open(
        connector: &Connector,
        channel: &str,
        lock: (u32, u32),
    ) -> Result<Self, Error> {
        let (notify, heard) = tokio::sync::mpsc::channel(NOTIFICATIONS);
        let (client, driven) = connector
            .open(move |message| {
                if let AsyncMessage::Notification(notification) = message {
                    // Where the queue is full, there are enough notifications to wake the listener.
                    let _ = notify.try_send(notification.payload().to_owned());
                }
            })
            .await?;
        let (one, two) = (lock.0.cast_signed(), lock.1.cast_signed());
        let lock = format!("SELECT pg_advisory_lock_shared({one}, {two})");
        client.batch_execute(&lock).await?;
        client.batch_execute(&format!("LISTEN {channel}")).await?;
        Ok(Self {
            heard,
            _client: client,
            _driven: driven,
        })
    }

    /// Returns the payload of the next notification. Some may be missing where many come at once;
    /// `None` when the connection is lost.
    pub(crate) async fn next(&mut self) -> Option<String> {
        self.heard.recv().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_configuration_says_of_tcp_stays() {
        let mut config: Config = "host=localhost keepalives_idle=60 tcp_user_timeout=3"
            .parse()
            .unwrap();
        set_keepalives(&mut config);
        assert_eq!(config.get_keepalives_idle(), Duration::from_secs(60));
        assert_eq!(config.get_tcp_user_timeout(), Some(&Duration::from_secs(3)));
        assert_eq!(config.get_keepalives_retries(), Some(3));
    }
}
