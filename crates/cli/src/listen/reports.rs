//! A queue from the receiver to the display: never waits, and counts the reports that did not fit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hookgate::record::LoggedDelivery;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The number of reports that may wait to be shown.
const MOST_WAITING: usize = 1_024;

#[derive(Clone, Debug)]
pub(crate) struct Reports {
    sender: Sender<LoggedDelivery>,
    missed: Arc<AtomicU64>,
}

/// The number of deliveries that were answered without being shown.
#[derive(Clone, Debug)]
pub(crate) struct Missed(Arc<AtomicU64>);

impl Reports {
    pub(crate) fn new() -> (Self, Receiver<LoggedDelivery>, Missed) {
        let (sender, receiver) = channel(MOST_WAITING);
        let missed = Arc::new(AtomicU64::new(0));
        let reports = Self {
            sender,
            missed: Arc::clone(&missed),
        };
        (reports, receiver, Missed(missed))
    }

    /// Called on the thread that answers, so it does not wait for a screen or a pipe.
    pub(crate) fn tell(&self, delivery: LoggedDelivery) {
        if self.sender.try_send(delivery).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Missed {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::item::tests::handled;
    use super::*;

    #[test]
    fn nobody_waits_for_who_shows_it() {
        let (reports, mut receiver, missed) = Reports::new();
        (0..MOST_WAITING + 3).for_each(|_| reports.tell(handled("evt_1")));
        assert_eq!(missed.count(), 3);
        assert!(receiver.try_recv().is_ok());
        reports.tell(handled("evt_1"));
        assert_eq!(missed.count(), 3);
    }
}
