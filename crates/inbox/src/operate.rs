//! The calls of an operator, in the process of the workers or in another process.

use std::fmt;

use bytes::Bytes;
use hookgate::{Delivery, clock::UnixSeconds, dedupe::StoreError};

use super::engine::{Change, InboxStats, Listed, one_line};
use super::entry::{Entry, EntryId};
use super::inbox::Inbox;
use super::selection::{Page, Selection};

impl Inbox {
    /// Returns entries in the order in which they were accepted, without their bodies.
    ///
    /// # Errors
    /// The inbox could not be read.
    pub async fn list(&self, which: Selection, page: Page) -> Result<Vec<Listed>, StoreError> {
        self.engine.list(which, page).await
    }

    /// Returns an entry with its body. `None` if no entry has this number, or it was deleted.
    ///
    /// # Errors
    /// The inbox could not be read.
    pub async fn show(&self, id: EntryId) -> Result<Option<StoredEntry>, StoreError> {
        Ok(self.engine.show(id).await?.map(StoredEntry::of))
    }

    /// Makes queued entries and dead letters due now, with their count of runs set to zero. Entries
    /// that are running or done are not changed. Returns the number of entries that it made due.
    ///
    /// An entry that is [too old](super::Workers::claim_retention) to be run again becomes a dead
    /// letter again.
    ///
    /// # Errors
    /// After an error, some entries may be changed, and the message tells their number: it is safe
    /// to call again. While other processes keep the file of an inbox on SQLite locked, each step
    /// of 500 entries waits up to 10 s.
    pub async fn retry(&self, which: Selection) -> Result<u64, StoreError> {
        let change = Change::Retry { forgets_age: false };
        self.engine.operate(which, change).await
    }

    /// As [`retry`](Self::retry), and workers run the entries however long ago their first run
    /// began, as if each had never been run.
    ///
    /// **The effect may happen twice.** An earlier run may have committed its effect without a
    /// settlement in the inbox, and the claim that would show it may be forgotten by now. First
    /// check whether the effect has happened.
    ///
    /// # Errors
    /// As [`retry`](Self::retry).
    pub async fn retry_even_if_older_than_claims(
        &self,
        which: Selection,
    ) -> Result<u64, StoreError> {
        let change = Change::Retry { forgets_age: true };
        self.engine.operate(which, change).await
    }

    /// Makes queued entries dead letters, with this reason as their last error: one line, at most
    /// 512 bytes. Returns the number of entries.
    ///
    /// # Errors
    /// As [`retry`](Self::retry).
    pub async fn dead_letter(&self, which: Selection, reason: &str) -> Result<u64, StoreError> {
        let reason = one_line(reason);
        let change = Change::DeadLetter { reason };
        self.engine.operate(which, change).await
    }

    /// Deletes dead letters and entries that are done, with their ids: if the sender delivers such
    /// an event again, it is handled again. Entries that are queued or running are not changed.
    /// Returns the number of entries.
    ///
    /// # Errors
    /// As [`retry`](Self::retry).
    pub async fn purge(&self, which: Selection) -> Result<u64, StoreError> {
        self.engine.operate(which, Change::Purge).await
    }

    /// Deletes the data of these entries, as for the request of a person whom they concern: dead
    /// letters and entries that are done lose their body, the row that they belong to and their
    /// last error. Their ids stay known for the retention, so that a copy that the sender delivers
    /// is a duplicate, and is not handled. Queued and running entries are not changed:
    /// [`erase_including_waiting`](Self::erase_including_waiting) erases them too. Returns the
    /// number of entries.
    ///
    /// The entry's number, the event's id and type, its times, the scope and the name of the key
    /// stay until the retention ends.
    ///
    /// ```
    /// use hookgate_inbox::{EntryState, Page, Selection};
    ///
    /// # let folder = std::env::temp_dir().join(format!("hookgate-doc-erase-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let inbox = hookgate_sqlite::open_inbox(folder.join("inbox.db"))?;
    /// let mut theirs = Vec::new();
    /// for dead in inbox.list(Selection::all().state(EntryState::Dead), Page::first(1_000)).await? {
    ///     let entry = inbox.show(dead.id).await?;
    ///     let body = entry.as_ref().and_then(|entry| entry.body.as_ref()).map(|body| String::from_utf8_lossy(body));
    ///     if body.is_some_and(|body| body.contains("\"usr_1\"")) {
    ///         theirs.push(dead.id);
    ///     }
    /// }
    /// assert_eq!(inbox.erase(&theirs).await?, 0); // there was none
    /// # inbox.close().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// On SQLite the call ends with a `VACUUM` of the whole file, also where no entry is given; on
    /// PostgreSQL none is run. [Erasure](hookgate::guide::erasure) says what either costs, and
    /// which bytes stay.
    ///
    /// # Errors
    /// After an error, some entries may be erased, and the message tells their number; some of
    /// their bytes may be left in the file. It is safe to call again.
    pub async fn erase(&self, entries: &[EntryId]) -> Result<u64, StoreError> {
        self.erase_each(entries, Change::Erase { waiting: false })
            .await
    }

