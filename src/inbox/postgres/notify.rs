//! Word of new entries, between tasks of one process and between processes.
//!
//! A notification goes out beside the insert and not in its transaction: the server commits transactions that notify one after the
//! other, each with its flush, so that those of many senders could share none (32 at a time took ten times as long). It carries no more than the inbox's name and who sent it, and one
//! says as much as many: they are sent at most every few milliseconds. Lost ones cost no more than the workers' interval.

use std::sync::Arc;
use std::time::Duration;

use ::tokio_postgres::types::Type;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::dedupe::ClaimToken;
use crate::postgres::{Postgres, Task};

const CHANNEL: &str = "hookgate_inbox";
/// No more than one notification of a process in this time.
const PAUSE: Duration = Duration::from_millis(10);
/// Between attempts to listen again: a first short one, then twice as long each time.
const AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

pub(super) struct Wire {
    postgres: Postgres,
    changed: Arc<Notify>,
    /// There is something to tell.
    due: Arc<Notify>,
    /// The inbox's name, and what tells this process from others.
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

    /// Tells everybody that an entry may have become due: this process at once.
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
                    // Where it fails the workers of others find the entry in their interval.
                    let _ = postgres
                        .query("SELECT pg_notify($1, $2)", &types, &[&channel, &&*name])
                        .await;
                    sleep(PAUSE).await;
                }
            }
        });
    }

    /// Hears what others tell, from now on.
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
                            // What was told before it listened went unheard.
                            changed.notify_waiters();
                            while let Some(from) = listener.next().await {
                                if *from != *name && inbox_of(&from) == inbox_of(&name) {
                                    changed.notify_waiters();
                                }
                            }
                        }
                        // The connections are the user's own, and none can be made to listen.
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

/// No name holds a space.
fn inbox_of(name: &str) -> &str {
    name.split(' ').next().unwrap_or_default()
}
