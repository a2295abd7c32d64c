//! Notifications of new entries, between tasks of one process and between processes.
//!
//! A notification is sent beside the insert and not in its transaction: the server commits
//! transactions with notifications one after another, each with its own flush, so that concurrent
//! inserts could not share a flush (32 at a time took ten times as long). At most one is sent every
//! few milliseconds. An entry that no notification reaches waits for the workers' poll interval.
//!
//! A process with workers holds an advisory lock on the connection on which it listens, so that the
//! others can find it in `pg_locks`. A notification names one of them, chosen at random: if all
//! idle workers were woken by each entry, forty of them would lease where one has work, and accepts
//! would wait for their leases.

use std::sync::Arc;
use std::time::Duration;

use hookgate::dedupe::{ClaimToken, EventKey};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_postgres::types::Type;

use crate::Postgres;
use crate::task::Task;

const CHANNEL: &str = "hookgate_inbox";
/// A process sends at most one notification in this time.
const PAUSE: Duration = Duration::from_millis(10);
/// The waits before it listens again: the first, doubled each time, up to the second.
const AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Notifies one of the other processes that listen, if there is one.
const NOTIFY: &str = "SELECT pg_notify($1, $2 || ' ' || objid::text) FROM (
  SELECT objid FROM pg_locks
  WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid::bigint = $3 AND objid::bigint <> $4
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  ORDER BY random() LIMIT 1
) chosen";

pub(super) struct Notifier {
    postgres: Postgres,
    shared: Arc<Shared>,
    sender: Task,
    listener: Task,
}

struct Shared {
    changed: Notify,
    /// Notified when there is a notification to send.
    due: Notify,
    inbox: String,
    /// The number of the locks of all processes of this inbox, and of this process.
    lock: (u32, u32),
}

impl Notifier {
    pub(super) fn new(postgres: Postgres, inbox: &str) -> Self {
        let lock = (
            number(EventKey::new(CHANNEL, inbox).as_bytes()),
            number(ClaimToken::new(&[]).as_bytes()),
        );
        Self {
            postgres,
            shared: Arc::new(Shared {
                changed: Notify::new(),
                due: Notify::new(),
                inbox: inbox.to_owned(),
                lock,
            }),
            sender: Task::default(),
            listener: Task::default(),
        }
    }

    pub(super) fn changed(&self) -> &Notify {
        &self.shared.changed
    }

    /// Entries may have become due: wakes a worker of this process, and one of another.
    pub(super) fn notify(&self) {
        self.shared.changed.notify_one();
        self.shared.due.notify_one();
        self.sender.run(|| {
            let (postgres, shared) = (self.postgres.clone(), Arc::clone(&self.shared));
            async move {
                let types = [Type::TEXT, Type::TEXT, Type::INT8, Type::INT8];
                let (of_all, own) = (i64::from(shared.lock.0), i64::from(shared.lock.1));
                loop {
                    shared.due.notified().await;
                    // If it fails, the workers of other processes find the entry at their poll
                    // interval.
                    let _ = postgres
                        .query(NOTIFY, &types, &[&CHANNEL, &shared.inbox, &of_all, &own])
                        .await;
                    sleep(PAUSE).await;
                }
            }
        });
    }

    /// Listens to the notifications of other processes from now on.
    pub(super) fn listen(&self) {
        self.listener.run(|| {
            let (postgres, shared) = (self.postgres.clone(), Arc::clone(&self.shared));
            async move {
                let own = format!("{} {}", shared.inbox, shared.lock.1);
                let mut wait = AGAIN.0;
                loop {
                    match postgres.listen(CHANNEL, shared.lock).await {
                        Ok(Some(mut listener)) => {
                            wait = AGAIN.0;
                            // Notifications that were sent before it listened are lost.
                            shared.changed.notify_one();
                            while let Some(named) = listener.next().await {
                                if named == own {
                                    shared.changed.notify_one();
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

/// Returns the first four bytes as a number.
fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .take(4)
        .fold(0, |number, byte| number << 8 | u32::from(*byte))
}
