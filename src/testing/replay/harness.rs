//! What an app under replay is made with.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tower_layer::Layer;

use super::clock::ReplayClock;
use super::fault_layer::{FaultLayer, FaultService};
use super::ledger::Ledger;
use super::life::Life;
use super::probe::ProbedStore;
use crate::dedupe::DedupeStore;
use crate::error::{ReplayError, ReplayErrorKind as Kind};
use crate::layer::{WebhookLayer, WebhookService};
use crate::receiver::{Receiver, ReceiverBuilder};
use crate::verify::{Keys, Window};

/// Brings the replay into your app: clock, keys, the probe that sees commits, and the faults. Each process of a replay, so each call of
/// the closure, gets one of its own.
#[derive(Clone)]
pub struct Harness(pub(super) Arc<Process>);

/// A process of the replay.
pub(super) struct Process {
    /// 0 for the first.
    pub(super) number: u32,
    pub(super) clock: ReplayClock,
    pub(super) keys: Keys,
    pub(super) ledger: Arc<Ledger>,
    pub(super) life: Life,
    pub(super) has_fault_layer: AtomicBool,
    receivers: Mutex<Vec<Receiver>>,
}

impl Harness {
    pub(super) fn new(number: u32, clock: ReplayClock, keys: Keys, ledger: Arc<Ledger>) -> Self {
        Self(Arc::new(Process {
            number,
            clock,
            keys,
            ledger,
            life: Life::default(),
            has_fault_layer: AtomicBool::new(false),
            receivers: Mutex::default(),
        }))
    }

    /// Guards a route with a receiver of these settings, and puts the faults between it and the handler. In the place of
    /// `receiver.layer()`.
    ///
    /// Clock and keys are the replay's, whatever was set; the store is yours, behind the probe; everything else is as you set it, the
    /// hooks included.
    ///
    /// # Errors
    /// `NoDeduplication`, and `Settings` where the receiver can't be built so.
    pub fn layer(&self, settings: ReceiverBuilder) -> Result<HarnessLayer, ReplayError> {
        Ok(HarnessLayer {
            gate: self.receiver(settings)?.layer(),
            faults: self.faults(),
        })
    }

    /// The receiver alone, for an app that takes one and so is the very one that runs in production. Faults of the handler then need
    /// [`faults`](Self::faults) before it; without them, runs that the store is never asked about go unseen.
    ///
    /// # Errors
    /// As [`layer`](Self::layer).
    pub fn receiver(&self, mut settings: ReceiverBuilder) -> Result<Receiver, ReplayError> {
        let probe = |inner| -> Arc<dyn DedupeStore> {
            Arc::new(ProbedStore {
                inner,
                process: Arc::clone(&self.0),
            })
        };
        if !settings.wrap_store(probe) {
            return Err(ReplayError::new(Kind::NoDeduplication));
        }
        let life = self.0.life.clone();
        let receiver = settings
            .clock(self.0.clock.clone())
            .with_keys_replaced(self.0.keys.clone())
            .tell_only_if(move || !life.is_over())
            .build()
            .map_err(|error| ReplayError::new(Kind::Settings).caused_by(error))?;
        self.0.receivers().push(receiver.clone());
        Ok(receiver)
    }

    /// The layer of faults alone, to stand directly before the handler, inside the receiver's own.
    #[must_use]
    pub fn faults(&self) -> FaultLayer {
        FaultLayer(Arc::clone(&self.0))
    }

    /// The time of the replay, for the app's stores.
    #[must_use]
    pub fn clock(&self) -> ReplayClock {
        self.0.clock.clone()
    }

    /// Which process of the replay this is: 0 for the first, one more with each restart.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.0.number
    }
}

impl Process {
    pub(super) fn stands_before_a_handler(&self) -> bool {
        self.has_fault_layer.load(Ordering::SeqCst)
    }

    /// The window of its receiver; `None` where the closure has asked for none.
    pub(super) fn window(&self) -> Option<Window> {
        self.receivers().first().map(Receiver::window)
    }

    /// Waits until every run has ended by itself.
    pub(super) async fn comes_to_rest(&self) {
        let receivers = self.receivers().clone();
        for receiver in receivers {
            receiver.drain(Duration::MAX).await;
        }
    }

    /// Ends as a process does that is killed: nothing of it reaches a store, a hook or the handler any more.
    pub(super) async fn is_killed(&self) {
        self.life.end();
        let receivers = self.receivers().clone();
        for receiver in receivers {
            // Runs that have left their requests are told to end, which drops the handler's future; what they then tell the store
            // is not passed on.
            receiver.drain(Duration::ZERO).await;
        }
    }

    fn receivers(&self) -> std::sync::MutexGuard<'_, Vec<Receiver>> {
        self.receivers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness")
            .field("process", &self.0.number)
            .field("clock", &self.0.clock)
            .finish_non_exhaustive()
    }
}

/// The receiver's gate outside, the faults inside; made by [`Harness::layer`].
#[derive(Clone, Debug)]
pub struct HarnessLayer {
    gate: WebhookLayer,
    faults: FaultLayer,
}

impl<S> Layer<S> for HarnessLayer {
    type Service = WebhookService<FaultService<S>>;

    fn layer(&self, inner: S) -> Self::Service {
        self.gate.layer(self.faults.layer(inner))
    }
}
