//! The settings of a receiver.

mod build;
#[cfg(feature = "tower")]
mod layer;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::dedupe::{DedupeStore, RetrySchedule};
#[cfg(feature = "tower")]
use crate::layer::LayerSettings;
use crate::lookup::Keys;
#[cfg(feature = "lookup")]
use crate::lookup::SecretProvider;

use crate::config::{ConfigError, ConfigErrorKind};
use crate::verify::{KeyRing, Secret, Window};

/// The settings of a [`Receiver`](crate::Receiver).
///
/// ```
/// use std::time::Duration;
/// use hookgate::{KeyRing, MemoryStore, Receiver, Secret, verify::Window};
///
/// let receiver = Receiver::builder()
///     .secrets(
///         KeyRing::named("2026-11", Secret::new("whsec_made_up_new_secret")?)?
///             .with_key("2026-05", Secret::new("whsec_made_up_old_secret")?)?,
///     )
///     .store(MemoryStore::default())
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
    store: Option<Arc<dyn DedupeStore>>,
    without_deduplication: bool,
    window: Window,
    clock: Arc<dyn Clock>,
    max_body: usize,
    ignores_header_mismatch: bool,
    schedule: RetrySchedule,
    /// Depends on the schedule unless it is set.
    lease: Option<Duration>,
    retention: Duration,
    max_runs: usize,
    /// Settings that need the layer: deadlines need timers, and hooks need an answer.
    #[cfg(feature = "tower")]
    layer: LayerSettings,
}

enum KeySource {
    Ring(KeyRing),
    Keys(Result<Keys, ConfigError>),
    #[cfg(feature = "lookup")]
    Provider(Arc<dyn SecretProvider>),
}

impl Default for ReceiverBuilder {
    fn default() -> Self {
        Self {
            keys: None,
            scope: None,
            store: None,
            without_deduplication: false,
            window: Window::default(),
            clock: Arc::new(SystemClock),
            max_body: 1 << 20,
            ignores_header_mismatch: false,
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
    /// Sets one secret for every delivery.
    ///
    /// Secrets are set once, by this method, [`secrets`](Self::secrets), [`subscriptions`](Self::subscriptions),
    /// [`provider`](Self::provider) or [`keys`](Self::keys): a second call is an error of [`build`](Self::build). Two live secrets,
    /// an old and a new one, are one ring for [`secrets`](Self::secrets).
    ///
    /// ```
    /// use hookgate::{KeyRing, MemoryStore, Receiver, Secret};
    ///
    /// let old = Secret::new("whsec_made_up_old_secret")?;
    /// let new = Secret::new("whsec_made_up_new_secret")?;
    /// let builder = || Receiver::builder().store(MemoryStore::default());
    /// assert!(builder().secret(old.clone()).secret(new.clone()).build().is_err());
    /// let ring = KeyRing::named("new", new)?.with_key("old", old)?;
    /// assert!(builder().secrets(ring).build().is_ok());
    /// # Ok::<(), hookgate::ConfigError>(())
    /// ```
    pub fn secret(self, secret: Secret) -> Self {
        self.secrets(KeyRing::new(secret))
    }

    /// Sets one ring of secrets for every delivery.
    pub fn secrets(self, ring: KeyRing) -> Self {
        self.keys_from(KeySource::Ring(ring))
    }

    /// Names the scope of the one ring, under which its events are remembered, as [`KeyRing::with_scope`] does. Default:
    /// `default`.
    ///
    /// If two receivers with different secrets use one store, each needs its own scope: a second one without a name is an error
    /// of [`build`](Self::build), unless the two rings have a key in common. [`ScopesInUse`](crate::dedupe::ScopesInUse) has the rules.
    /// Processes that share a store cannot be compared: name the scopes there, or give each application its own prefix or
    /// database.
    ///
    /// A name that is set is always accepted, even if another receiver has the same one. A new name forgets the events that
    /// were remembered under the old one.
    ///
    /// ```
    /// use hookgate::{ConfigErrorKind, MemoryStore, Receiver, Secret};
    ///
    /// let store = MemoryStore::default();
    /// let orders = Secret::new("whsec_made_up_for_orders")?;
    /// let orders = Receiver::builder().secret(orders).store(store.clone()).build()?;
    ///
    /// let ledger = || Secret::new("whsec_made_up_for_the_ledger");
    /// let refused = Receiver::builder().secret(ledger()?).store(store.clone()).build();
    /// assert_eq!(refused.err().map(|error| error.kind()), Some(ConfigErrorKind::UnusableScope));
    /// let ledger = Receiver::builder().secret(ledger()?).scope("ledger").store(store).build()?;
    /// # let _ = (orders, ledger);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Security
    /// A client that holds a secret of one receiver can make events of every receiver with the same scope and store look
    /// handled.
    pub fn scope(mut self, name: impl Into<String>) -> Self {
        self.scope = Some(name.into());
        self
    }

    /// Sets a ring for each subscription id; see [`Keys::by_subscription`].
    pub fn subscriptions<I, R>(self, rings: impl IntoIterator<Item = (I, R)>) -> Self
    where
        I: AsRef<str>,
        R: Into<KeyRing>,
    {
        self.keys_from(KeySource::Keys(Keys::by_subscription(rings)))
    }

    /// Sets a provider: a ring for each subscription id, looked up when it is needed, for example in a database; see
    /// [`lookup`](crate::lookup). `X-Service-Webhook-Id` is then required. Pass an async closure, or a type of your own.
    ///
    /// # Security
    /// [`SecretProvider`] lists the rules for a provider.
    #[cfg(feature = "lookup")]
    pub fn provider(self, provider: impl SecretProvider) -> Self {
        self.keys_from(KeySource::Provider(Arc::new(provider)))
    }

    /// Sets keys that are shared, for example with a second receiver. Keys of a receiver with a provider share its look-ups,
    /// their cache and its clock.
    pub fn keys(self, keys: Keys) -> Self {
        self.keys_from(KeySource::Keys(Ok(keys)))
    }

    fn keys_from(mut self, source: KeySource) -> Self {
        self.keys = Some(match self.keys {
            None => source,
            Some(_) => KeySource::Keys(Err(second_source())),
        });
        self
    }

    /// Sets keys in place of all keys set so far, and removes the [scope](Self::scope): for a test that runs the settings of
    /// production with keys of its own.
    ///
    /// ```
    /// use hookgate::{KeyRing, MemoryStore, Receiver, Secret, lookup::Keys};
    ///
    /// let of_production = Receiver::builder().scope("orders").store(MemoryStore::default());
    /// let keys = Keys::single(KeyRing::new(Secret::new("whsec_made_up_for_this_example")?));
    /// assert!(of_production.replace_keys(keys).build().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn replace_keys(mut self, keys: Keys) -> Self {
        (self.scope, self.keys) = (None, None);
        self.keys(keys)
    }

    /// Sets the store that remembers claims and handled events. The last call wins.
    pub fn store(mut self, store: impl DedupeStore) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Puts a store in front of the one that is set, for example one that counts calls or makes some of them fail. Call it
    /// after [`store`](Self::store); without a store the function is not called. The new store should return the
    /// [`scopes_in_use`](DedupeStore::scopes_in_use) of the one behind it; otherwise the scopes of receivers are not compared.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use hookgate::{DedupeStore, MemoryStore, Receiver, Secret};
    ///
    /// # fn with_counters(store: Arc<dyn DedupeStore>) -> Arc<dyn DedupeStore> { store }
    /// let receiver = Receiver::builder()
    ///     .secret(Secret::new("whsec_made_up_for_this_example")?)
    ///     .store(MemoryStore::default())
    ///     .map_store(with_counters)
    ///     .build();
    /// assert!(receiver.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map_store(
        mut self,
        wrap: impl FnOnce(Arc<dyn DedupeStore>) -> Arc<dyn DedupeStore>,
    ) -> Self {
        self.store = self.store.map(wrap);
        self
    }