    /// As [`erase`](Self::erase), and also queued and running entries, **which are then never
    /// handled**. A handler that runs is not stopped, and its worker finds its lease lost.
    ///
    /// # Errors
    /// As [`erase`](Self::erase).
    pub async fn erase_including_waiting(&self, entries: &[EntryId]) -> Result<u64, StoreError> {
        self.erase_each(entries, Change::Erase { waiting: true })
            .await
    }

    /// Deletes the last errors of these entries, whatever their state, and nothing else: for an
    /// entry that is another's, and whose handler has named a person in its error. Returns the
    /// number of entries.
    ///
    /// The bytes are overwritten as with [`erase`](Self::erase).
    ///
    /// # Errors
    /// As [`erase`](Self::erase).
    pub async fn erase_last_errors(&self, entries: &[EntryId]) -> Result<u64, StoreError> {
        self.erase_each(entries, Change::EraseLastError).await
    }

    async fn erase_each(&self, entries: &[EntryId], change: Change) -> Result<u64, StoreError> {
        let mut erased = 0;
        for &entry in entries {
            let which = Selection::all().id(entry);
            let done = self.engine.operate(which, change.clone()).await;
            erased += done.map_err(|error| error.after_changes(erased))?;
        }
        let overwritten = self.engine.overwrite_deleted().await;
        overwritten.map_err(|error| error.after_changes(erased))?;
        Ok(erased)
    }

    /// Returns the number of entries in each state, and the age of the oldest.
    ///
    /// On SQLite the call is cheap enough for every second: it reads stored counts. On PostgreSQL
    /// it counts entries that are queued, running or dead in an index. This takes longer the more
    /// entries there are, and fails after 4 s: call it every 10 s or less often.
    ///
    /// # Errors
    /// The inbox could not be read.
    pub async fn stats(&self) -> Result<InboxStats, StoreError> {
        self.engine.stats().await
    }
}

/// An entry with all stored data of its delivery.
///
/// Its `Debug` shows nothing of the body.
#[derive(Clone)]
#[non_exhaustive]
pub struct StoredEntry {
    /// The entry as a list shows it.
    pub listed: Listed,
    /// The raw bytes that were signed. `None` if the entry is done, as its body is deleted.
    pub body: Option<Bytes>,
    /// The timestamp that was signed.
    pub timestamp: String,
    /// The time of the receiver's wall clock when the delivery arrived.
    pub received_at: UnixSeconds,
    /// The name of the key that verified it.
    pub key_name: String,
    /// The subscription whose keys verified it, if there is more than one subscription.
    pub subscription_id: Option<String>,
    /// The workspace that the subscription's keys are pinned to.
    pub pinned_workspace: Option<String>,
    /// The delivery as it was accepted. `None` if its body is deleted, or if the stored data is not
    /// a valid delivery because another program has changed it.
    pub delivery: Option<Delivery>,
}

impl StoredEntry {
    fn of((listed, entry): (Listed, Entry)) -> Self {
        // No authentic body is empty: it contains at least an id.
        let body = Some(entry.body.clone()).filter(|body| !body.is_empty());
        Self {
            listed,
            timestamp: entry.timestamp.clone(),
            received_at: entry.received_at,
            key_name: entry.key_name.clone(),
            subscription_id: entry.subscription_id.clone(),
            pinned_workspace: entry.pinned_workspace.clone(),
            delivery: body.as_ref().and_then(|_| entry.into_delivery().ok()),
            body,
        }
    }
}

impl fmt::Debug for StoredEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredEntry")
            .field("listed", &self.listed)
            .field("received_at", &self.received_at)
            .field("key_name", &self.key_name)
            .finish_non_exhaustive()
    }
}
