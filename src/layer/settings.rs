//! The settings that need the layer: deadlines, which need timers, and hooks, which need an answer.

use std::sync::Arc;
use std::time::Duration;

use http::Request;

use super::body::VerifiedBody;
use super::budget::BodyBudget;
use super::drain::ShutdownSignal;
use super::marks::DeadLetterHook;
use super::response::Shape;
use super::waiting::WaitingCopies;
use crate::config::ConfigError;
use crate::dedupe::RetrySchedule;
use crate::observe::Observers;
use crate::walk::Delivery;
use crate::walk::in_range;

/// If no more than this is left of the budget after the body, no run is begun: its answer would be too late.
pub(super) const LEAST_TO_BEGIN: Duration = Duration::from_millis(100);

/// The settings of the layer. A guard holds them.
pub(crate) struct LayerSettings {
    pub(crate) budget: Duration,
    pub(crate) body_deadline: Duration,
    pub(crate) bodies: BodyBudget,
    pub(crate) run_limit: Duration,
    pub(crate) waiting: Arc<WaitingCopies>,
    /// Called with the request before the handler gets it.
    pub(crate) prepare: Option<fn(&mut Request<VerifiedBody>, &Delivery)>,
    /// Shared with the gate, which tells it the end of the last run.
    pub(crate) shutdown: Arc<ShutdownSignal>,
    pub(crate) dead_letter: Option<Arc<DeadLetterHook>>,
    pub(crate) shape: Option<Arc<Shape>>,
    pub(crate) observers: Observers,
}

impl Default for LayerSettings {
    fn default() -> Self {
        Self {
            budget: Duration::from_millis(4_500),
            body_deadline: Duration::from_secs(2),
            bodies: BodyBudget::new(64 << 20),
            run_limit: Duration::from_secs(600),
            waiting: Arc::new(WaitingCopies::new(64, 4)),
            prepare: None,
            shutdown: Arc::default(),
            dead_letter: None,
            shape: None,
            observers: Observers::default(),
        }
    }
}

impl LayerSettings {
    pub(crate) fn check(
        &self,
        schedule: &RetrySchedule,
        max_body: usize,
    ) -> Result<(), ConfigError> {
        self.bodies.check(max_body)?;
        in_range(
            "budget",
            self.budget,
            LEAST_TO_BEGIN,
            schedule.attempt_timeout(),
        )?;
        in_range(
            "body_deadline",
            self.body_deadline,
            Duration::ZERO,
            Duration::MAX,
        )?;
        in_range("run_limit", self.run_limit, Duration::ZERO, Duration::MAX)
    }
}
