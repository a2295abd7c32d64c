//! The settings of a receiver, checked against each other.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "tower")]
use super::accepting::NoClaims;
use super::{Gate, Receiver, Shared, Vitals};
use crate::clock::{Clock, SystemClock};
use crate::dedupe::{DedupeStore, RetrySchedule};
use crate::error::{BuildError, BuildErrorKind as Kind, KeysError};
#[cfg(feature = "tower")]
use crate::layer::LayerSettings;
use crate::lookup::{Capacities, Resolver, SecretProvider};
use crate::verify::{KeyRing, Keys, Secret, Verifier, Window};

/// What to do with a delivery whose unsigned headers name another event than its signed body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderMismatch {
    /// Answer 400. Someone changed a header on the way, or the sender is broken.
    #[default]
    Refuse,
    /// Go by the signed body and ignore the headers, for a proxy that rewrites them.
    ///
    /// # Security
    /// What decides is the signed body either way. But a changed header is the one trace that someone on the way has
    /// touched a delivery, and this gives it up.
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
    keys: Option<KeySource>,
    lookup_cache: Capacities,
    store: Option<Dedupe>,
    window: Window,
    clock: Arc<dyn Clock>,
    max_body: usize,
    header_mismatch: HeaderMismatch,
    schedule: RetrySchedule,
    lease: Duration,
    retention: Duration,
    max_runs: usize,
    /// What only the layer can keep: deadlines need timers, and hooks need somebody who answers.
    #[cfg(feature = "tower")]
    pub(crate) layer: LayerSettings,
}

enum KeySource {
    Keys(Result<Keys, KeysError>),
    Provider(Arc<dyn SecretProvider>),
}

enum Dedupe {
    By(Arc<dyn DedupeStore>),
    Without,
}

impl Default for ReceiverBuilder {
    fn default() -> Self {
        Self {
            keys: None,
            lookup_cache: Capacities::default(),
            store: None,
            window: Window::default(),
            clock: Arc::new(SystemClock),
            max_body: 1 << 20,
            header_mismatch: HeaderMismatch::default(),
            schedule: RetrySchedule::default(),
            lease: Duration::from_secs(30),
            retention: Duration::from_secs(48 * 3_600),
            max_runs: 1_024,
            #[cfg(feature = "tower")]
            layer: LayerSettings::default(),
        }
    }
}

