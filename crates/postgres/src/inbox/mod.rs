//! The inbox in a table of PostgreSQL, which any number of processes can share.

mod accept;
mod lease;
mod notify;
mod operate;
mod row;
mod serial;
mod settle;
mod table;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hookgate::{
    dedupe::{ClaimToken, Ownership, ScopesInUse, StoreError, StoreErrorKind, StoreFuture},
    sink::Accepted,
};
use hookgate_inbox::engine::{Batch, Change, End, Engine, Entry, LeaseRequest};
use hookgate_inbox::{EntryId, Inbox, InboxStats, Listed, Page, Selection};
use tokio::sync::Notify;

use self::table::Table;
use crate::Postgres;

/// The most bytes of a name.
const LONGEST_NAME: usize = 63;

/// The durable inbox (feature `inbox`).
impl Postgres {
    /// Returns an inbox in the table `hookgate_inbox` of this database, which
    /// [`migrate`](crate::migrate) creates. It is for several processes, on one machine or many.
    ///
    /// `name` is the name of the program: 1 to 63 ASCII letters, digits, `.`, `_` and `-`.
    /// Processes with the same name handle their entries together. A program with another name may
    /// use the same table: neither sees the other's entries, and the same id under both names is
    /// not a duplicate. Receivers and workers of one inbox must use the same name; `hookgate inbox`
    /// lists the names that have entries. [`PostgresStore::new`](crate::PostgresStore::new) and
    /// [`claim_in`](crate::claim_in) take any text as a name: use one name of this form for all
    /// three.
    ///
    /// Acceptors with other secrets on an inbox of one name each need a
    /// [scope](hookgate::ReceiverBuilder::scope). Within one process, and on one `Postgres`,
    /// `accept_into` checks it.
    ///
    /// The database is not contacted before the first call, so a program starts while its database
    /// is down; until it is up again, deliveries are answered 503. The connections are those of
    /// `postgres`, shared with its claims. A process with workers opens one more connection to
    /// listen for new entries, and opens it again when it breaks. Without it, workers look for
    /// entries at their poll interval.
    ///
    /// ```no_run
    /// use hookgate_postgres::Postgres;
    ///
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let postgres = Postgres::open(&std::env::var("DATABASE_URL")?)?;
    /// let inbox = postgres.inbox("orders")?;
    /// # let _ = inbox;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [The page](crate#an-inbox-in-a-table) has the rest: durability, time, versions and poolers,
    /// sizes.
    ///
    /// # Errors
    /// [`Setting`](hookgate::dedupe::StoreErrorKind::Setting): `name` is not a valid name of an
    /// inbox.
    ///
    /// # Security
    /// A name separates programs that trust each other. A role with rights on the table can read
    /// and write the entries of every name: separate programs that must not do so by schemas and
    /// roles.
    ///
    /// The role needs `SELECT`, `INSERT`, `UPDATE` and `DELETE` on `hookgate_inbox` and nothing
    /// else. A role that may write to the table decides which events the handlers accept as
    /// verified: entries of the table are not verified again. Bodies are stored in the table in
    /// plain text.
    #[cfg_attr(docsrs, doc(cfg(feature = "inbox")))]
    pub fn inbox(&self, name: &str) -> Result<Inbox, StoreError> {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if !(1..=LONGEST_NAME).contains(&name.len()) || !name.bytes().all(is_letter) {
            return Err(StoreError::saying(
                StoreErrorKind::Setting,
                "the name of an inbox is 1 to 63 ASCII letters, digits, '.', '_' or '-': use that of the program",
            ));
        }
        Ok(Inbox::on(Arc::new(Table::new(self.clone(), name))))
    }

    /// Returns the names that have entries in the table of this database, sorted.
    ///
    /// # Errors
    /// The table could not be read.
    #[cfg_attr(docsrs, doc(cfg(feature = "inbox")))]
    pub async fn inbox_names(&self) -> Result<Vec<String>, StoreError> {
        operate::names(self).await
    }
}

impl Engine for Table {
    fn scopes_in_use(&self) -> &ScopesInUse {
        &self.scopes
    }

    fn accept(&self, entry: Entry, retain: Duration) -> StoreFuture<'_, Accepted> {
        StoreFuture::boxed(async move {
            let accepted = accept::accept(self, &entry, retain).await?;
            if accepted == Accepted::New {
                self.notifier.notify();
            }
            Ok(accepted)
        })
    }

    fn lease(&self, request: LeaseRequest) -> StoreFuture<'_, Batch> {
        StoreFuture::boxed(async move {
            self.notifier.listen();
            self.clean();
            if request.serial_by_row {
                serial::lease(self, &request).await
            } else {
                lease::lease(self, &request).await
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
                self.notifier.notify();
            }
            Ok(ownership)
        })
    }

    fn changed(&self) -> &Notify {
        self.notifier.changed()
    }

    fn list(&self, which: Selection, page: Page) -> StoreFuture<'_, Vec<Listed>> {
        StoreFuture::boxed(operate::list(self, which, page))
    }

    fn show(&self, id: EntryId) -> StoreFuture<'_, Option<(Listed, Entry)>> {
        StoreFuture::boxed(operate::show(self, id))
    }

    fn operate(&self, which: Selection, change: Change) -> StoreFuture<'_, u64> {
        StoreFuture::boxed(async move {
            let makes_due = matches!(change, Change::Retry { .. });
            let changed = operate::operate(self, which, change).await?;
            if makes_due {
                self.notifier.notify();
            }
            Ok(changed)
        })
    }

    fn stats(&self) -> StoreFuture<'_, InboxStats> {
        StoreFuture::boxed(operate::stats(self))
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Table")
            .field(&self.name)
            .field(&self.postgres)
            .finish()
    }
}

#[cfg(all(test, unix))]
mod tests;
