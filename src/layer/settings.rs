//! The settings that need the layer: deadlines, which need timers, and hooks, which need an answer.

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
use crate::receiver::{ReceiverBuilder, in_range};
use crate::walk::BuildError;

/// If no more than this is left of the budget after the body, no run is begun: its answer would be too late.
pub(super) const LEAST_TO_BEGIN: Duration = Duration::from_millis(100);

/// The settings of the layer. The receiver from which the layer is made holds them.
pub(crate) struct LayerSettings {
    pub(super) budget: Duration,
    pub(super) body_deadline: Duration,
    pub(super) bodies: BodyBudget,
    pub(super) run_limit: Duration,
    pub(super) waiting: Arc<WaitingRoom>,
    pub(super) hooks: Hooks,
    #[cfg_attr(not(feature = "metrics"), allow(dead_code))] // empty without it
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
    /// Calls `hook` once for each delivery, when its answer is known. A panic in it does no harm.
    pub fn on_answer(mut self, hook: impl Fn(&Answer) + Send + Sync + 'static) -> Self {
        self.layer.hooks.answer = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` once for each run, at its end. It differs from [`on_answer`](Self::on_answer) for runs that outlive their
    /// request. A panic in it does no harm.
    pub fn on_settled(mut self, hook: impl Fn(&Settled) + Send + Sync + 'static) -> Self {
        self.layer.hooks.settled = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` for each authentic delivery that was not handled, with its raw bytes, the reason and the probable number of
    /// the attempt. So the operator can see an attempt that may be the last before the sender discards the event. The hook is
    /// also called if the sender hung up while the store was asked for the claim. A panic in it does no harm.
    pub fn on_failed(mut self, hook: impl Fn(&Failed) + Send + Sync + 'static) -> Self {
        self.layer.hooks.failed = Some(Arc::new(hook));
        self
    }

    /// Awaits `hook` with each delivery that the handler answered with `DeadLetter`. If the hook succeeds, the delivery is
    /// answered 200 and committed; if it fails, 500 and released.
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

    /// Sets the time within which a request is answered, counted from the layer's `call`: look-up, body, claim, waiting and
    /// handler. Default: 4.5 s, because the sender gives up at 5 s. More than 100 ms, and not longer than the sender waits.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.layer.budget = budget;
        self
    }

    /// Sets the time within which a body must have arrived, counted from the layer's `call`, or from the end of the look-up if
    /// the subscription's keys had to be looked up. Default: 2 s. It is never longer than the rest of the budget.
    pub fn body_deadline(mut self, deadline: Duration) -> Self {
        self.layer.body_deadline = deadline;
        self
    }

    /// Sets the most bytes that all bodies together hold while they arrive. Default: 64 MiB. A quarter of it is only for bodies
    /// of up to 64 KiB. It must be at least a third more than [`max_body`](Self::max_body) if that is more than 64 KiB, and
    /// never less than it.
    ///
    /// If the next bytes of a body would exceed it, the largest body under way is answered 503 with `Retry-After`, and its
    /// buffer is freed; of several of the largest size, the oldest. A body that arrives in one piece, as small ones do, takes no part of it; a body that is complete and
    /// verified has given its part back. The budget counts the memory of the buffers, at most twice the bytes that have
    /// arrived, and never an announced length. It does not limit the server's own buffers, such as the windows of HTTP/2.
    pub fn body_budget(mut self, bytes: usize) -> Self {
        self.layer.bodies = BodyBudget::new(bytes);
        self
    }

    /// Sets the time after which a run is aborted and released. Default: 10 min. At most 30 days.
    pub fn run_limit(mut self, limit: Duration) -> Self {
        self.layer.run_limit = limit;
        self
    }

    /// Shapes the answers that the receiver makes itself, in place of the service's error envelope.
    pub fn with_answers(
        mut self,
        shape: impl Fn(&OwnAnswer) -> http::Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        self.layer.hooks.shape = Some(Arc::new(shape));
        self
    }

    /// Sets the most copies that wait for a running copy, in all and for one event. Further copies are answered 503. Default:
    /// 64 and 4. With 0, a copy never waits.
    pub fn max_waiting(mut self, in_all: usize, for_one_event: usize) -> Self {
        self.layer.waiting = Arc::new(WaitingRoom::new(in_all, for_one_event));
        self
    }
}
