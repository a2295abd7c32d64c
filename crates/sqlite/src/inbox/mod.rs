//! The inbox in a file, on SQLite.
//!
//! One thread writes: calls that wait while the disk is flushed share the next commit. Another
//! thread reads, for lists and numbers. Neither is a thread of the runtime, and callers wait
//! without blocking a thread.

mod accept;
mod lease;
mod options;
mod read;
mod row;
mod schema;
mod settle;
mod tables;
mod upkeep;

#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use hookgate::{
    dedupe::{ClaimToken, Ownership, ScopesInUse, StoreError, StoreErrorKind, StoreFuture},
    internal::catch_panic,
    sink::Accepted,
};
use hookgate_inbox::engine::{Batch, Change, End, Engine, Entry, LeaseRequest};
use hookgate_inbox::{EntryId, EntryState, InboxStats, Listed, Page, Selection};
use rusqlite::Connection;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;

use self::read::OPERATOR_TIMEOUT;
use self::read::{Question, Reader};
use self::tables::InboxFile;
use crate::calls::{Calls, Kind};
use crate::fault::{Fault, ended, store_error};
use crate::header;
use crate::open::{connect, durably, flush_what_is_there, open, page_bytes, set};
use crate::thread::start;
use crate::writer::Limits;

pub use options::{InboxOptions, open_inbox};

/// The number of entries that an operator's call changes with one commit.
const CHUNK: usize = 500;
/// The bytes of one of the pages that [`InboxOptions::max_pages`] counts.
const MAX_PAGES_UNIT: i64 = 4_096;

pub(super) struct SqliteEngine {
    path: PathBuf,
    calls: Calls<InboxFile>,
    questions: Sender<Question>,
    changed: Arc<Notify>,
    scopes: ScopesInUse,
    /// Never receives a value. It closes when both threads have closed their connections: the
    /// writer closes last.
    open: watch::Receiver<()>,
}

impl SqliteEngine {
    pub(super) fn open(path: &Path, options: &InboxOptions) -> Result<Self, StoreError> {
        options.check()?;
        let opened = open(path, options.create, |file| open_file(file, options))?;
        let ((writer, reader, max_pages), opened) = opened;
        let (questions, asked) = channel();
        let clock = Arc::clone(&options.clock);
        let reading = start("inbox-reader", reader, move |connection, ready| {
            let mut reader = Reader::prepare(connection, clock)?;
            ready();
            reader.run(&asked);
            Ok(())
        })?;
        let changed = Arc::default();
        let file = InboxFile {
            forget_at_once: options.forget_at_once,
            changed: Arc::clone(&changed),
        };
        let limits = Limits {
            clock: Arc::clone(&options.clock),
            max_group: options.max_group,
            max_waiting: options.max_waiting,
            max_pages,
        };
        let (alive, open) = watch::channel(());
        // The last connection to close copies the log into the file; of two that close at the same
        // time, neither is the last.
        let end = || drop(reading.join());
        Ok(Self {
            path: path.to_owned(),
            calls: Calls::start(file, (writer, alive), opened, limits, end)?,
            questions,
            changed,
            scopes: ScopesInUse::default(),
            open,
        })
    }

    /// Calls the reader, unless the caller has stopped waiting.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Reader<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let question: Question = Box::new(move |reader| {
            if !reply.is_closed() {
                // A panic fails this answer, and does not end the thread.
                let read = catch_panic(|| read(reader)).map_err(|_| ended());
                drop(reply.send(read.and_then(|read| read.map_err(store_error))));
            }
        });
        let sent = self.questions.send(question);
        sent.map_err(|_| ended())?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Works in chunks, so that no operator's command delays deliveries: the selected entries are
    /// read first, and then written.
    async fn in_chunks(&self, which: Selection, change: Change) -> Result<u64, StoreError> {
        let change = Arc::new(change);
        let last = self.read(|reader| reader.last()).await?;
        let mut count = 0;
        for (state, which) in which.in_each(change.states()) {
            let mut page = Page::first(CHUNK);
            loop {
                let which = which.clone();
                let ids = self.read(move |reader| reader.ids(&which, page)).await;
                let mut ids = ids.map_err(|error| error.after_changes(count))?;
                // Entries that were accepted after the call began are left out: otherwise the call
                // might never end.
                ids.retain(|&id| id <= last);
                let Some(&end) = ids.last() else {
                    break;
                };
                let changed = self.change(&ids, state, &change).await;
                count += changed.map_err(|error| error.after_changes(count))?;
                if ids.len() < CHUNK {
                    break;
                }
                page = Page::after(end, CHUNK);
            }
        }
        Ok(count)
    }

    /// Changes one chunk. While other processes keep the file locked, the command waits: it must
    /// not end midway.
    async fn change(
        &self,
        ids: &[EntryId],
        state: EntryState,
        change: &Arc<Change>,
    ) -> Result<u64, StoreError> {
        let until = Instant::now() + OPERATOR_TIMEOUT;
        loop {
            let (ids, change) = (ids.to_vec(), Arc::clone(change));
            let changed = self.calls.ask(Kind::Certain, move |on, now| {
                let changed = on.settling.operate(&ids, state, &change, now)?;
                on.is_due |= changed > 0;
                Ok(changed as u64)
            });
            match changed.await {
                // Nothing was changed, since the transaction has not begun.
                Err(error)
                    if error.kind() == StoreErrorKind::TimedOut && Instant::now() < until => {}
                changed => return changed,
            }
        }
    }
}

