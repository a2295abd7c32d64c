//! What only the layer can keep: deadlines, which need timers, and hooks, which need somebody who answers.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::budget::BodyBudget;
use super::hooks::{Answer, DeadLettered, Failed, HookError, Hooks, Settled};
use super::metrics::Metrics;
use super::record::Recording;
use super::response::OwnAnswer;
use super::waiting::WaitingRoom;
#[cfg(feature = "tracing")]
use super::warnings::Warnings;
use crate::dedupe::RetrySchedule;
use crate::error::BuildError;
use crate::receiver::{ReceiverBuilder, in_range};

/// With no more than this left of the budget after the body, no run is begun: its answer could not be heard.
pub(super) const LEAST_TO_BEGIN: Duration = Duration::from_millis(100);

/// The settings of the layer, held by the receiver that it is made from.
pub(crate) struct LayerSettings {
    pub(super) budget: Duration,
    pub(super) body_deadline: Duration,
    pub(super) bodies: BodyBudget,
    pub(super) run_limit: Duration,
    pub(super) waiting: Arc<WaitingRoom>,
    pub(super) hooks: Hooks,
    #[cfg_attr(not(feature = "metrics"), allow(dead_code))] // nothing in there without it
    pub(super) metrics: Metrics,
    #[cfg_attr(not(feature = "testing"), allow(dead_code))] // as above
    pub(super) recording: Recording,
    #[cfg(feature = "tracing")]
    pub(super) warnings: Warnings,
}

impl Default for LayerSettings {
    fn default() -> Self {
        Self {
            budget: Duration::from_millis(4_500),
            body_deadline: Duration::from_secs(2),
            bodies: BodyBudget::new(64 << 20),
            run_limit: Duration::from_secs(600),
            waiting: Arc::new(WaitingRoom::new(64, 4)),
            hooks: Hooks::default(),
            metrics: Metrics::default(),
            recording: Recording::default(),
            #[cfg(feature = "tracing")]
            warnings: Warnings::default(),
        }
    }
}

impl LayerSettings {
    pub(crate) fn check(
        &self,
        schedule: &RetrySchedule,
        max_body: usize,
    ) -> Result<(), BuildError> {
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

/// Settings of the layer (feature `tower`).
impl ReceiverBuilder {
    /// Calls `hook` once a delivery, when its answer is known. A panic in it harms nothing.
    pub fn on_answer(mut self, hook: impl Fn(&Answer) + Send + Sync + 'static) -> Self {
        self.layer.hooks.answer = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` once a run, at its end. Differs from [`on_answer`](Self::on_answer) for runs that outlive their
    /// request. A panic in it harms nothing.
    pub fn on_settled(mut self, hook: impl Fn(&Settled) + Send + Sync + 'static) -> Self {
        self.layer.hooks.settled = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` for each authentic delivery that came to nothing, with its raw bytes, the reason and the probable
    /// number of the attempt: what would have been the last one before the sender discards the event must not go
    /// unseen, also where the sender hung up while the store was asked for the claim. A panic in it harms nothing.
    pub fn on_failed(mut self, hook: impl Fn(&Failed) + Send + Sync + 'static) -> Self {
        self.layer.hooks.failed = Some(Arc::new(hook));
        self
    }

    /// Awaits `hook` with each delivery that the handler gave up on with `DeadLetter`. The delivery is answered 200 and
    /// committed once the hook has succeeded; 500 and released where it fails.
    pub fn on_dead_letter<F>(
        mut self,
        hook: impl Fn(DeadLettered) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), HookError>> + Send + 'static,
    {
        self.layer.hooks.dead_letter = Some(Arc::new(move |letter| Box::pin(hook(letter))));
        self
    }

    /// The time within which a request is answered, counted from the layer's `call`: look-up, body, claim, waiting and
    /// handler.
    /// Default: 4.5 s, since the sender gives up at 5 s. More than 100 ms, and no more than the sender waits.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.layer.budget = budget;
        self
    }

    /// The time within which a body must have arrived, counted from the layer's `call`, or from the end of the look-up where
    /// the subscription's keys had to be looked up. Default: 2 s. Never longer than what is left of the budget, whatever is
    /// set.
    pub fn body_deadline(mut self, deadline: Duration) -> Self {
        self.layer.body_deadline = deadline;
        self
    }

    /// The most bytes that all bodies together hold while they arrive. Default: 64 MiB. A quarter of it is for bodies of up to 64 KiB
    /// alone. At least a third more than [`max_body`](Self::max_body) where that is more than 64 KiB, and never less than it.
    ///
    /// Where the next bytes of a body would exceed it, the largest body under way is answered 503 with `Retry-After`, and what it held is
    /// freed. A body that arrives in one piece, as small ones do, takes nothing of it; one that is whole and verified has given its part back.
    /// What is counted is the memory of the buffers, at most twice the bytes that have arrived, and no length that was announced. What a
    /// server buffers itself, such as the windows of HTTP/2, is its own to bound.
    pub fn body_budget(mut self, bytes: usize) -> Self {
        self.layer.bodies = BodyBudget::new(bytes);
        self
    }

    /// The time after which a run is aborted and released. Default: 10 min. At most 30 days.
    pub fn run_limit(mut self, limit: Duration) -> Self {
        self.layer.run_limit = limit;
        self
    }

    /// Shapes the answers that are the receiver's own, in place of the service's error envelope.
    pub fn with_answers(
        mut self,
        shape: impl Fn(&OwnAnswer) -> http::Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        self.layer.hooks.shape = Some(Arc::new(shape));
        self
    }

    /// The most copies that wait for a running one, in all and for one event. Beyond it: 503. Default: 64 and 4. With 0, a
    /// copy never waits.
    pub fn max_waiting(mut self, in_all: usize, for_one_event: usize) -> Self {
        self.layer.waiting = Arc::new(WaitingRoom::new(in_all, for_one_event));
        self
    }
}
