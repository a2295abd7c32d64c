//! The settings of a receiver, checked against each other.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::{Gate, Receiver, Shared, Times};
use crate::clock::{Clock, SystemClock};
use crate::dedupe::{DedupeStore, RetrySchedule};
use crate::error::{BuildError, BuildErrorKind as Kind, KeysError};
use crate::hooks::{Answer, DeadLettered, Failed, HookError, Hooks, Settled};
use crate::verify::{KeyRing, Keys, Secret, Verifier, Window};

/// What to do with a delivery whose unsigned headers name another event than its signed body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderMismatch {
    /// Answer 400. Someone changed a header on the way, or the sender is broken.
    #[default]
    Refuse,
    /// Go by the signed body and ignore the headers, for a proxy that rewrites them.
    Ignore,
}

/// The settings of a [`Receiver`].
///
/// ```
/// use std::time::Duration;
/// use hookgate::{KeyRing, LocalStore, Receiver, Secret, Window};
///
/// let receiver = Receiver::builder()
///     .secrets(
///         KeyRing::named("2026-11", Secret::new("whsec_made_up_new_secret")?)?
///             .with_key("2026-05", Secret::new("whsec_made_up_old_secret")?)?,
///     )
///     .store(LocalStore::default())
///     .window(Window::default().with_ahead(Duration::from_secs(30)))
///     .max_body(256 * 1024)
///     .build()?;
/// # let _ = receiver;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct ReceiverBuilder {
    keys: Option<Result<Keys, KeysError>>,
    store: Option<Dedupe>,
    window: Window,
    clock: Arc<dyn Clock>,
    max_body: usize,
    header_mismatch: HeaderMismatch,
    schedule: RetrySchedule,
    lease: Duration,
    retention: Duration,
    max_runs: usize,
    max_waiting: usize,
    max_waiting_per_event: usize,
    budget: Duration,
    body_deadline: Duration,
    run_limit: Duration,
    hooks: Hooks,
}

enum Dedupe {
    By(Arc<dyn DedupeStore>),
    Without,
}

impl Default for ReceiverBuilder {
    fn default() -> Self {
        Self {
            keys: None,
            store: None,
            window: Window::default(),
            clock: Arc::new(SystemClock),
            max_body: 1 << 20,
            header_mismatch: HeaderMismatch::default(),
            schedule: RetrySchedule::default(),
            lease: Duration::from_secs(30),
            retention: Duration::from_secs(48 * 3_600),
            max_runs: 1_024,
            max_waiting: 64,
            max_waiting_per_event: 4,
            budget: Duration::from_millis(4_500),
            body_deadline: Duration::from_secs(2),
            run_limit: Duration::from_secs(600),
            hooks: Hooks::default(),
        }
    }
}

impl ReceiverBuilder {
    /// One secret for every delivery.
    pub fn secret(self, secret: Secret) -> Self {
        self.secrets(KeyRing::new(secret))
    }

    /// One ring of secrets for every delivery.
    pub fn secrets(self, ring: KeyRing) -> Self {
        self.keys(Keys::single(ring))
    }

    /// A ring for each subscription id; see [`Keys::by_subscription`].
    pub fn subscriptions<I, R>(mut self, rings: impl IntoIterator<Item = (I, R)>) -> Self
    where
        I: AsRef<str>,
        R: Into<KeyRing>,
    {
        self.keys = Some(Keys::by_subscription(rings));
        self
    }

    /// Keys that are shared with something else, such as a second receiver.
    pub fn keys(mut self, keys: Keys) -> Self {
        self.keys = Some(Ok(keys));
        self
    }

    /// Where claims and handled events are remembered.
    pub fn store(mut self, store: impl DedupeStore) -> Self {
        self.store = Some(Dedupe::By(Arc::new(store)));
        self
    }

    /// Remembers nothing: **every** authentic copy of an event runs the handler.
    ///
    /// The service delivers an event more than once (service specification, *Delivery and retry*, rule 1), and whoever has
    /// copied a delivery can replay it within the window. Right only where the handler deduplicates on the event's id itself.
    pub fn without_deduplication(mut self) -> Self {
        self.store = Some(Dedupe::Without);
        self
    }

    /// The ages that are accepted. Default: 300 s old, 300 s ahead.
    pub fn window(mut self, window: Window) -> Self {
        self.window = window;
        self
    }

    /// What time it is. Default: [`SystemClock`].
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The most bytes of a body; exactly that many are accepted. Default: 1 MiB.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// What to do where the unsigned headers name another event than the signed body. Default: refuse.
    pub fn header_mismatch(mut self, policy: HeaderMismatch) -> Self {
        self.header_mismatch = policy;
        self
    }

    /// The sender's waits between attempts. Default: the service's.
    pub fn schedule(mut self, schedule: RetrySchedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// How long a claim holds without renewal, and so how long an event stays blocked whose process died. Default: 30 s,
    /// below the first retry at 1 min. Renewed at a third.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long a handled event is remembered, from its commit. Default: 48 h.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = retention;
        self
    }

    /// The most runs under way at a time. Beyond it: 503. Default: 1,024.
    pub fn max_runs(mut self, runs: usize) -> Self {
        self.max_runs = runs;
        self
    }

