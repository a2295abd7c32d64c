//! A connection in use, and its return.

use std::ops::Deref;
use std::sync::Arc;

use deadpool_postgres::{ClientWrapper, Object};

use super::spare::{ReservedConnections, Spare};

/// A connection in use. Unless it is [kept](Self::keep) it is closed when this is dropped: a statement that was abandoned, by a
/// timeout or with its future, may still be under way, and the next user would wait for it.
pub(crate) struct PooledConnection {
    held: Option<Held>,
    spares: Arc<ReservedConnections>,
}

pub(super) enum Held {
    Pooled(Object),
    Spare(Spare),
}

impl PooledConnection {
    pub(super) fn new(held: Held, spares: Arc<ReservedConnections>) -> Self {
        Self {
            held: Some(held),
            spares,
        }
    }

    /// Returns the connection for the next call: nothing is under way on it.
    pub(crate) fn keep(mut self) {
        match self.held.take() {
            Some(Held::Pooled(object)) => self.spares.take_or_return(object),
            Some(Held::Spare(spare)) => self.spares.put(spare),
            None => {}
        }
    }

    pub(super) fn lain_idle(&self) -> bool {
        match self.held() {
            Held::Pooled(object) => Object::metrics(object).recycle_count > 0,
            Held::Spare(spare) => spare.is_used,
        }
    }

    fn held(&self) -> &Held {
        match &self.held {
            Some(held) => held,
            None => unreachable!("a connection is taken out where it is given away"),
        }
    }
}

impl Deref for PooledConnection {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        match self.held() {
            Held::Pooled(object) => object,
            Held::Spare(spare) => spare.client(),
        }
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        if let Some(Held::Pooled(object)) = self.held.take() {
            drop(Object::take(object));
        }
    }
}
