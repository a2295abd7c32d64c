//! Checks the settings against each other.

use std::sync::Arc;
use std::time::Duration;

use super::{KeySource, ReceiverBuilder};
use crate::config::in_range;
use crate::config::{ConfigError, ConfigErrorKind as Kind};
use crate::dedupe::{RetrySchedule, ScopesInUse};
#[cfg(feature = "lookup")]
use crate::lookup::Resolver;
use crate::lookup::{Keys, Verifier};
use crate::pipeline::{Authenticator, Claims, Gate, Store};
use crate::receiver::Receiver;
use crate::receiver::steps::ReceiverInner;
use crate::verify::KeyRing;

impl ReceiverBuilder {
    /// Builds what an acceptor shares. `next` gets the time for which its sink remembers an event. Setting a store is an error.
    /// `scopes` is the list of the sink.
    #[cfg(feature = "tower")]
    pub(crate) fn build_to_accept<N>(
        mut self,
        scopes: Option<ScopesInUse>,
        next: impl FnOnce(Duration) -> N,
    ) -> Result<ReceiverInner<N>, ConfigError> {
        if self.store.is_some() || self.without_deduplication {
            return Err(ConfigError::saying(
                Kind::StoreUnused,
                "a store beside a sink: with .accept_into(sink) the sink remembers the events, so leave out .store(…) and .without_deduplication()",
            ));
        }
        let (keys, retention) = (self.take_keys()?, self.retention);
        self.check(keys, true, scopes, |_| next(retention))
    }

    /// Checks the settings against each other.
    ///
    /// # Errors
    /// No secret; neither a store nor [`without_deduplication`](Self::without_deduplication), or both; a
    /// [scope](Self::scope) that another receiver of the store has with other keys; a retention that does not cover the retry
    /// schedule, 5 s an attempt and both limits of the window; a lease, budget or limit out of its range. See
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
        let (remembers, retention) = (store.is_some(), self.retention);
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

    /// Checks the rest, and returns what the receiver shares. `remembers` is whether a store or a sink remembers events; `next` gets the lease.
    fn check<N>(
        self,
        keys: Keys,
        remembers: bool,
        scopes: Option<ScopesInUse>,
        next: impl FnOnce(Duration) -> N,
    ) -> Result<ReceiverInner<N>, ConfigError> {
        let lease = self.lease.unwrap_or_else(|| default_lease(&self.schedule));
        if remembers {
            let needed = self.schedule.minimum_retention(&self.window);
            if self.retention < needed {
                return Err(ConfigError::new(Kind::RetentionTooShort {
                    needed,
                    given: self.retention,
                }));
            }
            let first_wait = self.schedule.first_wait().unwrap_or(Duration::MAX);
            in_range("lease", lease, SHORTEST_LEASE, first_wait)?;
        }
        #[cfg(feature = "tower")]
        self.layer.check(&self.schedule, self.max_body)?;
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
            verifier: Verifier::new(keys).with_window(self.window),
            clock: self.clock,
            gate: Arc::new(Gate::new(self.max_runs, clock, scope)),
            schedule: self.schedule,
            max_body: self.max_body,
            ignores_header_mismatch: self.ignores_header_mismatch,
        };
        Ok(ReceiverInner {
            auth,
            #[cfg(feature = "tower")]
            settings: self.layer,
            next: next(lease),
        })
    }
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
        ".scope(…) is for the ring of .secret(…) or .secrets(ring) that names no scope itself: elsewhere each ring names its own, by KeyRing::with_scope",
    )
}

/// Returns a lease that is long enough for a store that answers slowly. For an event whose process died it has ended when the
/// first retry comes.
fn default_lease(schedule: &RetrySchedule) -> Duration {
    let half = schedule.first_wait().map_or(Duration::MAX, |wait| wait / 2);
    half.min(Duration::from_secs(30))
}

/// A lease must be longer than this: a lease that ends before a store has answered is not a claim.
const SHORTEST_LEASE: Duration = Duration::from_millis(100);
