//! A queue from the receiver to the display: never waits, and counts the reports that did not fit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hookgate_record::LoggedDelivery;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The number of reports that may wait to be shown.
const MAX_WAITING: usize = 1_024;

#[derive(Clone, Debug)]
pub(crate) struct DisplayQueue {
    sender: Sender<LoggedDelivery>,
    dropped: Arc<AtomicU64>,
}

impl DisplayQueue {
    /// Returns also the number of deliveries that were answered without being shown.
    pub(crate) fn new() -> (Self, Receiver<LoggedDelivery>, Arc<AtomicU64>) {
        let (sender, receiver) = channel(MAX_WAITING);
        let dropped = Arc::new(AtomicU64::new(0));
        let queue = Self {
            sender,
            dropped: Arc::clone(&dropped),
        };
        (queue, receiver, dropped)
    }

    /// Called on the thread that answers, so it does not wait for a screen or a pipe.
    pub(crate) fn push(&self, delivery: LoggedDelivery) {
        if self.sender.try_send(delivery).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::item::tests::handled;
    use super::*;

    #[test]
    fn a_full_queue_drops_and_counts_without_waiting() {
        let (queue, mut receiver, dropped) = DisplayQueue::new();
        (0..MAX_WAITING + 3).for_each(|_| queue.push(handled("evt_1")));
        assert_eq!(dropped.load(Ordering::Relaxed), 3);
        assert!(receiver.try_recv().is_ok());
        queue.push(handled("evt_1"));
        assert_eq!(dropped.load(Ordering::Relaxed), 3);
    }
}
