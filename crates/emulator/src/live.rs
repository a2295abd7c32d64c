//! Tells the page, and every other listener, about each change.

use std::sync::Arc;

use serde::Serialize;
use tokio::sync::broadcast;

/// Changes that a slow listener may be behind by. It misses the older ones, and reads everything
/// anew.
const BEHIND: usize = 1_024;

/// The longest change that is told whole, so that slow listeners keep a bounded part of memory: in
/// place of a longer one they hear that they missed something, and read it anew.
const LONGEST: usize = 32 << 10;

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
        if !self.is_heard() {
            return;
        }
        if let Ok(json) = serde_json::to_string(&data) {
            let (kind, data) = if json.len() > LONGEST {
                ("missed", "null".into())
            } else {
                (kind, json.into())
            };
            let _ = self.0.send(Told { kind, data });
        }
    }

    /// Returns whether there is a listener.
    pub(crate) fn is_heard(&self) -> bool {
        self.0.receiver_count() > 0
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Told> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row may hold megabytes, and a thousand changes wait for a page that does not read.
    // fault F37: a page that does not read keeps a thousand deliveries of megabytes in the emulator's memory
    #[test]
    fn a_long_change_is_told_as_missed() {
        let live = Live::new();
        let mut told = live.listen();
        live.tell("delivery", "x".repeat(LONGEST - 2));
        live.tell("delivery", "x".repeat(LONGEST));
        let whole = told.try_recv().unwrap();
        assert_eq!((whole.kind, whole.data.len()), ("delivery", LONGEST));
        let long = told.try_recv().unwrap();
        assert_eq!((long.kind, &*long.data), ("missed", "null"));
    }
}
