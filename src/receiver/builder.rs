//! The settings of a receiver.

mod build;

#[cfg(feature = "tower")]
pub(crate) use build::in_range;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::dedupe::{DedupeStore, RetrySchedule};
use crate::error::KeysError;
#[cfg(feature = "tower")]
use crate::layer::LayerSettings;
use crate::lookup::{Capacities, SecretProvider};
use crate::verify::{KeyRing, Keys, Secret, Window};

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

/// The settings of a [`Receiver`](crate::Receiver).
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
    scope: Option<String>,
    lookup_cache: Capacities,
    store: Option<Arc<dyn DedupeStore>>,
    without_deduplication: bool,
    window: Window,
    clock: Arc<dyn Clock>,
    max_body: usize,
    header_mismatch: HeaderMismatch,
    schedule: RetrySchedule,
    /// Follows the schedule unless it is set.
    lease: Option<Duration>,
    retention: Duration,
    max_runs: usize,
    /// What only the layer can keep: deadlines need timers, and hooks need somebody who answers.
    #[cfg(feature = "tower")]
    pub(crate) layer: LayerSettings,
}

enum KeySource {
    Ring(KeyRing),
    Keys(Result<Keys, KeysError>),
    Provider(Arc<dyn SecretProvider>),
}

impl Default for ReceiverBuilder {
    fn default() -> Self {
        Self {
            keys: None,
            scope: None,
            lookup_cache: Capacities::default(),
            store: None,
            without_deduplication: false,
            window: Window::default(),
            clock: Arc::new(SystemClock),
            max_body: 1 << 20,
            header_mismatch: HeaderMismatch::default(),
            schedule: RetrySchedule::default(),
            lease: None,
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
    pub fn secrets(mut self, ring: KeyRing) -> Self {
        self.keys = Some(KeySource::Ring(ring));
        self
    }

    /// Names the scope of the one ring, under which its events are remembered: as [`KeyRing::with_scope`] does. Default: `default`.
    ///
    /// Two receivers with secrets of their own on one store each need a scope of their own, or the holder of one secret could
    /// make events of the other look handled. So the second one that names none is an error of [`build`](Self::build), unless a
    /// key of its ring is also a key of one that is there: a rotation, or the same subscription at two routes. This is compared
    /// when a receiver is built, with the keys that are live then, among the receivers of this process and this store, or
    /// its clones, that are not dropped; see [`ScopesInUse`](crate::ScopesInUse). Processes that share a store can't be
    /// compared: name the scopes there, or give each application a prefix or a database of its own.
    ///
    /// A name that is given is taken at its word, also where another receiver has the same one. Changing it forgets what was
    /// remembered under the old one.
    ///
    /// ```
    /// use hookgate::{BuildErrorKind, LocalStore, Receiver, Secret};
    ///
    /// let store = LocalStore::default();
    /// let orders = Secret::new("whsec_made_up_for_orders")?;
    /// let orders = Receiver::builder().secret(orders).store(store.clone()).build()?;
    ///
    /// let ledger = || Secret::new("whsec_made_up_for_the_ledger");
    /// let refused = Receiver::builder().secret(ledger()?).store(store.clone()).build();
    /// assert_eq!(refused.err().map(|error| error.kind()), Some(BuildErrorKind::ScopeTaken));
    /// let ledger = Receiver::builder().secret(ledger()?).scope("ledger").store(store).build()?;
    /// # let _ = (orders, ledger);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Security
    /// Whoever holds a secret of one receiver can make events of every receiver of the same scope and store look handled.
    pub fn scope(mut self, name: impl Into<String>) -> Self {
        self.scope = Some(name.into());
        self
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

    /// Where claims and handled events are remembered. The last call wins.
    pub fn store(mut self, store: impl DedupeStore) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Remembers nothing: **every** authentic copy of an event runs the handler. An error beside [`store`](Self::store).
    ///
    /// # Security
    /// The service delivers an event more than once (service specification, *Delivery and retry*, rule 1), and whoever has
    /// copied a delivery can replay it within the window. Right only where the handler deduplicates on the event's id itself.
    pub fn without_deduplication(mut self) -> Self {
        self.without_deduplication = true;
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
    ///
    /// Only the [`lease`](Self::lease) follows it. Where the default of another setting doesn't fit the schedule,
    /// [`build`](Self::build) says so and the setting has to be given: [`retention`](Self::retention) for waits that add up to
    /// more than about two days, `budget` for a sender that waits less than 4.5 s for an answer.
    pub fn schedule(mut self, schedule: RetrySchedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// How long a claim holds without renewal, and so how long an event stays blocked whose process died. More than 100 ms, and
    /// never beyond the first wait of the [`schedule`](Self::schedule). Default: 30 s, or half of that wait where this is less.
    /// Renewed at a third. Counted from when the store is asked, so it should be longer than the store ever takes to answer:
    /// see [`Receiver::admit`](crate::Receiver::admit).
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
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
        self.store = self.store.take().map(wrap);
        !self.without_deduplication
    }

    /// These keys in place of the user's, whose scope goes with them.
    #[cfg(feature = "testing")]
    pub(crate) fn with_keys_replaced(mut self, keys: Keys) -> Self {
        self.scope = None;
        self.keys(keys)
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ring(ring) => ring.fmt(f),
            Self::Keys(keys) => keys.fmt(f),
            Self::Provider(_) => f.write_str("Provider"),
        }
    }
}

impl fmt::Debug for ReceiverBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiverBuilder")
            .field("keys", &self.keys)
            .field("scope", &self.scope)
            .field("lookup_cache", &self.lookup_cache)
            .field("window", &self.window)
            .field("retention", &self.retention)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}
