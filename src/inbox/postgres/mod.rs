//! The inbox in a table of PostgreSQL, which any number of processes fill and work off.

mod accept;
mod clean;
mod lease;
mod notify;
mod operate;
mod row;
mod schema;
mod serial;
mod settle;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use self::clean::Cleaner;
use self::notify::Wire;
use super::durable::Inbox;
use super::engine::{Age, Ask, Batch, End, Engine, EntryId, InboxStats, Listed, Page, Selection};
use super::entry::Entry;
use super::sink::Accepted;
use crate::dedupe::{ClaimToken, Ownership, StoreFuture};
use crate::postgres::Postgres;

pub(crate) use schema::{FIRST_LEASE_MIGRATION, MIGRATION};

/// No retention, lease or wait is longer: a time that PostgreSQL can add to any other.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

impl Inbox {
    /// In the table `hookgate_inbox` of this database, which [`migrate`](crate::postgres::migrate) makes: for several processes, on one
    /// machine or many. Those that share the table work it off together.
    ///
    /// Nothing is asked of the database before it is needed, so a program starts while its database is down; until it is back,
    /// deliveries are answered 503. The connections are those of `postgres`, shared with its claims, and one more that listens for
    /// new entries, in a process with workers. Without it, which is made anew when it breaks, workers ask in their interval.
    ///
    /// ```no_run
    /// use hookgate::Inbox;
    /// use hookgate::postgres::Postgres;
    /// use tokio_postgres::{Config, NoTls};
    ///
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let config: Config = std::env::var("DATABASE_URL")?.parse()?;
    /// let inbox = Inbox::on_postgres(&Postgres::new(config, NoTls));
    /// # let _ = inbox;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Durability
    /// An accepted delivery is flushed before the answer, also where the server or the role has `synchronous_commit = off`: the statement
    /// switches it on for itself. Against the loss of the server's disk only a synchronous standby helps, and nothing
    /// helps against `fsync = off`, which the server's administrator must not set.
    ///
    /// # Time
    /// Leases, waits and retentions run by the server's clock, so that those of the processes need not agree.
    ///
    /// # Sizing
    /// An entry takes its body and some 420 bytes, its indexes included (measured on PostgreSQL 15); once it is handled the body goes, and the
    /// rest stays until the retention ends. So 100 events a second with a retention of 48 h are 17 million rows and some 7 GB.
    ///
    /// An accept and a settlement hold a connection for a round trip and a flush. Flushes are shared, so more connections
    /// ([`Postgres::with_connections`]) accept more at a time. A lease is one statement, with `serial_by_row` two in a transaction.
    ///
    /// A table that works as a queue leaves dead rows behind quickly. The migration therefore sets `fillfactor` and the `autovacuum_`
    /// settings of this table so that it is vacuumed often and without a pause. Two things defeat that:
    /// - a transaction anywhere in the database that stays open for long: each lease has then to step over all that was handled
    ///   since it began. Bound them with `idle_in_transaction_session_timeout`;
    /// - with `serial_by_row`, a row with ten thousands of entries that wait: each lease steps over them while one of them runs.
    ///
    /// Handled entries whose retention is over are deleted a thousand at a time, by processes with workers, every 5 s and where a
    /// connection is free.
    ///
    /// # Server
    /// PostgreSQL 13 or newer. A pooler between, such as PgBouncer by transactions, must pass prepared statements on, and nothing is heard of
    /// through it: workers ask in their interval.
    ///
    /// # Security
    /// The role needs `SELECT`, `INSERT`, `UPDATE` and `DELETE` on `hookgate_inbox` and nothing else. Who may write there decides what the
    /// handlers take for proven: what comes from the table is not verified again. Bodies lie in it in clear.
    #[must_use]
    #[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
    pub fn on_postgres(postgres: &Postgres) -> Self {
        Self {
            engine: Arc::new(Table::new(postgres.clone())),
        }
    }
}

struct Table {
    postgres: Postgres,
    /// Between the processes that share the table.
    wire: Wire,
    cleaner: Cleaner,
}

impl Table {
    fn new(postgres: Postgres) -> Self {
        Self {
            wire: Wire::new(postgres.clone()),
            cleaner: Cleaner::new(postgres.clone()),
            postgres,
        }
    }
}

impl Engine for Table {
    fn accept(&self, entry: Entry, retain: Duration) -> StoreFuture<'_, Accepted> {
        StoreFuture::boxed(async move {
            let accepted = accept::accept(&self.postgres, &entry, retain).await?;
            if accepted == Accepted::New {
                self.wire.tell();
            }
            Ok(accepted)
        })
    }

    fn lease(&self, ask: Ask) -> StoreFuture<'_, Batch> {
        StoreFuture::boxed(async move {
            self.wire.listen();
            self.cleaner.clean();
            if ask.serial_by_row {
                serial::lease(&self.postgres, &ask).await
            } else {
                lease::lease(&self.postgres, &ask).await
            }
        })
    }

    fn renew(&self, id: EntryId, token: ClaimToken, lease: Duration) -> StoreFuture<'_, Ownership> {
        StoreFuture::boxed(settle::renew(&self.postgres, id, token, lease))
    }

    fn settle(&self, id: EntryId, token: ClaimToken, end: End) -> StoreFuture<'_, Ownership> {
        StoreFuture::boxed(async move {
            let is_returned = matches!(end, End::Return);
            let ownership = settle::settle(&self.postgres, id, token, end).await?;
            if is_returned {
                self.wire.tell();
            }
            Ok(ownership)
        })
    }

    fn changed(&self) -> &Notify {
        self.wire.changed()
    }

    fn list(&self, which: Selection, page: Page) -> StoreFuture<'_, Vec<Listed>> {
        StoreFuture::boxed(operate::list(&self.postgres, which, page))
    }

    fn show(&self, id: EntryId) -> StoreFuture<'_, Option<(Listed, Entry)>> {
        StoreFuture::boxed(operate::show(&self.postgres, id))
    }

    fn retry(&self, which: Selection, age: Age) -> StoreFuture<'_, u64> {
        StoreFuture::boxed(async move {
            let retried = operate::retry(&self.postgres, which, age).await?;
            self.wire.tell();
            Ok(retried)
        })
    }

    fn bury(&self, which: Selection, reason: String) -> StoreFuture<'_, u64> {
        StoreFuture::boxed(operate::bury(&self.postgres, which, reason))
    }

    fn purge(&self, which: Selection) -> StoreFuture<'_, u64> {
        StoreFuture::boxed(operate::purge(&self.postgres, which))
    }

    fn stats(&self) -> StoreFuture<'_, InboxStats> {
        StoreFuture::boxed(operate::stats(&self.postgres))
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Table").field(&self.postgres).finish()
    }
}

/// For `$n * interval '1 second'`.
fn seconds(time: Duration) -> f64 {
    time.min(LONGEST).as_secs_f64()
}

fn at_most(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(all(test, unix))]
mod tests;