    /// The most copies that wait for a running one, in all and for one event. Beyond it: 503. Default: 64 and 4.
    pub fn max_waiting(mut self, in_all: usize, for_one_event: usize) -> Self {
        self.max_waiting = in_all;
        self.max_waiting_per_event = for_one_event;
        self
    }

    /// Calls `hook` once a delivery, when its answer is known. A panic in it harms nothing.
    pub fn on_answer(mut self, hook: impl Fn(&Answer) + Send + Sync + 'static) -> Self {
        self.hooks.answer = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` once a run, at its end. Differs from [`on_answer`](Self::on_answer) for runs that outlive their
    /// request. A panic in it harms nothing.
    pub fn on_settled(mut self, hook: impl Fn(&Settled) + Send + Sync + 'static) -> Self {
        self.hooks.settled = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` for each authentic delivery that came to nothing, with its raw bytes, the reason and the probable
    /// number of the attempt: what would have been the last one before the sender discards the event must not go
    /// unseen. A panic in it harms nothing.
    pub fn on_failed(mut self, hook: impl Fn(&Failed) + Send + Sync + 'static) -> Self {
        self.hooks.failed = Some(Arc::new(hook));
        self
    }

    /// Awaits `hook` with each delivery that the handler gave up on with `DeadLetter`. The delivery is answered 200 and
    /// committed once the hook has succeeded; 500 and released where it fails.
    pub fn dead_letters<F>(
        mut self,
        hook: impl Fn(DeadLettered) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), HookError>> + Send + 'static,
    {
        self.hooks.dead_letter = Some(Arc::new(move |letter| Box::pin(hook(letter))));
        self
    }

    /// The time within which a request is answered, counted from the layer's `call`: body, claim, waiting and handler.
    /// Default: 4.5 s, since the sender gives up at 5 s.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = budget;
        self
    }

    /// The time within which a body must have arrived. Default: 2 s.
    pub fn body_deadline(mut self, deadline: Duration) -> Self {
        self.body_deadline = deadline;
        self
    }

    /// The time after which a run is aborted and released. Default: 10 min.
    pub fn run_limit(mut self, limit: Duration) -> Self {
        self.run_limit = limit;
        self
    }

    /// Shapes the answers that are the receiver's own, in place of the service's error envelope.
    #[cfg(feature = "tower")]
    pub fn answers(
        mut self,
        shape: impl Fn(&crate::layer::OwnAnswer) -> http::Response<bytes::Bytes> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.shape = Some(Arc::new(shape));
        self
    }

    /// Checks the settings against each other.
    ///
    /// # Errors
    /// No secret; neither a store nor [`without_deduplication`](Self::without_deduplication); a retention that does not
    /// cover the retry schedule, 5 s an attempt and both limits of the window; a lease, budget or limit out of its range. See
    /// [`BuildErrorKind`](crate::BuildErrorKind).
    pub fn build(self) -> Result<Receiver, BuildError> {
        let keys = self.keys.ok_or_else(|| BuildError::new(Kind::NoSecret))?;
        let keys = keys.map_err(|error| BuildError::new(Kind::Keys).caused_by(error))?;
        let store = match self.store.ok_or_else(|| BuildError::new(Kind::NoStore))? {
            Dedupe::By(store) => Some(store),
            Dedupe::Without => None,
        };
        let needed = self.schedule.minimum_retention(&self.window);
        if store.is_some() && self.retention < needed {
            return Err(BuildError::new(Kind::RetentionTooShort {
                needed,
                given: self.retention,
            }));
        }
        let out_of_range = [
            (
                "lease",
                self.lease,
                self.schedule.first_wait().unwrap_or(Duration::MAX),
            ),
            ("budget", self.budget, self.schedule.attempt_timeout()),
            ("body_deadline", self.body_deadline, self.budget),
            ("run_limit", self.run_limit, Duration::MAX),
        ]
        .into_iter()
        .find(|(_, value, most)| value.is_zero() || value > most);
        if let Some((setting, _, most)) = out_of_range {
            return Err(BuildError::new(Kind::OutOfRange { setting, most }));
        }
        if self.max_runs == 0 {
            return Err(BuildError::new(Kind::NoRuns));
        }
        Ok(Receiver {
            shared: Arc::new(Shared {
                verifier: Verifier::new(keys).with_window(self.window),
                clock: self.clock,
                store,
                max_body: self.max_body,
                header_mismatch: self.header_mismatch,
                lease: self.lease,
                retention: self.retention,
                schedule: self.schedule,
                gate: Arc::new(Gate::new(
                    self.max_runs,
                    self.max_waiting,
                    self.max_waiting_per_event,
                )),
                hooks: self.hooks,
                times: Times {
                    budget: self.budget,
                    body_deadline: self.body_deadline,
                    run_limit: self.run_limit,
                    renew_every: self.lease / 3,
                },
                stale_checked_in: AtomicU64::new(0),
            }),
        })
    }
}

impl fmt::Debug for ReceiverBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiverBuilder")
            .field("keys", &self.keys)
            .field("window", &self.window)
            .field("retention", &self.retention)
            .field("lease", &self.lease)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}
