//! Notifications of new entries, between tasks of one process and between processes.
//!
//! A notification is sent beside the insert and not in its transaction: the server commits transactions with notifications one
//! after another, each with its own flush, so that concurrent inserts could not share a flush (32 at a time took ten times as
//! long). A notification carries only the inbox's name and the process that sent it. One has the same effect as many, so at most
//! one is sent every few milliseconds. A lost notification delays an entry by at most the workers' poll interval.

use std::sync::Arc;
use std::time::Duration;

use ::tokio_postgres::types::Type;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::dedupe::ClaimToken;
use crate::postgres::{Postgres, Task};

const CHANNEL: &str = "hookgate_inbox";
/// A process sends at most one notification in this time.
const PAUSE: Duration = Duration::from_millis(10);
/// The waits before it listens again: the first, doubled each time, up to the second.
const AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

pub(super) struct Wire {
    postgres: Postgres,
    changed: Arc<Notify>,
    /// Notified when there is a notification to send.
    due: Arc<Notify>,
    /// The inbox's name, and a token that identifies this process.
    name: Arc<str>,
    teller: Task,
    listener: Task,
}

impl Wire {
    pub(super) fn new(postgres: Postgres, inbox: &str) -> Self {
        Self {
            postgres,
            changed: Arc::default(),
            due: Arc::default(),
            name: format!("{inbox} {:?}", ClaimToken::new(&[])).into(),
            teller: Task::default(),
            listener: Task::default(),
        }
    }

    pub(super) fn changed(&self) -> &Notify {
        &self.changed
    }

    /// Notifies all workers that an entry may have become due: those of this process at once.
    pub(super) fn tell(&self) {
        self.changed.notify_waiters();
        self.due.notify_one();
        self.teller.run(|| {
            let (postgres, due) = (self.postgres.clone(), Arc::clone(&self.due));
            let name = Arc::clone(&self.name);
            async move {
                loop {
                    due.notified().await;
                    let (types, channel) = ([Type::TEXT, Type::TEXT], CHANNEL);
                    // If it fails, the workers of other processes find the entry at their poll interval.
                    let _ = postgres
                        .query("SELECT pg_notify($1, $2)", &types, &[&channel, &&*name])
                        .await;
                    sleep(PAUSE).await;
                }
            }
        });
    }

    /// Listens to the notifications of other processes from now on.
    pub(super) fn listen(&self) {
        self.listener.run(|| {
            let (postgres, changed) = (self.postgres.clone(), Arc::clone(&self.changed));
            let name = Arc::clone(&self.name);
            async move {
                let mut wait = AGAIN.0;
                loop {
                    match postgres.listen(CHANNEL).await {
                        Ok(Some(mut listener)) => {
                            wait = AGAIN.0;
                            // Notifications that were sent before it listened are lost.
                            changed.notify_waiters();
                            while let Some(from) = listener.next().await {
                                if *from != *name && inbox_of(&from) == inbox_of(&name) {
                                    changed.notify_waiters();
                                }
                            }
                        }
                        // The user opens the connections, and they cannot listen.
                        Ok(None) => std::future::pending().await,
                        Err(_) => {}
                    }
                    sleep(wait).await;
                    wait = (wait * 2).min(AGAIN.1);
                }
            }
        });
    }
}

/// Returns the inbox's name, which contains no space.
fn inbox_of(name: &str) -> &str {
    name.split(' ').next().unwrap_or_default()
}
