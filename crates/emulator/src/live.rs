//! Tells the page, and every other listener, about each change.

use std::sync::Arc;

use serde::Serialize;
use tokio::sync::broadcast;

/// Changes that a slow listener may be behind by. It misses the older ones, and reads everything anew.
const BEHIND: usize = 1_024;

/// One change: its kind and its data as JSON.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) kind: &'static str,
    pub(crate) data: Arc<str>,
}

/// Tells changes to all listeners. Clones share the listeners.
#[derive(Clone, Debug)]
pub(crate) struct Live(broadcast::Sender<Told>);

impl Live {
    pub(crate) fn new() -> Self {
        Self(broadcast::channel(BEHIND).0)
    }

    /// Tells a change. Without listeners, nothing is written as JSON. Never waits.
    pub(crate) fn tell(&self, kind: &'static str, data: impl Serialize) {
        if self.0.receiver_count() == 0 {
            return;
        }
        if let Ok(json) = serde_json::to_string(&data) {
            let data = json.into();
            let _ = self.0.send(Told { kind, data });
        }
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Told> {
        self.0.subscribe()
    }
}
