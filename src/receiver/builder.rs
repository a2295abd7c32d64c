//! The settings of a receiver.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::steps::{Receiver, ReceiverInner};
use crate::clock::{Clock, SystemClock};
use crate::config::{ConfigError, ConfigErrorKind as Kind, in_range};
use crate::dedupe::{DedupeStore, RetrySchedule, ScopesInUse};
#[cfg(feature = "tower")]
use crate::layer::{HandlerCall, LayerSettings};
use crate::lookup::{Keys, Verifier};
#[cfg(feature = "lookup")]
use crate::lookup::{Resolver, SecretProvider};
#[cfg(feature = "tower")]
use crate::pipeline::Delivery;
use crate::pipeline::{Authenticator, Claims, Gate, Store};
use crate::scheme::{self, Scheme, Window};
use crate::verify::{KeyRing, Secret};

/// The settings of a [`Receiver`](crate::Receiver).
///
/// ```
/// use std::time::Duration;
/// use hookgate::{KeyRing, MemoryStore, Receiver, Secret, verify::Window};
///
/// let receiver = Receiver::builder()
///     .key_ring(
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
    scheme: Scheme,
    without_window: bool,
    keys: Option<KeySource>,
    scope: Option<String>,
    store: Option<Arc<dyn DedupeStore>>,
    without_deduplication: bool,
    /// `None`: the default.
    window: Option<Window>,
    clock: Arc<dyn Clock>,
    max_body: usize,
    ignores_header_mismatch: bool,
    /// The scheme's unless it is set.
    schedule: Option<RetrySchedule>,
    /// Depends on the schedule unless it is set.
    lease: Option<Duration>,
    /// Depends on the scheme unless it is set.
    retention: Option<Duration>,
    max_runs: usize,
    /// Depends on the scheme unless it is set.
    #[cfg(feature = "tower")]
    pub(super) answer_within: Option<Duration>,
    /// Settings that need the layer: deadlines need timers, and hooks need an answer.
    #[cfg(feature = "tower")]
    pub(super) layer: LayerSettings,
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
            scheme: Scheme::WORKSPACE,
            without_window: false,
            keys: None,
            scope: None,
            store: None,
            without_deduplication: false,
            window: None,
            clock: Arc::new(SystemClock),
            max_body: 1 << 20,
            ignores_header_mismatch: false,
            schedule: None,
            lease: None,
            retention: None,
            max_runs: 1_024,
            #[cfg(feature = "tower")]
            answer_within: None,
            #[cfg(feature = "tower")]
            layer: LayerSettings::default(),
        }
    }
}

impl Receiver {
    /// Returns a builder for a receiver. Secrets and a store must be set; the other settings have
    /// defaults.
    pub fn builder() -> ReceiverBuilder {
        ReceiverBuilder::default()
    }
}

