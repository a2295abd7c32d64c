//! A process of a replay: its parts end together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hookgate::{Receiver, lookup::Keys, verify::Window};

use super::clock::ReplayClock;
use super::end_signal::EndSignal;
use super::observations::Observations;

/// A process of the replay.
pub(super) struct Process {
    /// The number of the process: 0 for the first.
    pub(super) number: u32,
    pub(super) clock: ReplayClock,
    pub(super) keys: Keys,
    pub(super) observations: Arc<Observations>,
    pub(super) end_signal: EndSignal,
    pub(super) has_fault_layer: AtomicBool,
    receivers: Mutex<Vec<Receiver>>,
}

impl Process {
    pub(super) fn new(
        number: u32,
        clock: ReplayClock,
        keys: Keys,
        observations: Arc<Observations>,
    ) -> Self {
        Self {
            number,
            clock,
            keys,
            observations,
            end_signal: EndSignal::default(),
            has_fault_layer: AtomicBool::new(false),
            receivers: Mutex::default(),
        }
    }

    pub(super) fn has_fault_layer(&self) -> bool {
        self.has_fault_layer.load(Ordering::SeqCst)
    }

    /// Returns the window of its receiver; `None` where the closure has made no receiver.
    pub(super) fn window(&self) -> Option<Window> {
        self.receivers().first().map(Receiver::window)
    }

    /// Waits until every run has ended by itself.
    pub(super) async fn wait_for_runs(&self) {
        let receivers = self.receivers().clone();
        for receiver in receivers {
            receiver.drain(Duration::MAX).await;
        }
    }

    /// Ends like a killed process: none of its calls reaches a store, a hook or the handler any more.
    pub(super) async fn kill(&self) {
        self.end_signal.end();
        let receivers = self.receivers().clone();
        for receiver in receivers {
            // Runs that have left their requests get the signal to end, which drops the handler's future. Their later calls to
            // the store are not passed on.
            receiver.drain(Duration::ZERO).await;
        }
    }

    pub(super) fn receivers(&self) -> MutexGuard<'_, Vec<Receiver>> {
        self.receivers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