impl ReceiverBuilder {
    /// One secret for every delivery. The last call wins: two live secrets are one ring, for [`secrets`](Self::secrets).
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
        self.keys = Some(KeySource::Keys(Keys::by_subscription(rings)));
        self
    }

    /// A ring for each subscription id, looked up when it is needed, in a database for instance: see
    /// [`lookup`](crate::lookup). `X-Service-Webhook-Id` is then required. A type of your own, or
    /// [`provider_fn`](crate::provider_fn) with an async closure.
    ///
    /// # Security
    /// What the provider has to keep to stands at [`SecretProvider`].
    pub fn provider(mut self, provider: impl SecretProvider) -> Self {
        self.keys = Some(KeySource::Provider(Arc::new(provider)));
        self
    }

    /// For a [provider](Self::provider): the most subscriptions whose rings are remembered, and the most unknown ids. Default:
    /// 16,384 and 4,096. The first should exceed the subscriptions that deliver within a minute. With 0 nothing is remembered,
    /// and each delivery asks.
    pub fn lookup_cache(mut self, found: usize, unknown: usize) -> Self {
        self.lookup_cache = Capacities { found, unknown };
        self
    }

    /// Keys that are shared with something else, such as a second receiver. Those of a receiver with a provider share its
    /// look-ups, their cache and its clock.
    pub fn keys(mut self, keys: Keys) -> Self {
        self.keys = Some(KeySource::Keys(Ok(keys)));
        self
    }

    /// Where claims and handled events are remembered.
    pub fn store(mut self, store: impl DedupeStore) -> Self {
        self.store = Some(Dedupe::By(Arc::new(store)));
        self
    }

    /// Remembers nothing: **every** authentic copy of an event runs the handler.
    ///
    /// # Security
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
    /// below the first retry at 1 min, and never beyond it; more than 100 ms. Renewed at a third. Counted from when the store is
    /// asked, so it should be longer than the store ever takes to answer: see [`Receiver::admit`].
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long a handled event is remembered, from its commit. Default: 48 h; no less than
    /// [`RetrySchedule::minimum_retention`], which is 26 h 46 min 30 s for the defaults.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = retention;
        self
    }

    /// The most runs under way at a time. Beyond it: 503. Default: 1,024.
    pub fn max_runs(mut self, runs: usize) -> Self {
        self.max_runs = runs;
        self
    }

    /// Puts another store before the one that was given. False where deduplication was switched off.
    #[cfg(feature = "testing")]
    pub(crate) fn wrap_store(
        &mut self,
        wrap: impl FnOnce(Arc<dyn DedupeStore>) -> Arc<dyn DedupeStore>,
    ) -> bool {
        self.store = match self.store.take() {
            Some(Dedupe::By(store)) => Some(Dedupe::By(wrap(store))),
            unwrapped => unwrapped,
        };
        !matches!(self.store, Some(Dedupe::Without))
    }

    /// For what accepts in place of claiming: no store may be set, and none is there.
    #[cfg(feature = "tower")]
    pub(crate) fn build_to_accept(mut self) -> Result<Receiver, BuildError> {
        if self.store.is_some() {
            return Err(BuildError::new(Kind::StoreBesideSink));
        }
        self.store = Some(Dedupe::By(Arc::new(NoClaims)));
        self.build()
    }

    /// Checks the settings against each other.
    ///
    /// # Errors
    /// No secret; neither a store nor [`without_deduplication`](Self::without_deduplication); a retention that does not
    /// cover the retry schedule, 5 s an attempt and both limits of the window; a lease, budget or limit out of its range. See
    /// [`BuildErrorKind`](crate::BuildErrorKind).
    pub fn build(self) -> Result<Receiver, BuildError> {
        let keys = match self.keys.ok_or_else(|| BuildError::new(Kind::NoSecret))? {
            KeySource::Keys(keys) => {
                keys.map_err(|error| BuildError::new(Kind::Keys).caused_by(error))?
            }
            KeySource::Provider(provider) => {
                let clock = Arc::clone(&self.clock);
                Keys::looked_up(Resolver::new(provider, clock, self.lookup_cache))
            }
        };
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
        let first_wait = self.schedule.first_wait().unwrap_or(Duration::MAX);
        if store.is_some() {
            in_range("lease", self.lease, SHORTEST_LEASE, first_wait)?;
        }
        #[cfg(feature = "tower")]
        self.layer.check(&self.schedule)?;
        for (setting, value) in [("max_runs", self.max_runs), ("max_body", self.max_body)] {
            if value == 0 {
                return Err(BuildError::new(Kind::Zero { setting }));
            }
        }
        let vitals = Vitals::new(Arc::clone(&self.clock));
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
                gate: Arc::new(Gate::new(self.max_runs, vitals)),
                #[cfg(feature = "tower")]
                layer: self.layer,
                stale: Default::default(),
            }),
        })
    }
}

/// A lease must be longer than this: one that ends before a store has answered claims nothing.
const SHORTEST_LEASE: Duration = Duration::from_millis(100);

/// No deadline or lease is longer than this.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3_600);

/// A duration longer than `least` and no longer than `most`.
pub(crate) fn in_range(
    setting: &'static str,
    value: Duration,
    least: Duration,
    most: Duration,
) -> Result<(), BuildError> {
    // Far beyond any use, and far from where adding it to a reading of a clock would overflow.
    let most = most.min(LONGEST);
    if value <= least || value > most {
        return Err(BuildError::new(Kind::OutOfRange {
            setting,
            least,
            most,
        }));
    }
    Ok(())
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keys(keys) => keys.fmt(f),
            Self::Provider(_) => f.write_str("Provider"),
        }
    }
}

impl fmt::Debug for ReceiverBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiverBuilder")
            .field("keys", &self.keys)
            .field("lookup_cache", &self.lookup_cache)
            .field("window", &self.window)
            .field("retention", &self.retention)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}
