//! A connection that listens for notifications.

use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, Error};

use super::connect::{ConnectionTask, Connector};

/// The greatest number of notifications kept. More are dropped: each says only that there is new data.
const NOTIFICATIONS: usize = 64;

/// A separate connection that listens on a channel, until it breaks or is dropped.
pub(crate) struct Listener {
    heard: mpsc::Receiver<String>,
    /// The connection is closed when this is dropped.
    _client: Client,
    _driven: ConnectionTask,
}

impl Listener {
    /// `channel` is a name that needs no quotes.
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

    /// Returns the payload of the next notification. Some may be missing where many come at once; `None` when the connection is
    /// lost.
    pub(crate) async fn next(&mut self) -> Option<String> {
        self.heard.recv().await
    }
}