    /// Remembers nothing: **every** authentic copy of an event runs the handler. It is an error together with
    /// [`store`](Self::store).
    ///
    /// # Security
    /// The service delivers an event more than once (service specification, *Delivery and retry*, rule 1), and an attacker who
    /// has copied a delivery can replay it within the window. Use it only if the handler itself deduplicates on the event's id.
    pub fn without_deduplication(mut self) -> Self {
        self.without_deduplication = true;
        self
    }

    /// Sets the ages that are accepted. Default: 300 s old, 300 s ahead.
    pub fn window(mut self, window: Window) -> Self {
        self.window = window;
        self
    }

    /// Sets the clock. Default: [`SystemClock`].
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the most bytes of a body; a body of exactly that size is accepted. Default: 1 MiB.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Accepts a delivery whose unsigned headers name another event than its signed body, for a proxy that rewrites them. Without
    /// this, it is answered 400: a header was changed on the way, or the sender is faulty.
    ///
    /// # Security
    /// The signed body decides in both cases. But a changed header is the only sign that a delivery was changed on the way, and
    /// this ignores it.
    pub fn ignore_header_mismatch(mut self) -> Self {
        self.ignores_header_mismatch = true;
        self
    }

    /// Sets the sender's waits between attempts. Default: the service's.
    ///
    /// Only the default of the [`lease`](Self::lease) depends on the schedule; for that default, the first wait must be more than
    /// 200 ms. If the default of another setting does not fit the schedule, [`build`](Self::build) returns an error. Then set
    /// [`retention`](Self::retention) if the waits add up to more than about two days, and `budget` if the sender waits less than
    /// 4.5 s for an answer.
    pub fn schedule(mut self, schedule: RetrySchedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// Sets the time for which a claim holds without renewal. So it is also the time for which an event stays blocked after its
    /// process died. More than 100 ms, and never longer than the first wait of the [`schedule`](Self::schedule). Default: 30 s,
    /// or half of that wait if this is less. The lease is renewed after each third of it. It is counted from the call of the
    /// store, so it should be longer than the store ever takes to answer: see [`Receiver::admit`](crate::Receiver::admit).
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Sets the time for which a handled event is remembered, from its commit. Default: 48 h; at least
    /// [`RetrySchedule::minimum_retention`], which is 26 h 46 min 30 s for the defaults.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = retention;
        self
    }

    /// Sets the most runs under way at a time. Further deliveries are answered 503. Default: 1,024.
    pub fn max_runs(mut self, runs: usize) -> Self {
        self.max_runs = runs;
        self
    }
}

fn second_source() -> ConfigError {
    ConfigError::saying(
        ConfigErrorKind::UnusableKeys,
        "a second source of keys: call one of .secret(…), .secrets(ring), .subscriptions(map), .provider(lookup) and .keys(keys), once; two live secrets are one ring: .secrets(KeyRing::named(\"new\", new)?.with_key(\"old\", old)?)",
    )
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ring(ring) => ring.fmt(f),
            Self::Keys(keys) => keys.fmt(f),
            #[cfg(feature = "lookup")]
            Self::Provider(_) => f.write_str("Provider"),
        }
    }
}

impl fmt::Debug for ReceiverBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiverBuilder")
            .field("keys", &self.keys)
            .field("scope", &self.scope)
            .field("window", &self.window)
            .field("retention", &self.retention)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}
