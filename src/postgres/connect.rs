//! Makes connections, for the pool and for listening.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use ::tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use ::tokio_postgres::{AsyncMessage, Client, Config, Error, Socket};
use deadpool_postgres::Connect;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// Polls for the messages that the server sends by itself, which drives the connection.
type Messages =
    Box<dyn FnMut(&mut Context<'_>) -> Poll<Option<Result<AsyncMessage, Error>>> + Send>;
/// Dials once.
type Dial = dyn Fn() -> Boxed<'static, Result<(Client, Messages), Error>> + Send + Sync;

/// The settings of every connection, unless the configuration's options set them: name and value. Without them the server would
/// continue statements whose caller no longer waits, and hold their locks.
const SETTINGS: [(&str, &str); 3] = [
    ("lock_timeout", "800ms"),
    ("statement_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "10s"),
];
/// Each statement here is correct at this level. At a stricter one, statements at the same time are refused and repeated.
const ISOLATION: (&str, &str) = ("default_transaction_isolation", "read committed");
/// The greatest number of notifications kept. More are dropped: each says only that there is new data.
const NOTIFICATIONS: usize = 64;

/// Sets the defaults by which a silent peer is noticed in seconds, and not in the system's two hours.
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
pub(super) struct Connector {
    dial: Box<Dial>,
    /// Those of every session.
    settings: String,
    /// Those of a transaction, in their place.
    local_settings: String,
    /// Whether other clients use the sessions too, so that no setting may stay there.
    is_shared: AtomicBool,
}

impl Connector {
    pub(super) fn new<T>(config: Config, tls: T) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + Sync,
        T::TlsConnect: Send + Sync,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let options = config.get_options().unwrap_or_default();
        let settings = settings("SET", options, SETTINGS.iter().chain([&ISOLATION]));
        let local_settings = self::settings("SET LOCAL", options, &SETTINGS);
        let dial = move || -> Boxed<'static, _> {
            let (config, tls) = (config.clone(), tls.clone());
            Box::pin(async move {
                let (client, mut connection) = config.connect(tls).await?;
                let messages: Messages = Box::new(move |context| connection.poll_message(context));
                Ok((client, messages))
            })
        };
        Self {
            dial: Box::new(dial),
            settings,
            local_settings,
            is_shared: AtomicBool::new(false),
        }
    }

    /// From now on no setting is made on a connection. Returns the statements that make them for one transaction.
    pub(super) fn share(&self) -> &str {
        self.is_shared.store(true, Ordering::Relaxed);
        &self.local_settings
    }

    /// Opens a connection whose messages a separate task passes to `heard`.
    async fn open(
        &self,
        mut heard: impl FnMut(AsyncMessage) + Send + 'static,
    ) -> Result<(Client, ConnectionTask), Error> {
        let (client, mut messages) = (self.dial)().await?;
        let driven = ConnectionTask(Some(tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(&mut messages).await {
                heard(message);
            }
        })));
        if !self.settings.is_empty() && !self.is_shared.load(Ordering::Relaxed) {
            client.batch_execute(&self.settings).await?;
        }
        Ok((client, driven))
    }

    /// Opens a connection whose task the caller has to end.
    pub(super) async fn connect(&self) -> Result<(Client, JoinHandle<()>), Error> {
        let (client, mut driven) = self.open(drop).await?;
        let driven = driven.0.take().unwrap_or_else(|| tokio::spawn(async {}));
        Ok((client, driven))
    }
}

/// The connector for the pool, which ends the task with its connection.
pub(super) struct PoolConnector(pub(super) Arc<Connector>);

impl Connect for PoolConnector {
    /// Connects by the configuration that the pool was made from, which is the connector's own.
    fn connect(&self, _: &Config) -> Boxed<'_, Result<(Client, JoinHandle<()>), Error>> {
        Box::pin(self.0.connect())
    }
}

fn settings<'a>(
    set: &str,
    options: &str,
    settings: impl IntoIterator<Item = &'a (&'a str, &'a str)>,
) -> String {
    let settings = settings.into_iter();
    settings
        .filter(|(name, _)| !is_set(options, name))
        .map(|(name, value)| format!("{set} {name} = '{value}';"))
        .collect()
}

/// Returns whether the options set this name. `-c lock_timeout=1s`, `-clock_timeout=1s` and `--lock-timeout=1s` are the same
/// setting; `deadlock_timeout` is another.
fn is_set(options: &str, name: &str) -> bool {
    let of_a_word = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    options.split(|letter| !of_a_word(letter)).any(|word| {
        let word = word.to_ascii_lowercase().replace('-', "_");
        let word = word.trim_start_matches('_');
        word == name || word.strip_prefix('c') == Some(name)
    })
}

/// The task that drives a connection. When it is dropped, the socket is closed, also with a statement under way.
struct ConnectionTask(Option<JoinHandle<()>>);

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// A separate connection that listens on a channel, until it breaks or is dropped.
#[cfg_attr(not(feature = "inbox"), allow(dead_code))]
pub(crate) struct Listener {
    heard: mpsc::Receiver<String>,
    /// The connection is closed when this is dropped.
    _client: Client,
    _driven: ConnectionTask,
}

#[cfg_attr(not(feature = "inbox"), allow(dead_code))]
impl Listener {
    pub(super) async fn open(
        connector: &Connector,
        channel: &str,
        lock: (u32, u32),
    ) -> Result<Self, Error> {
        let (notify, heard) = mpsc::channel(NOTIFICATIONS);
        let (client, driven) = connector
            .open(move |message| {
                if let AsyncMessage::Notification(notification) = message {
                    // Where the queue is full, there are enough notifications to wake the listener.
                    let _ = notify.try_send(notification.payload().to_owned());
                }
            })
            .await?;
        let lock = format!(
            "SELECT pg_advisory_lock_shared({}, {})",
            lock.0.cast_signed(),
            lock.1.cast_signed()
        );
        client.batch_execute(&lock).await?;
        let channel = channel.replace('"', "\"\"");
        client
            .batch_execute(&format!("LISTEN \"{channel}\""))
            .await?;
        Ok(Self {
            heard,
            _client: client,
            _driven: driven,
        })
    }

    /// Returns the payload of the next notification. Some may be missing where many come at once; `None` when the connection is
    /// lost.
    pub(crate) async fn next(&mut self) -> Option<String> {
        self.heard.recv().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_options_set_stays() {
        for options in [
            "-c statement_timeout=2s",
            "-cstatement_timeout=2s",
            "-c geqo=off --statement-timeout=2s",
            "-c STATEMENT_TIMEOUT=2s -c deadlock_timeout=2s",
        ] {
            assert_eq!(
                settings("SET", options, &SETTINGS),
                "SET lock_timeout = '800ms';SET idle_in_transaction_session_timeout = '10s';",
                "{options}"
            );
        }
        for options in ["", "-c deadlock_timeout=2s"] {
            let local = settings("SET LOCAL", options, &SETTINGS);
            assert_eq!(local.matches("SET LOCAL ").count(), SETTINGS.len());
        }
    }

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
