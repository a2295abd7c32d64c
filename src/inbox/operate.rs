//! What an operator asks of an inbox, from the process that works it off or from another.

use std::fmt;

use bytes::Bytes;

use super::durable::Inbox;
use super::engine::{Age, EntryId, InboxStats, Listed, Page, Selection};
use super::entry::Entry;
use super::line::one_line;
use crate::clock::UnixSeconds;
use crate::delivery::Delivery;
use crate::error::StoreError;

impl Inbox {
    /// Entries in the order in which they were accepted, without their bodies.
    ///
    /// # Errors
    /// The inbox could not be read.
    pub async fn list(&self, which: Selection, page: Page) -> Result<Vec<Listed>, StoreError> {
        self.engine.list(which, page).await
    }

    /// An entry whole. `None` where there is none of this number, or none any more.
    ///
    /// # Errors
    /// The inbox could not be read.
    pub async fn show(&self, id: EntryId) -> Result<Option<StoredEntry>, StoreError> {
        let shown = self.engine.show(id).await?;
        Ok(shown.map(|(listed, entry)| StoredEntry { listed, entry }))
    }

    /// Makes entries that wait and dead letters due now, with all their tries before them. Leaves those that run or are done alone. Says
    /// how many entries it made due.
    ///
    /// Workers do not run an entry whose first run began longer ago than claims are kept
    /// ([`Workers::claim_retention`](super::Workers::claim_retention)): it becomes a dead letter again, and its last error says so.
    ///
    /// # Errors
    /// Entries of which it is not said may be due as well: to ask again is safe.
    pub async fn retry(&self, which: Selection) -> Result<u64, StoreError> {
        self.engine.retry(which, Age::SinceFirstLease).await
    }

    /// As [`retry`](Self::retry), and workers run the entries however long ago their first run began, as if each had never been run.
    ///
    /// **The effect may happen twice.** An earlier run may have committed its effect without the inbox being told, and the claim that
    /// would show it may be forgotten by now. Look first whether the effect is there.
    ///
    /// # Errors
    /// As [`retry`](Self::retry).
    pub async fn retry_even_if_older_than_claims(
        &self,
        which: Selection,
    ) -> Result<u64, StoreError> {
        self.engine.retry(which, Age::Forgotten).await
    }

    /// Makes entries that wait dead letters, with this reason in the place of their last error: one line, at most
    /// 512 bytes of it. Says how many it were.
    ///
    /// # Errors
    /// Entries of which it is not said may be dead as well: to ask again is safe.
    pub async fn bury(&self, which: Selection, reason: &str) -> Result<u64, StoreError> {
        self.engine.bury(which, one_line(reason)).await
    }

    /// Deletes dead letters and entries that are done, with their ids: where the sender delivers such an event again, it is handled
    /// again. Leaves those that wait or run alone. Says how many it were.
    ///
    /// # Errors
    /// Entries of which it is not said may be gone as well: to ask again is safe.
    pub async fn purge(&self, which: Selection) -> Result<u64, StoreError> {
        self.engine.purge(which).await
    }

    /// The inbox in numbers. On SQLite it is cheap enough to be asked every second: nothing is counted for it. On PostgreSQL what waits and what
    /// is dead is counted in an index, which takes the longer the more there is, and is an error after 4 s: ask every 10 s or more seldom.
    ///
    /// # Errors
    /// The inbox could not be read.
    pub async fn stats(&self) -> Result<InboxStats, StoreError> {
        self.engine.stats().await
    }
}

/// An entry with all that is written down of its delivery.
///
/// Its `Debug` shows nothing of the body.
#[derive(Clone)]
pub struct StoredEntry {
    listed: Listed,
    entry: Entry,
}

impl StoredEntry {
    /// As a list shows it.
    #[must_use]
    pub fn listed(&self) -> &Listed {
        &self.listed
    }

    /// The raw bytes that were signed. `None` where the entry is done, and they are deleted.
    #[must_use]
    pub fn body(&self) -> Option<&Bytes> {
        // No authentic body is empty: it holds an id at least.
        Some(&self.entry.body).filter(|body| !body.is_empty())
    }

    /// The timestamp that was signed.
    #[must_use]
    pub fn timestamp(&self) -> &str {
        &self.entry.timestamp
    }

    /// What the receiver's wall clock said when the delivery came.
    #[must_use]
    pub fn received_at(&self) -> UnixSeconds {
        self.entry.received_at
    }

    /// The name of the key that proved it.
    #[must_use]
    pub fn key_name(&self) -> &str {
        &self.entry.key_name
    }

    /// The subscription whose keys proved it, where there is more than one.
    #[must_use]
    pub fn subscription_id(&self) -> Option<&str> {
        self.entry.subscription.as_deref()
    }

    /// The workspace that its keys are pinned to.
    #[must_use]
    pub fn pinned_workspace(&self) -> Option<&str> {
        self.entry.workspace.as_deref()
    }

    /// The delivery as it was accepted. `None` where its body is deleted, or what is stored is no delivery: then somebody else has
    /// written there.
    #[must_use]
    pub fn delivery(&self) -> Option<Delivery> {
        self.body()?;
        self.entry.clone().into_delivery().ok()
    }
}

impl fmt::Debug for StoredEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredEntry")
            .field("listed", &self.listed)
            .field("received_at", &self.entry.received_at)
            .field("key_name", &self.entry.key_name)
            .finish_non_exhaustive()
    }
}
