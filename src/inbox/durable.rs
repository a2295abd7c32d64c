//! An inbox that outlives its process.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::engine::Engine;
use super::entry::Entry;
use super::sink::{Accepted, Sink};
use super::sqlite::InboxOptions;
use crate::dedupe::StoreFuture;
use crate::delivery::Delivery;
use crate::error::InboxError;

/// Deliveries that are accepted, and not all handled yet.
#[derive(Clone)]
pub struct Inbox {
    pub(crate) engine: Arc<dyn Engine>,
}

impl Inbox {
    /// Opens the inbox in this file, and makes the file where there is none; [`InboxOptions`] has what can be set.
    ///
    /// # Errors
    /// What is accepted could not be kept there, or the file is not this crate's: see [`InboxErrorKind`](crate::InboxErrorKind).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, InboxError> {
        InboxOptions::default().open(path)
    }

    /// Waits until all that was asked is answered and the file is closed. Dropping the last clone closes it too, in the background.
    ///
    /// Waits for other clones as well, such as those of workers and acceptors: shut them down before.
    pub async fn close(self) {
        let end = self.engine.end();
        drop(self);
        end.await;
    }
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
