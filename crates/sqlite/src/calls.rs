//! The calls of a store in a file: each is sent to the one thread that writes, and waits for its
//! answer.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use hookgate::dedupe::{StoreError, StoreErrorKind};
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::fault::{Fault, ended};

/// A store in a file: the settings with which its thread is started.
pub(crate) trait FileStore: Send + 'static {
    type Tables<'c>: Tables;

    /// The name of the thread.
    const THREAD: &'static str;
    /// How often an idle thread looks for something to do.
    const LOOK: Duration;
    /// The message where as many calls wait as may.
    const CROWDED: &'static str;

    /// Prepares the statements, so that a file whose tables do not fit is refused when it is
    /// opened.
    fn prepare(self, connection: &Connection) -> rusqlite::Result<Self::Tables<'_>>;
}

/// The tables of a store. The thread keeps them in order beside its calls.
pub(crate) trait Tables {
    /// Whether there is something to tidy, apart from times that are wrong because the clock was
    /// set back.
    fn is_due(&mut self, now: i64) -> rusqlite::Result<bool>;

    /// Deletes one chunk of ended records. If the clock was set back, corrects the times that it
    /// had written before.
    fn tidy(&mut self, now: i64, is_set_back: bool) -> rusqlite::Result<()>;

    /// Whether the next chunk follows without a wait. Asked before each wait for a call.
    fn goes_on(&mut self) -> bool {
        false
    }

    /// Runs before each group of calls, and when no call has arrived for a while.
    fn look(&mut self) {}

    /// Runs after each commit.
    fn committed(&mut self, _has_tidied: bool) {}
}

/// What becomes of a call if there is little room, or if its caller no longer waits.
pub(crate) enum Kind {
    /// It begins an event, with a body of this number of bytes: as [`Optional`](Self::Optional),
    /// and without room for new events it may write nothing. It has one of the places for calls
    /// that wait.
    Begins {
        body_bytes: usize,
        _place: OwnedSemaphorePermit,
    },
    /// It is dropped if its caller no longer waits.
    Optional,
    /// It is always carried out.
    Certain,
}

/// A call, and its caller.
pub(super) struct Call<S: FileStore> {
    kind: Kind,
    pub(super) work: Box<dyn Work<S>>,
}

impl<S: FileStore> Call<S> {
    pub(super) fn begins(&self) -> bool {
        matches!(self.kind, Kind::Begins { .. })
    }

    pub(super) fn body_bytes(&self) -> usize {
        match self.kind {
            Kind::Begins { body_bytes, .. } => body_bytes,
            _ => 0,
        }
    }

    pub(super) fn is_given_up(&self) -> bool {
        !matches!(self.kind, Kind::Certain) && self.work.is_unheard()
    }

    /// Answers the caller, if it still waits. Its place is free by then: it may call again at once.
    pub(super) fn answer(self, committed: Result<(), StoreError>) {
        drop(self.kind);
        self.work.answer(committed);
    }
}

pub(super) trait Work<S: FileStore>: Send {
    /// Whether the caller no longer waits.
    fn is_unheard(&self) -> bool;

    fn carry_out(&mut self, on: &mut S::Tables<'_>, now: i64, room: bool) -> Result<(), Fault>;

    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

/// The function that carries out a call, its result, and the caller who waits for it.
struct Asked<F, T> {
    act: F,
    done: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<S, F, T> Work<S> for Asked<F, T>
where
    S: FileStore,
    F: FnMut(&mut S::Tables<'_>, i64, bool) -> Result<T, Fault> + Send,
    T: Send,
{
    fn is_unheard(&self) -> bool {
        self.reply.is_closed()
    }

    fn carry_out(&mut self, on: &mut S::Tables<'_>, now: i64, room: bool) -> Result<(), Fault> {
        self.done = Some((self.act)(on, now, room)?);
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let Self { done, reply, .. } = *self;
        drop(reply.send(committed.and_then(|()| done.ok_or_else(ended))));
    }
}

/// Sends calls to the thread, which ends when all clones are dropped and every call is answered.
pub(crate) struct Calls<S: FileStore> {
    sender: Sender<Call<S>>,
    places: Arc<Semaphore>,
}

impl<S: FileStore> Calls<S> {
    /// At most this number of calls that begin an event wait at a time.
    pub(super) fn new(sender: Sender<Call<S>>, most: usize) -> Self {
        let places = Semaphore::new(most.min(Semaphore::MAX_PERMITS));
        Self {
            sender,
            places: Arc::new(places),
        }
    }

    /// Begins an event, with a body of this number of bytes. The last argument of `act` is whether
    /// there is room for new events: if not, `act` runs outside of a transaction, and may only
    /// read. Otherwise as [`ask`](Self::ask).
    pub(crate) async fn begin<T: Send + 'static>(
        &self,
        body_bytes: usize,
        act: impl FnMut(&mut S::Tables<'_>, i64, bool) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let crowded = |_| StoreError::saying(StoreErrorKind::Unavailable, S::CROWDED);
        let _place = place.map_err(crowded)?;
        let kind = Kind::Begins { body_bytes, _place };
        let answer = self.send(kind, act)?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Has the thread call `act` with its tables and the time, in a transaction, and returns the
    /// result after the commit. `act` is called again if the transaction fails for another call's
    /// sake. If the caller stops waiting, the result is dropped.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        kind: Kind,
        mut act: impl FnMut(&mut S::Tables<'_>, i64) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let answer = self.send(kind, move |on, now, _| act(on, now))?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    pub(crate) fn send<T: Send + 'static>(
        &self,
        kind: Kind,
        act: impl FnMut(&mut S::Tables<'_>, i64, bool) -> Result<T, Fault> + Send + 'static,
    ) -> Result<oneshot::Receiver<Result<T, StoreError>>, StoreError> {
        let (reply, answer) = oneshot::channel();
        let done = None;
        let work = Box::new(Asked { act, done, reply });
        self.sender.send(Call { kind, work }).map_err(|_| ended())?;
        Ok(answer)
    }
}

impl<S: FileStore> Clone for Calls<S> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
            places: Arc::clone(&self.places),
        }
    }
}
