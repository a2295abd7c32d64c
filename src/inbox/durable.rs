//! An inbox that outlives its process.

#![allow(dead_code)] // until the engines and workers stand

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::engine::Engine;
use super::entry::Entry;
use super::sink::{Accepted, Sink};
use crate::dedupe::StoreFuture;
use crate::delivery::Delivery;

/// Deliveries that are accepted, and not all handled yet.
#[derive(Clone)]
pub struct Inbox {
    pub(crate) engine: Arc<dyn Engine>,
}

impl Sink for Inbox {
    fn accept<'a>(&'a self, delivery: &'a Delivery, retain: Duration) -> StoreFuture<'a, Accepted> {
        self.engine.accept(Entry::of(delivery), retain)
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Inbox").field(&self.engine).finish()
    }
}