impl ReceiverBuilder {
    /// Sets how the sender signs. Default: [`Scheme::WORKSPACE`]. The defaults of retention, lease
    /// and `answer_within` follow the scheme.
    ///
    /// ```
    /// use hookgate::{MemoryStore, Receiver, Scheme, Secret};
    ///
    /// let secret = Secret::new("whsec_made_up_for_this_example")?;
    /// let receiver = Receiver::builder().scheme(Scheme::STRIPE).secret(secret).store(MemoryStore::default()).build()?;
    /// # let _ = receiver;
    /// # Ok::<(), hookgate::ConfigError>(())
    /// ```
    pub fn scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = scheme;
        self
    }

    /// Says that you know that the [scheme](Self::scheme) signs no timestamp, so that no delivery
    /// is refused for its age. It is an error with any other scheme.
    ///
    /// # Security
    /// A delivery that was copied can be replayed at any time. The store alone holds it off, for
    /// its [retention](Self::retention): keep that long, and the store durable.
    pub fn without_window(mut self) -> Self {
        self.without_window = true;
        self
    }

    /// Sets one secret for every delivery.
    ///
    /// Secrets are set once, by this method, [`key_ring`](Self::key_ring),
    /// [`subscriptions`](Self::subscriptions), `provider` or [`keys`](Self::keys): a second call is
    /// an error of [`build`](Self::build). Two live secrets, an old and a new one, are one ring for
    /// [`key_ring`](Self::key_ring).
    ///
    /// ```
    /// use hookgate::{KeyRing, MemoryStore, Receiver, Secret};
    ///
    /// let old = Secret::new("whsec_made_up_old_secret")?;
    /// let new = Secret::new("whsec_made_up_new_secret")?;
    /// let builder = || Receiver::builder().store(MemoryStore::default());
    /// assert!(builder().secret(old.clone()).secret(new.clone()).build().is_err());
    /// let ring = KeyRing::named("new", new)?.with_key("old", old)?;
    /// assert!(builder().key_ring(ring).build().is_ok());
    /// # Ok::<(), hookgate::ConfigError>(())
    /// ```
    pub fn secret(self, secret: Secret) -> Self {
        self.key_ring(KeyRing::new(secret))
    }

    /// Sets one ring of secrets for every delivery.
    pub fn key_ring(self, ring: KeyRing) -> Self {
        self.keys_from(KeySource::Ring(ring))
    }

    /// Names the scope of the one ring, under which its events are remembered, as
    /// [`KeyRing::with_scope`] does. Default: `default`.
    ///
    /// If two receivers with different secrets use one store, each needs its own scope: a second
    /// one without a name is an error of [`build`](Self::build), unless the two rings have a key in
    /// common. [`ScopesInUse`](crate::dedupe::ScopesInUse) has the rules. Processes that share a
    /// store cannot be compared: name the scopes there, or give each application its own prefix or
    /// database.
    ///
    /// A name that is set is always accepted, even if another receiver has the same one. A new name
    /// forgets the events that were remembered under the old one.
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
    /// A client that holds a secret of one receiver can make events of every receiver with the same
    /// scope and store look handled.
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

    /// Sets a provider: a ring for each subscription id, looked up when it is needed, for example
    /// in a database; see [`lookup`](crate::lookup). `X-Service-Webhook-Id` is then required. Pass
    /// an async closure, or a type of your own.
    ///
    /// # Security
    /// [`SecretProvider`] lists the rules for a provider.
    #[cfg(feature = "lookup")]
    pub fn provider(self, provider: impl SecretProvider) -> Self {
        self.keys_from(KeySource::Provider(Arc::new(provider)))
    }

    /// Sets keys that are shared, for example with a second receiver. Keys of a receiver with a
    /// provider share its look-ups, their cache and its clock.
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

    /// Sets the store that remembers claims and handled events. The last call wins.
    pub fn store(mut self, store: impl DedupeStore) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Remembers nothing: **every** authentic copy of an event runs the handler. It is an error
    /// together with [`store`](Self::store).
    ///
    /// # Security
    /// The service delivers an event more than once (service specification, *Delivery and retry*,
    /// rule 1), and an attacker who has copied a delivery can replay it within the window. Use it
    /// only if the handler itself deduplicates on the event's id.
    pub fn without_deduplication(mut self) -> Self {
        self.without_deduplication = true;
        self
    }

    /// Sets the ages that are accepted. Default: 300 s old, 300 s ahead.
    pub fn window(mut self, window: Window) -> Self {
        self.window = Some(window);
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

    /// Accepts a delivery whose unsigned headers name another event than its signed body, for a
    /// proxy that rewrites them. Without this, it is answered 400: a header was changed on the way,
    /// or the sender is faulty.
    ///
    /// # Security
    /// The signed body decides in both cases. But a changed header is the only sign that a delivery
    /// was changed on the way, and this ignores it.
    pub fn ignore_header_mismatch(mut self) -> Self {
        self.ignores_header_mismatch = true;
        self
    }

    /// Sets the sender's waits between attempts. Default: the [scheme](Self::scheme)'s.
    ///
    /// Only the default of the [`lease`](Self::lease) depends on the schedule; for that default,
    /// the first wait must be more than 200 ms. If the default of another setting does not fit the
    /// schedule, [`build`](Self::build) returns an error. Then set [`retention`](Self::retention)
    /// if the waits add up to more than about two days, and `answer_within` if the sender waits
    /// less than 4.5 s for an answer.
    pub fn schedule(mut self, schedule: RetrySchedule) -> Self {
        self.schedule = Some(schedule);
        self
    }

    /// Sets the time for which a claim holds without renewal. So it is also the time for which an
    /// event stays blocked after its process died. More than 100 ms, and never longer than the
    /// first wait of the [`schedule`](Self::schedule). Default: 30 s, or half of that wait if this
    /// is less. The lease is renewed after each third of it. It is counted from the call of the
    /// store, so it should be longer than the store ever takes to answer: see
    /// [`Receiver::admit`](crate::Receiver::admit).
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Sets the time for which a handled event is remembered, from its commit. Default: 48 h, or
    /// what the [scheme](Self::scheme)'s schedule needs, if that is more; at least
    /// [`RetrySchedule::minimum_retention`], which is 26 h 46 min 30 s for the defaults.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = Some(retention);
        self
    }

    /// Sets the most runs under way at a time. Further deliveries are answered 503. Default: 1,024.
    pub fn max_runs(mut self, runs: usize) -> Self {
        self.max_runs = runs;
        self
    }

    /// For `hookgate-testing` alone, and not part of the stable API: its keys in place of all keys
    /// and the scope, a probe in front of the store, hooks that are called only while `holds`
    /// returns true, and `wrapper` around each call of the handler.
    #[doc(hidden)]
    #[cfg(feature = "tower")]
    pub fn for_replay(
        mut self,
        keys: Keys,
        probe: impl FnOnce(Arc<dyn DedupeStore>) -> Arc<dyn DedupeStore>,
        holds: impl Fn() -> bool + Send + Sync + 'static,
        wrapper: impl for<'a> Fn(&Delivery, &http::Extensions, HandlerCall<'a>) -> HandlerCall<'a>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        (self.scope, self.keys) = (None, Some(KeySource::Keys(Ok(keys))));
        self.store = self.store.map(probe);
        self.layer.observers.hooks_while = Some(Arc::new(holds));
        self.layer.handler_wrapper = Some(Arc::new(wrapper));
        self
    }

    /// Builds what an acceptor shares. `backend` gets the time for which its sink remembers an
    /// event. Setting a store is an error. `scopes` is the list of the sink.
    #[cfg(feature = "tower")]
    pub(crate) fn build_to_accept<N>(
        mut self,
        scopes: Option<ScopesInUse>,
        backend: impl FnOnce(Duration) -> N,
    ) -> Result<ReceiverInner<N>, ConfigError> {
        if self.store.is_some() || self.without_deduplication {
            return Err(ConfigError::saying(
                Kind::StoreUnused,
                "a store beside a sink: with .accept_into(sink) the sink remembers the events, so leave out .store(…) and .without_deduplication()",
            ));
        }
        let (keys, retention) = (self.take_keys()?, self.remembered_for());
        self.check(keys, true, scopes, |_| backend(retention))
    }

    /// Checks the settings against each other.
    ///
    /// # Errors
    /// No secret; neither a store nor [`without_deduplication`](Self::without_deduplication), or
    /// both; a [scope](Self::scope) that another receiver of the store has with other keys; a
    /// retention that does not cover the retry schedule, 5 s an attempt and both limits of the
    /// window; a lease, a time or a limit out of its range. See
    /// [`ConfigErrorKind`](crate::ConfigErrorKind).
    pub fn build(mut self) -> Result<Receiver, ConfigError> {
        let keys = self.take_keys()?;
        let store = match (self.store.take(), self.without_deduplication) {
            (None, false) => return Err(ConfigError::new(Kind::NoStore)),
            (Some(_), true) => {
                return Err(ConfigError::saying(
                    Kind::StoreUnused,
                    ".store(…) has no effect beside .without_deduplication(): leave out one of the two",
                ));
            }
            (store, _) => store,
        };
        let scopes = store.as_ref().and_then(|store| store.scopes_in_use());
        let scopes = scopes.cloned();
        let (remembers, retention) = (store.is_some(), self.remembered_for());
        let store = store.map(Store::new);
        let claims = |lease| Claims {
            store,
            lease,
            retention,
        };
        let inner = self.check(keys, remembers, scopes, claims)?;
        Ok(Receiver {
            shared: Arc::new(inner),
        })
    }

    /// Returns the retention that is set, or its default.
    fn remembered_for(&self) -> Duration {
        let least = RetrySchedule::of_scheme(&self.scheme).minimum_retention(&Window::default());
        self.retention.unwrap_or(least.max(TWO_DAYS))
    }

    /// Checks the scheme against the other settings, and gives it to the keys.
    fn check_scheme(&self, keys: &Keys) -> Result<(), ConfigError> {
        let fault = match (self.scheme.has_timestamp(), self.without_window) {
            (false, true) if self.window.is_some() => {
                "it signs no timestamp, so there is no window: leave out .window(…)"
            }
            (true, false) | (false, true) => return keys.set_scheme(self.scheme),
            (true, true) => {
                "it signs a timestamp, so the window stays: leave out .without_window()"
            }
            (false, false) => {
                "it signs no timestamp, so no age can be checked: .without_window() says that you know"
            }
        };
        self.scheme.check()?;
        Err(scheme::unusable(&self.scheme, fault))
    }

    fn take_keys(&mut self) -> Result<Keys, ConfigError> {
        Ok(match (self.keys.take(), self.scope.take()) {
            (None, _) => return Err(ConfigError::new(Kind::NoSecret)),
            (Some(KeySource::Keys(Err(error))), _) => return Err(error),
            (Some(KeySource::Ring(ring)), scope) => single(ring, scope)?,
            (Some(_), Some(_)) => return Err(scope_beside_keys()),
            (Some(KeySource::Keys(keys)), None) => keys?,
            #[cfg(feature = "lookup")]
            (Some(KeySource::Provider(provider)), None) => {
                let clock = Arc::clone(&self.clock);
                Keys::looked_up(Resolver::new(provider, clock))
            }
        })
    }

    /// Checks the rest, and returns what the receiver shares. `remembers` is whether a store or a
    /// sink remembers events; `backend` makes its claims or its sink with the lease.
    fn check<N>(
        self,
        keys: Keys,
        remembers: bool,
        scopes: Option<ScopesInUse>,
        backend: impl FnOnce(Duration) -> N,
    ) -> Result<ReceiverInner<N>, ConfigError> {
        self.check_scheme(&keys)?;
        let of_scheme = RetrySchedule::of_scheme(&self.scheme);
        let (given, schedule) = (
            self.remembered_for(),
            self.schedule.unwrap_or_else(|| of_scheme.clone()),
        );
        let lease = self.lease.unwrap_or_else(|| default_lease(&schedule));
        if remembers {
            let needed = schedule.minimum_retention(&self.window.unwrap_or_default());
            if given < needed {
                return Err(ConfigError::new(Kind::RetentionTooShort { needed, given }));
            }
            let first_wait = schedule.first_wait().unwrap_or(Duration::MAX);
            in_range("lease", lease, SHORTEST_LEASE, first_wait)?;
        }
        #[cfg(feature = "tower")]
        let settings = {
            // A tenth of the sender's time is for the way of the answer.
            let longest = of_scheme.attempt_timeout() / 10 * 9;
            let default = longest.min(Duration::from_millis(4_500));
            let settings = LayerSettings {
                answer_within: self.answer_within.unwrap_or(default),
                ..self.layer
            };
            settings.check(&schedule, self.max_body)?;
            settings
        };
        for (setting, value) in [("max_runs", self.max_runs), ("max_body", self.max_body)] {
            if value == 0 {
                return Err(ConfigError::new(Kind::Zero { setting }));
            }
        }
        let scope = match scopes {
            Some(scopes) => scopes.enter(&keys)?,
            None => None,
        };
        let clock = Arc::clone(&self.clock);
        let auth = Authenticator {
            verifier: Verifier::new(keys).with_window(self.window.unwrap_or_default()),
            clock: self.clock,
            gate: Arc::new(Gate::new(self.max_runs, clock, scope)),
            schedule,
            max_body: self.max_body,
            ignores_header_mismatch: self.ignores_header_mismatch,
        };
        Ok(ReceiverInner {
            auth,
            #[cfg(feature = "tower")]
            settings,
            backend: backend(lease),
        })
    }
}

