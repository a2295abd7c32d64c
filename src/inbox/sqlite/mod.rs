//! The inbox in a file, on SQLite.
//!
//! One thread writes: calls that wait while the disk is flushed share the next commit. Another thread reads, for lists and
//! numbers. Neither is a thread of the runtime, and callers wait without blocking a thread.

mod accept;
mod command;
mod lease;
mod open;
mod options;
mod read;
mod row;
mod schema;
mod settle;
mod upkeep;
mod writer;

#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use self::command::{Answer, Command, EngineState, Task};
use self::read::{Question, Reader};
use self::writer::Writer;
use super::engine::{Batch, Change, End, Engine, InboxStats, LeaseRequest, Listed};
use super::entry::{Entry, EntryId, EntryState};
use super::selection::{Page, Selection};
use super::signal::WorkSignal;
use super::sink::Accepted;
use crate::caught::caught;
use crate::dedupe::{ClaimToken, Ownership, ScopesInUse, StoreError, StoreErrorKind, StoreFuture};
use crate::sqlite::commits::Commits;
use crate::sqlite::fault::{ended, failed};
use crate::sqlite::slot::WaitingSlot;
use crate::sqlite::thread::start;

pub use options::InboxOptions;

/// The number of entries that an operator's call changes with one commit.
const CHUNK: usize = 500;
/// How long each commit of an operator's call waits for the file's lock, as the command does.
const OPERATOR_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct SqliteEngine {
    path: PathBuf,
    commands: Sender<Command>,
    questions: Sender<Question>,
    shared: Arc<EngineState>,
    max_waiting: usize,
    /// Never receives a value. It closes when both threads have closed their connections: the writer closes last.
    open: watch::Receiver<()>,
}

impl SqliteEngine {
    pub(super) fn open(path: &Path, options: &InboxOptions) -> Result<Self, StoreError> {
        options.check()?;
        let opened = open::open(path, options)?;
        let open::Connections { writer, reader } = opened.connections;
        let (alive, open) = watch::channel(());
        let shared = Arc::new(EngineState::default());
        let (questions, asked) = channel();
        let clock = Arc::clone(&options.clock);
        let reader = start("inbox-reader", reader, move |connection, ready| {
            let mut reader = Reader::prepare(connection, clock)?;
            ready();
            reader.run(&asked);
            Ok(())
        })?;
        let (commands, asked) = channel();
        let (settings, state) = (options.clone(), Arc::clone(&shared));
        let (files, reserve) = (opened.files, opened.reserve);
        start(
            "inbox-writer",
            (writer, alive),
            move |(connection, _), ready| {
                let file = Commits::prepare(connection, files, reserve)?;
                let mut writer = Writer::prepare(file, settings, state)?;
                ready();
                writer.run(&asked);
                // The last connection to close copies the log into the file; of two that close at the same time, neither is the
                // last.
                drop(reader.join());
                Ok(())
            },
        )?;
        Ok(Self {
            path: path.to_owned(),
            commands,
            questions,
            shared,
            max_waiting: options.max_waiting,
            open,
        })
    }

    /// Sends a command to the writer and waits for its answer, of which `of` returns the value. If the caller stops waiting, the
    /// answer is dropped.
    async fn command<T>(&self, task: Task, of: fn(Answer) -> Option<T>) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let reply = Some(reply);
        let sent = self.commands.send(Command { task, reply });
        sent.map_err(|_| ended())?;
        // The function that carries out a command makes the answer of its type.
        of(answer.await.unwrap_or_else(|_| Err(ended()))?).ok_or_else(ended)
    }

    /// Calls the reader, unless the caller has stopped waiting.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Reader<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let question: Question = Box::new(move |reader| {
            if !reply.is_closed() {
                // A clock that panics fails this answer, and does not end the thread.
                let read = caught(|| read(reader)).map_err(|_| ended());
                drop(reply.send(read.and_then(|read| read.map_err(failed))));
            }
        });
        let sent = self.questions.send(question);
        sent.map_err(|_| ended())?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Works in chunks, so that no operator's command delays deliveries: the selected entries are read first, and then written.
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
                // Entries that were accepted after the call began are left out: otherwise the call might never end.
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

    /// Changes one chunk. While other processes keep the file locked, the command waits: it must not end midway.
    async fn change(
        &self,
        ids: &[EntryId],
        state: EntryState,
        change: &Arc<Change>,
    ) -> Result<u64, StoreError> {
        let until = Instant::now() + OPERATOR_TIMEOUT;
        loop {
            let (ids, change) = (ids.to_vec(), Arc::clone(change));
            let task = Task::Operate { ids, state, change };
            match self.command(task, Answer::count).await {
                // Nothing was changed, since the transaction has not begun.
                Err(error)
                    if error.kind() == StoreErrorKind::TimedOut && Instant::now() < until => {}
                changed => return changed,
            }
        }
    }
}

impl Engine for SqliteEngine {
    fn scopes_in_use(&self) -> &ScopesInUse {
        &self.shared.scopes
    }

    fn accept(&self, entry: Entry, retain: Duration) -> StoreFuture<'_, Accepted> {
        StoreFuture::boxed(async move {
            let Some(slot) = WaitingSlot::take(&self.shared.waiting, self.max_waiting) else {
                return Err(StoreError::saying(
                    StoreErrorKind::Unavailable,
                    "as many deliveries wait to be stored as .max_waiting(…) allows",
                ));
            };
            let task = Task::Accept {
                entry: Box::new(entry),
                retain,
                _slot: slot,
            };
            self.command(task, Answer::accepted).await
        })
    }

    fn lease(&self, request: LeaseRequest) -> StoreFuture<'_, Batch> {
        StoreFuture::boxed(self.command(Task::Lease(request), Answer::batch))
    }

    fn renew(&self, id: EntryId, token: ClaimToken, lease: Duration) -> StoreFuture<'_, Ownership> {
        StoreFuture::boxed(self.command(Task::Renew { id, token, lease }, Answer::ownership))
    }

    fn settle(&self, id: EntryId, token: ClaimToken, end: End) -> StoreFuture<'_, Ownership> {
        StoreFuture::boxed(self.command(Task::Settle { id, token, end }, Answer::ownership))
    }

    fn changed(&self) -> &WorkSignal {
        &self.shared.changed
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

impl fmt::Debug for SqliteEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteEngine")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
