//! The parts that a replay gives to the app.

use std::fmt;
use std::sync::Arc;

use hookgate::layer::WebhookService;
use hookgate::{Receiver, ReceiverBuilder, WebhookLayer, lookup::Keys};
use tower_layer::Layer;

use super::clock::ReplayClock;
use super::fault_layer::{FaultLayer, FaultService};
use super::observations::Observations;
use super::probe::ProbedStore;
use super::process::Process;
use super::{ReplayError, ReplayErrorKind as Kind};

/// Connects your app to the replay: clock, keys, the probe that sees commits, and the faults. Each process of a replay, and so
/// each call of the closure, gets its own harness.
#[derive(Clone)]
pub struct Harness(pub(super) Arc<Process>);

impl Harness {
    pub(super) fn new(
        number: u32,
        clock: ReplayClock,
        keys: Keys,
        observations: Arc<Observations>,
    ) -> Self {
        Self(Arc::new(Process::new(number, clock, keys, observations)))
    }

    /// Guards a route with a receiver of these settings, and puts the faults between it and the handler. Use it in place of
    /// `receiver.layer()`.
    ///
    /// Clock and keys are those of the replay, even if the settings have others. The store is yours, behind the probe. All other
    /// settings are as you set them, the hooks included.
    ///
    /// # Errors
    /// `NoDeduplication`, and `Settings` where the receiver can't be built so.
    pub fn layer(&self, settings: ReceiverBuilder) -> Result<HarnessLayer, ReplayError> {
        Ok(HarnessLayer {
            gate: self.receiver(settings)?.layer(),
            faults: self.faults(),
        })
    }

    /// Returns the receiver alone, for an app that takes a receiver and so can be the same app as in production. Faults of the
    /// handler then need [`faults`](Self::faults) before it. Without them, runs for which the store is never called are not
    /// seen.
    ///
    /// # Errors
    /// As [`layer`](Self::layer).
    pub fn receiver(&self, settings: ReceiverBuilder) -> Result<Receiver, ReplayError> {
        let mut has_store = false;
        let end_signal = self.0.end_signal.clone();
        let receiver = settings
            .clock(self.0.clock.clone())
            .for_replay(
                self.0.keys.clone(),
                |inner| {
                    has_store = true;
                    Arc::new(ProbedStore {
                        inner,
                        process: Arc::clone(&self.0),
                    })
                },
                move || !end_signal.has_ended(),
            )
            .build()
            .map_err(|error| ReplayError::new(Kind::Settings).caused_by(error))?;
        if !has_store {
            return Err(ReplayError::new(Kind::NoDeduplication));
        }
        self.0.receivers().push(receiver.clone());
        Ok(receiver)
    }

    /// Returns the layer of faults alone. It must stand directly before the handler, inside the receiver's own layer.
    #[must_use]
    pub fn faults(&self) -> FaultLayer {
        FaultLayer(Arc::clone(&self.0))
    }

    /// Returns the clock of the replay, for the app's stores.
    #[must_use]
    pub fn clock(&self) -> ReplayClock {
        self.0.clock.clone()
    }

    /// Returns the number of this process in the replay: 0 for the first, one more with each restart.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.0.number
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