/// Opens the connections of the writer and the reader, and creates the inbox in the file if it has
/// none. Returns them, and the largest number of the file's pages.
fn open_file(
    file: &Path,
    options: &InboxOptions,
) -> Result<(Connection, Connection, Option<i64>), Fault> {
    let writer = connect(file, options.busy_timeout)?;
    let is_new = header::check(&writer, options.create)?;
    let has_inbox = !is_new && schema::exists(&writer)?;
    if !has_inbox && !options.create {
        let advice =
            "no receiver has made an inbox of this file: name the one that the receiver opens";
        return Err(StoreError::saying(StoreErrorKind::Missing, advice).into());
    }
    let page_bytes = page_bytes(&writer)?;
    let own_pages = |pages| (i64::from(pages) * MAX_PAGES_UNIT / page_bytes).max(1);
    let max_pages = options.max_pages.map(own_pages);
    if let Some(pages) = max_pages {
        set(&writer, "max_page_count", pages)?;
    }
    durably(&writer)?;
    if !has_inbox {
        schema::create(&writer)?;
    }
    flush_what_is_there(&writer)?;
    let reader = connect(file, options.busy_timeout)?;
    durably(&reader)?;
    reader.execute_batch("PRAGMA query_only = ON")?;
    Ok((writer, reader, max_pages))
}

impl Engine for SqliteEngine {
    fn scopes_in_use(&self) -> &ScopesInUse {
        &self.scopes
    }

    fn accept(&self, entry: Entry, retain: Duration) -> StoreFuture<'_, Accepted> {
        let bytes = entry.body.len();
        StoreFuture::boxed(self.calls.begin(bytes, move |on, now, room| {
            let accepted = on.accepting.accept(&entry, retain, now, room)?;
            on.is_due |= accepted == Accepted::New;
            Ok(accepted)
        }))
    }

    fn lease(&self, request: LeaseRequest) -> StoreFuture<'_, Batch> {
        let calls = self.calls.clone();
        let leased = self.calls.ask(Kind::Optional, move |on, now| {
            let batch = on.leasing.lease(&request, now)?;
            let calls = calls.clone();
            Ok(Leased { batch, calls })
        });
        StoreFuture::boxed(async { Ok(leased.await?.taken()) })
    }

    fn renew(&self, id: EntryId, token: ClaimToken, lease: Duration) -> StoreFuture<'_, Ownership> {
        StoreFuture::boxed(self.calls.ask(Kind::Optional, move |on, now| {
            Ok(on.settling.renew(id, token, lease, now)?)
        }))
    }

    fn settle(&self, id: EntryId, token: ClaimToken, end: End) -> StoreFuture<'_, Ownership> {
        StoreFuture::boxed(self.calls.ask(Kind::Certain, move |on, now| {
            Ok(on.settle(id, token, &end, now)?)
        }))
    }

    fn changed(&self) -> &Notify {
        &self.changed
    }

    fn list(&self, which: Selection, page: Page) -> StoreFuture<'_, Vec<Listed>> {
        StoreFuture::boxed(self.read(move |reader| reader.list(&which, page)))
    }

    fn show(&self, id: EntryId) -> StoreFuture<'_, Option<(Listed, Entry)>> {
        StoreFuture::boxed(self.read(move |reader| reader.show(id)))
    }

    fn operate(&self, which: Selection, change: Change) -> StoreFuture<'_, u64> {
        StoreFuture::boxed(self.in_chunks(which, change))
    }

    fn overwrite_deleted(&self) -> StoreFuture<'_, ()> {
        StoreFuture::boxed(self.read(|reader| reader.overwrite_deleted()))
    }

    fn stats(&self) -> StoreFuture<'_, InboxStats> {
        StoreFuture::boxed(self.read(|reader| reader.stats()))
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut open = self.open.clone();
        Box::pin(async move { while open.changed().await.is_ok() {} })
    }
}

/// Leased entries that no worker has yet. If their worker no longer waits they are returned:
/// otherwise they would wait until their leases end. A lease that was rolled back is dropped too;
/// that changes nothing, because each lease has its own token.
struct Leased {
    batch: Batch,
    calls: Calls<InboxFile>,
}

impl Leased {
    fn taken(mut self) -> Batch {
        std::mem::take(&mut self.batch)
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        for job in std::mem::take(&mut self.batch.jobs) {
            let (id, token) = (job.id, job.token);
            let returned = self.calls.send(Kind::Certain, move |on, now, _| {
                Ok(on.settle(id, token, &End::Return, now)?)
            });
            drop(returned);
        }
    }
}

impl fmt::Debug for SqliteEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteEngine")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
