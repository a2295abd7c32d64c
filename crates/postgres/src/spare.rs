//! Connections that only renew, settle, commit and release: calls that keep a lease must not wait for the holders of the others.
//!
//! `Postgres::new` opens them when they are first needed. A user's pool can't be asked for a connection outside the
//! pool, so there they are taken out of the pool after a call of ours has succeeded on them; the pool then makes others in their
//! place.

use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Object, Pool, Timeouts};
use hookgate::clock::{Clock, Monotonic, SystemClock};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tokio_postgres::Error;

use super::call::first_of;
use super::connect::Connector;
use super::task::Task;

/// The greatest number of them: two, so that one that hangs does not block the others.
const MAX: usize = 2;
/// How long a renewal waits for a connection of the pool before a spare one is opened for it.
pub(super) const POOL_WAIT: Duration = Duration::from_millis(100);

pub(super) struct SpareConnections {
    /// Absent where the pool belongs to the user, since a pool can't be asked how it connects.
    pub(super) connector: Option<Connector>,
    /// One permit for each that may still be made. Each existing one holds one.
    slots: Arc<Semaphore>,
    idle: Mutex<Vec<Spare>>,
    /// Notified when one was put back.
    put_back: Notify,
    refill: Task,
}

/// A spare connection.
pub(super) struct Spare {
    pub(super) client: ClientWrapper,
    answered: Monotonic,
    /// Whether a call has been answered on it.
    pub(super) is_used: bool,
    _slot: OwnedSemaphorePermit,
}

impl SpareConnections {
    pub(super) fn new(connector: Option<Connector>) -> Self {
        Self {
            connector,
            slots: Arc::new(Semaphore::new(MAX)),
            idle: Mutex::default(),
            put_back: Notify::new(),
            refill: Task::default(),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Spare>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an idle one.
    pub(super) fn take(&self) -> Option<Spare> {
        let mut idle = self.idle();
        std::iter::from_fn(|| idle.pop()).find(|spare| !spare.client.is_closed())
    }

    /// Waits for one that is put back, or opens one after a while. An attempt to open one that fails, or takes long, does not end
    /// the wait for those that are put back; its error is written to `unopened`.
    pub(super) async fn wait(&self, unopened: &mut Option<Error>) -> Spare {
        match first_of(self.returned(), self.opened(unopened)).await {
            Ok(spare) | Err(spare) => spare,
        }
    }

    async fn returned(&self) -> Spare {
        loop {
            let mut put_back = pin!(self.put_back.notified());
            // Before `take`, so that one that is put back after that call is noticed.
            put_back.as_mut().enable();
            if let Some(spare) = self.take() {
                return spare;
            }
            put_back.await;
        }
    }

    /// Tries once to open one, as soon as there is a free slot.
    async fn opened(&self, unopened: &mut Option<Error>) -> Spare {
        sleep(POOL_WAIT).await;
        if let Some(connector) = &self.connector
            && let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await
        {
            match connector.connected().await {
                Ok((client, driven)) => {
                    return Spare::new(ClientWrapper::new(client, driven), false, slot);
                }
                Err(error) => *unopened = Some(error),
            }
        }
        pending().await
    }

    pub(super) fn put(&self, mut spare: Spare) {
        (spare.is_used, spare.answered) = (true, SystemClock.monotonic());
        self.idle().push(spare);
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
        if self.connector.is_some() || self.slots.available_permits() < MAX {
            return;
        }
        self.refill.run(|| {
            let (spares, pool) = (Arc::downgrade(self), pool.clone());
            async move {
                let object = pool.timeout_get(&Timeouts::new()).await;
                if let (Ok(object), Some(spares)) = (object, spares.upgrade()) {
                    spares.take_or_return(object);
                }
            }
        });
    }

    /// Closes those that are idle and have not answered for this long.
    pub(super) fn drop_idle(&self, silence: Duration) {
        let now = SystemClock.monotonic();
        self.idle()
            .retain(|spare| now.saturating_since(spare.answered) < silence);
    }

    /// The number of spare connections.
    pub(super) fn count(&self) -> usize {
        MAX.saturating_sub(self.slots.available_permits())
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
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use tokio::time::timeout;
    use tokio_postgres::error::SqlState;
    use tokio_postgres::{Config, NoTls};

    use super::*;
    use crate::session::Sessions;

    /// Starts a server that accepts one connection, and gives each later connection `answer`. Returns spares that connect to it.
    fn spares_on_a_server(answer: &'static [u8]) -> SpareConnections {
        const READY: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for (number, socket) in listener.incoming().enumerate() {
                let mut socket = socket.unwrap();
                let _ = socket.read(&mut [0; 1_024]).unwrap();
                socket
                    .write_all(if number == 0 { READY } else { answer })
                    .unwrap();
                open.push(socket);
            }
        });
        let mut config = Config::new();
        config.host("127.0.0.1").port(address.port()).user("test");
        // No statement is sent after the connection was made.
        let sessions = Arc::new(Sessions::as_they_are());
        let connector = Connector::new(config, NoTls, sessions);
        SpareConnections::new(Some(connector))
    }

    /// A wait whose own connection can't be made ends when the other spare connection is put back.
    async fn a_wait_ends_when_a_spare_is_put_back(answer: &'static [u8]) -> Option<Error> {
        const LIMIT: Duration = Duration::from_secs(20);
        let spares = spares_on_a_server(answer);
        let held = timeout(LIMIT, spares.wait(&mut None)).await.unwrap();
        let mut unopened = None;
        let put_back = async {
            sleep(POOL_WAIT * 5).await;
            spares.put(held);
        };
        let (waited, ()) = tokio::join!(timeout(LIMIT, spares.wait(&mut unopened)), put_back);
        assert!(waited.unwrap().is_used, "the one that was put back");
        assert_eq!(spares.count(), 0, "the other attempt keeps no slot");
        unopened
    }

    #[tokio::test]
    async fn a_wait_whose_connection_is_refused_ends_when_a_spare_is_put_back() {
        let refused = b"E\0\0\0\x24SFATAL\0VFATAL\0C53300\0Mtoo many\0\0";
        let error = a_wait_ends_when_a_spare_is_put_back(refused).await;
        let error = error.unwrap();
        assert_eq!(error.code(), Some(&SqlState::TOO_MANY_CONNECTIONS));
    }

    #[tokio::test]
    async fn a_wait_whose_connection_hangs_ends_when_a_spare_is_put_back() {
        let error = a_wait_ends_when_a_spare_is_put_back(b"").await;
        assert!(error.is_none(), "{error:?}");
    }
}
