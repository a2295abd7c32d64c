//! Notifications of new entries, between tasks of one process and between processes.
//!
//! A notification is sent beside the insert and not in its transaction: the server commits transactions with notifications one
//! after another, each with its own flush, so that concurrent inserts could not share a flush (32 at a time took ten times as
//! long). At most one is sent every few milliseconds. A lost notification delays an entry by at most the workers' poll interval.
//!
//! A process with workers holds an advisory lock on the connection on which it listens, so that the others can find it in
//! `pg_locks`. A notification names as many of them as there are entries, chosen at random: if all idle workers were woken by each
//! entry, forty of them would lease where one has work, and accepts would wait for their leases. A process that is named while all
//! its workers are busy passes the notification on to all others. One whose worker was woken, and leased as many entries as it has
//! room for, passes it on to one other, as more may be due; that ends with the first that has room left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use hookgate::dedupe::{ClaimToken, EventKey};
use hookgate_inbox::engine::WorkSignal;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_postgres::types::Type;

use super::units::at_most;
use crate::Postgres;
use crate::task::Task;

const CHANNEL: &str = "hookgate_inbox";
/// A process sends at most one notification in this time.
const PAUSE: Duration = Duration::from_millis(10);
/// The greatest number of entries that one call adds to a notification. There are fewer processes than that.
const MAX: usize = 10_000;
/// The waits before it listens again: the first, doubled each time, up to the second.
const AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Sends a notification that names some of the processes that listen; `$5` is the greatest number of them. One that names none is
/// for all: there is no process that holds a lock, or `$5` is zero.
const NOTIFY: &str = "SELECT pg_notify($1, $2 || coalesce((
  SELECT ' ' || string_agg(objid::text, ' ') FROM (
    SELECT objid FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid::bigint = $3 AND objid::bigint <> $4
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ORDER BY random() LIMIT $5
  ) chosen), ''))";

pub(super) struct Notifier {
    postgres: Postgres,
    shared: Arc<Shared>,
    sender: Task,
    listener: Task,
}

struct Shared {
    changed: WorkSignal,
    /// Notified when there is a notification to send.
    due: Notify,
    /// The number of entries that the next notification is about.
    entries: AtomicUsize,
    /// Whether the next notification is for all processes.
    is_for_all: AtomicBool,
    /// The inbox's name, and a token that identifies this process.
    name: String,
    /// The number of the locks of all processes of this inbox, and of this process.
    lock: (u32, u32),
}

impl Notifier {
    pub(super) fn new(postgres: Postgres, inbox: &str) -> Self {
        let token = ClaimToken::new(&[]);
        let lock = (
            number(EventKey::new(CHANNEL, inbox).as_bytes()),
            number(token.as_bytes()),
        );
        Self {
            postgres,
            shared: Arc::new(Shared {
                changed: WorkSignal::default(),
                due: Notify::new(),
                entries: AtomicUsize::new(0),
                is_for_all: AtomicBool::new(false),
                name: format!("{inbox} {token:?}"),
                lock,
            }),
            sender: Task::default(),
            listener: Task::default(),
        }
    }

    pub(super) fn changed(&self) -> &WorkSignal {
        &self.shared.changed
    }

    /// Notifies workers that this number of entries may have become due: idle ones of this process at once, and for the rest
    /// those of other processes.
    pub(super) fn notify(&self, entries: usize) {
        let idle = self.shared.changed.idle();
        self.shared.changed.wake(entries);
        if entries > idle {
            self.shared.notify_others(entries - idle);
            self.send();
        }
    }

    /// Notifies another process that one more entry may be due.
    pub(super) fn wake_another(&self) {
        self.shared.notify_others(1);
        self.send();
    }

    /// Sends the notifications that are due, from now on.
    fn send(&self) {
        self.sender.run(|| {
            let (postgres, shared) = (self.postgres.clone(), Arc::clone(&self.shared));
            async move {
                loop {
                    shared.due.notified().await;
                    let is_for_all = shared.is_for_all.swap(false, Ordering::SeqCst);
                    let entries = match shared.entries.swap(0, Ordering::SeqCst) {
                        _ if is_for_all => 0,
                        // The notification before was about them.
                        0 => continue,
                        entries => at_most(entries),
                    };
                    let types = [Type::TEXT, Type::TEXT, Type::INT8, Type::INT8, Type::INT8];
                    let (of_all, own) = (i64::from(shared.lock.0), i64::from(shared.lock.1));
                    // If it fails, the workers of other processes find the entry at their poll interval.
                    let _ = postgres
                        .query(
                            NOTIFY,
                            &types,
                            &[&CHANNEL, &shared.name, &of_all, &own, &entries],
                        )
                        .await;
                    sleep(PAUSE).await;
                }
            }
        });
    }

    /// Listens to the notifications of other processes from now on.
    pub(super) fn listen(&self) {
        // A notification that names this process may have to be passed on.
        self.send();
        self.listener.run(|| {
            let (postgres, shared) = (self.postgres.clone(), Arc::clone(&self.shared));
            async move {
                let mut wait = AGAIN.0;
                loop {
                    match postgres.listen(CHANNEL, shared.lock).await {
                        Ok(Some(mut listener)) => {
                            wait = AGAIN.0;
                            // Notifications that were sent before it listened are lost.
                            shared.changed.wake_all();
                            while let Some(from) = listener.next().await {
                                shared.on_notification(&from);
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

impl Shared {
    fn notify_others(&self, entries: usize) {
        self.entries.fetch_add(entries.min(MAX), Ordering::SeqCst);
        self.due.notify_one();
    }

    /// Wakes workers if the notification is for this process.
    fn on_notification(&self, notification: &str) {
        let mut words = notification.split(' ');
        let (inbox, from) = (words.next(), words.next());
        let mut own = self.name.split(' ');
        if inbox != own.next() || from == own.next() {
            return;
        }
        let mut named = words.peekable();
        if named.peek().is_none() {
            // Each process has its own workers look, and one that is busy needs no hint.
            self.changed.wake_all();
        } else if named.any(|number| number.parse() == Ok(self.lock.1)) {
            if self.changed.listening() == 0 {
                self.is_for_all.store(true, Ordering::SeqCst);
                self.due.notify_one();
            }
            self.changed.wake(1);
        }
    }
}

/// Returns the first four bytes as a number.
fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .take(4)
        .fold(0, |number, byte| number << 8 | u32::from(*byte))
}