fn second_source() -> ConfigError {
    ConfigError::saying(
        Kind::UnusableKeys,
        "a second source of keys: call one of .secret(…), .key_ring(ring), .subscriptions(map), .provider(lookup) and .keys(keys), once; two live secrets are one ring: .key_ring(KeyRing::named(\"new\", new)?.with_key(\"old\", old)?)",
    )
}

/// Makes the keys of one ring, with the scope that the builder names for it.
fn single(ring: KeyRing, scope: Option<String>) -> Result<Keys, ConfigError> {
    let ring = match scope {
        None => ring,
        Some(_) if ring.has_own_scope() => return Err(scope_beside_keys()),
        Some(name) => ring.with_scope(&name)?,
    };
    Ok(Keys::single(ring))
}

fn scope_beside_keys() -> ConfigError {
    ConfigError::saying(
        Kind::UnusableScope,
        ".scope(…) is for the ring of .secret(…) or .key_ring(ring) that names no scope itself: elsewhere each ring names its own, by KeyRing::with_scope",
    )
}

/// Returns a lease that is long enough for a store that answers slowly. For an event whose process
/// died it has ended when the first retry comes.
fn default_lease(schedule: &RetrySchedule) -> Duration {
    let half = schedule.first_wait().map_or(Duration::MAX, |wait| wait / 2);
    half.min(Duration::from_secs(30))
}

/// The least default retention.
const TWO_DAYS: Duration = Duration::from_secs(48 * 3_600);

/// A lease must be longer than this: a lease that ends before a store has answered is not a claim.
const SHORTEST_LEASE: Duration = Duration::from_millis(100);

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
            .field("scheme", &self.scheme.name())
            .field("keys", &self.keys)
            .field("scope", &self.scope)
            .field("window", &self.window)
            .field("retention", &self.retention)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}
