//! An inbox whose entries survive the end of the process.

use std::sync::Arc;
use std::time::Duration;

use hookgate::{
    Delivery,
    dedupe::{ScopesInUse, StoreFuture},
    sink::{Accepted, Sink},
};

use super::engine::Engine;
use super::entry::Entry;

/// Stores accepted deliveries until they are handled. Clones share one inbox.
///
/// ```
/// use hookgate::{Receiver, Secret};
///
/// # let folder = std::env::temp_dir().join(format!("hookgate-doc-inbox-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("inbox.db");
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let inbox = hookgate_sqlite::open_inbox(&path)?;
/// let secret = Secret::new("whsec_made_up_for_this_example")?;
/// let acceptor = Receiver::builder().secret(secret).accept_into(inbox.clone())?;
/// assert_eq!(inbox.stats().await?.queued, 0);
/// drop(acceptor); // and every service and app that it was given to: `close` waits for them
/// inbox.close().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// `hookgate_sqlite::open_inbox` keeps it in a file, `Postgres::inbox` of `hookgate-postgres` in a
/// table.
///
/// # Security
/// The file or table holds bodies in plain text, with data of your users, until entries are done;
/// bodies of dead letters stay until they are purged. The program that can write to it decides
/// which events the handlers accept as verified.
#[derive(Clone, Debug)]
pub struct Inbox {
    pub(crate) engine: Arc<dyn Engine>,
}

impl Inbox {
    /// Returns an inbox on an engine of your own. Those of `hookgate-sqlite` and
    /// `hookgate-postgres` have their own constructors.
    #[must_use]
    pub fn on(engine: Arc<dyn Engine>) -> Self {
        Self { engine }
    }

    /// Waits until every call is answered and the file is closed. Dropping the last clone closes
    /// the file too, in the background.
    ///
    /// It also waits until every other clone is dropped, for as long as that takes. Workers hold
    /// one until their [`shutdown`](super::RunningWorkers::shutdown) returns. An
    /// [`Acceptor`](hookgate::sink::Acceptor) holds one even when it is drained: drop it first, and
    /// the app or service that it is part of. So the order is: the server ends, the acceptor is
    /// dropped with its app, the workers are shut down, `close`. Beside a server that goes on it
    /// would not end: bound the wait with `tokio::time::timeout(limit, inbox.close())`. When the
    /// limit has passed, every accepted delivery is still on the disk, and the acceptor goes on.
    /// The file is closed when the last clone is dropped.
    pub async fn close(self) {
        let end = self.engine.end();
        drop(self);
        end.await;
    }
}

impl Sink for Inbox {
    fn accept<'a>(&'a self, delivery: &'a Delivery, retain: Duration) -> StoreFuture<'a, Accepted> {
        self.engine.accept(Entry::of(delivery), retain)
    }

    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        Some(self.engine.scopes_in_use())
    }
}
