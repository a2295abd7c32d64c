//! Connections that only renew, settle, commit and release: calls that keep a lease must not wait for the holders of the others.
//!
//! `Postgres::new` opens them when they are first needed. A user's pool can't be asked for a connection outside the
//! pool, so there they are taken out of the pool after a call of ours has succeeded on them; the pool then makes others in their
//! place.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use ::tokio_postgres::Error;
use deadpool_postgres::{ClientWrapper, Object, Pool, Timeouts};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::connect::Connector;
use super::task::Task;
use crate::clock::{Clock, Monotonic, SystemClock};

/// The greatest number of them: two, so that one that hangs does not block the others.
pub(super) const MOST: usize = 2;
/// How long a renewal waits for a connection of the pool before a spare one is opened for it.
const STARVED: Duration = Duration::from_millis(100);

pub(super) struct Spares {
    /// Absent on a pool of the user.
    connector: Option<Arc<Connector>>,
    /// One permit for each that may still be made. Each existing one holds one.
    slots: Arc<Semaphore>,
    idle: Mutex<Vec<Spare>>,
    /// Notified when one was put back.
    put_back: Notify,
    refill: Task,
}

/// A spare connection.
pub(super) struct Spare {
    client: ClientWrapper,
    answered: Monotonic,
    /// Whether a call has been answered on it.
    pub(super) is_used: bool,
    _slot: OwnedSemaphorePermit,
}

impl Spares {
    pub(super) fn new(connector: Option<Arc<Connector>>) -> Self {
        Self {
            connector,
            slots: Arc::new(Semaphore::new(MOST)),
            idle: Mutex::default(),
            put_back: Notify::new(),
            refill: Task::default(),
        }
    }

    /// Returns an idle one.
    pub(super) fn idle(&self) -> Option<Spare> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::from_fn(|| idle.pop()).find(|spare| !spare.client.is_closed())
    }

    /// Waits for one that is put back, or opens one after a while.
    pub(super) async fn wait(&self) -> Result<Spare, Error> {
        loop {
            let _ = timeout(STARVED, self.put_back.notified()).await;
            if let Some(spare) = self.idle() {
                return Ok(spare);
            }
            if let Some(connector) = &self.connector
                && let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned()
            {
                let (client, driven) = connector.connect().await?;
                let client = ClientWrapper::new(client, driven);
                return Ok(Spare::new(client, false, slot));
            }
        }
    }

    pub(super) fn put(&self, mut spare: Spare) {
        (spare.is_used, spare.answered) = (true, SystemClock.monotonic());
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(spare);
        drop(idle);
        self.put_back.notify_one();
    }

    /// Takes a connection on which nothing is under way out of the user's pool, where a spare one is missing. Otherwise it goes
    /// back to the pool.
    pub(super) fn take_or_return(&self, object: Object) {
        if self.connector.is_none()
            && let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned()
        {
            self.put(Spare::new(Object::take(object), true, slot));
        }
    }

    /// Takes the next connection that the user's pool gives, where there is no spare one.
    pub(super) fn refill(self: &Arc<Self>, pool: &Pool) {
        if self.connector.is_some() || self.slots.available_permits() < MOST {
            return;
        }
        self.refill.run(|| {
            let (spares, pool) = (Arc::downgrade(self), pool.clone());
            async move {
                let object = pool.timeout_get(&Timeouts::default()).await;
                if let (Ok(object), Some(spares)) = (object, spares.upgrade()) {
                    spares.take_or_return(object);
                }
            }
        });
    }

    /// Closes those that are idle and have not answered for this long.
    pub(super) fn drop_idle(&self, silence: Duration) {
        let now = SystemClock.monotonic();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|spare| now.saturating_since(spare.answered) < silence);
    }

    /// Returns the number of spare connections.
    pub(super) fn count(&self) -> usize {
        MOST.saturating_sub(self.slots.available_permits())
    }
}

impl Spare {
    fn new(client: ClientWrapper, is_used: bool, slot: OwnedSemaphorePermit) -> Self {
        Self {
            client,
            answered: SystemClock.monotonic(),
            is_used,
            _slot: slot,
        }
    }

    pub(super) fn client(&self) -> &ClientWrapper {
        &self.client
    }
}

/// Returns the output of the future that ends first.
pub(super) async fn first_of<A: Future, B: Future>(
    one: A,
    other: B,
) -> Result<A::Output, B::Output> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    std::future::poll_fn(|context| {
        if let Poll::Ready(output) = one.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        other.as_mut().poll(context).map(Err)
    })
    .await
}
