//! Checks the settings against each other.

use std::sync::Arc;
use std::time::Duration;

use super::{KeySource, ReceiverBuilder};
#[cfg(feature = "tower")]
use crate::dedupe::ScopesInUse;
use crate::dedupe::{DedupeStore, RetrySchedule, ScopeTaken};
use crate::lookup::Resolver;
use crate::lookup::{Keys, Verifier};
#[cfg(feature = "tower")]
use crate::receiver::accepting::NoClaims;
use crate::receiver::{Gate, Receiver, Shared, Store, Vitals};
use crate::verify::KeyRing;
use crate::verify::KeysError;
use crate::walk::{BuildError, BuildErrorKind as Kind};

impl ReceiverBuilder {
    /// Builds a receiver that accepts and does not claim: setting a store is an error. `scopes` is the list of its sink.
    #[cfg(feature = "tower")]
    pub(crate) fn build_to_accept(
        mut self,
        scopes: Option<ScopesInUse>,
    ) -> Result<Receiver, BuildError> {
        if self.store.is_some() || self.without_deduplication {
            return Err(BuildError::new(Kind::StoreBesideSink));
        }
        self.store = Some(Arc::new(NoClaims::beside(scopes)));
        self.build()
    }

    /// Checks the settings against each other.
    ///
    /// # Errors
    /// No secret; neither a store nor [`without_deduplication`](Self::without_deduplication), or both; a
    /// [scope](Self::scope) that another receiver of the store has with other keys; a retention that does not cover the retry
    /// schedule, 5 s an attempt and both limits of the window; a lease, budget or limit out of its range. See
    /// [`BuildErrorKind`](crate::BuildErrorKind).
    pub fn build(self) -> Result<Receiver, BuildError> {
        let keys = match (self.keys, self.scope) {
            (None, _) => return Err(BuildError::new(Kind::NoSecret)),
            (Some(KeySource::Ring(ring)), scope) => single(ring, scope)?,
            (Some(_), Some(_)) => return Err(BuildError::new(Kind::ScopeBesideKeys)),
            (Some(KeySource::Keys(keys)), None) => keys.map_err(unusable)?,
            (Some(KeySource::Provider(provider)), None) => {
                let clock = Arc::clone(&self.clock);
                Keys::looked_up(Resolver::new(provider, clock, self.lookup_cache))
            }
        };
        let store = match (self.store, self.without_deduplication) {
            (None, false) => return Err(BuildError::new(Kind::NoStore)),
            (Some(_), true) => return Err(BuildError::new(Kind::StoreWithoutDeduplication)),
            (store, _) => store,
        };
        let lease = self.lease.unwrap_or_else(|| default_lease(&self.schedule));
        if store.is_some() {
            let needed = self.schedule.minimum_retention(&self.window);
            if self.retention < needed {
                return Err(BuildError::new(Kind::RetentionTooShort {
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
                return Err(BuildError::new(Kind::Zero { setting }));
            }
        }
        let scope = match store.as_ref().and_then(|store| store.scopes_in_use()) {
            Some(scopes) => scopes
                .enter(&keys)
                .map_err(|ScopeTaken| BuildError::new(Kind::ScopeTaken))?,
            None => None,
        };
        let vitals = Vitals::new(Arc::clone(&self.clock));
        Ok(Receiver {
            shared: Arc::new(Shared {
                verifier: Verifier::new(keys).with_window(self.window),
                clock: self.clock,
                store: store.map(Store::new),
                max_body: self.max_body,
                header_mismatch: self.header_mismatch,
                lease,
                retention: self.retention,
                schedule: self.schedule,
                gate: Arc::new(Gate::new(self.max_runs, vitals, scope)),
                #[cfg(feature = "tower")]
                layer: self.layer,
                stale: Default::default(),
            }),
        })
    }
}

/// Makes the keys of one ring, with the scope that the builder names for it.
fn single(ring: KeyRing, scope: Option<String>) -> Result<Keys, BuildError> {
    let ring = match scope {
        None => ring,
        Some(_) if ring.names_its_scope() => return Err(BuildError::new(Kind::ScopeBesideKeys)),
        Some(name) => ring.with_scope(&name).map_err(unusable)?,
    };
    Ok(Keys::single(ring))
}

fn unusable(error: KeysError) -> BuildError {
    BuildError::new(Kind::Keys).caused_by(error)
}

/// Returns a lease that is long enough for a store that answers slowly. For an event whose process died it has ended when the
/// first retry comes.
fn default_lease(schedule: &RetrySchedule) -> Duration {
    let half = schedule.first_wait().map_or(Duration::MAX, |wait| wait / 2);
    half.min(Duration::from_secs(30))
}

/// A lease must be longer than this: a lease that ends before a store has answered is no claim.
const SHORTEST_LEASE: Duration = Duration::from_millis(100);

/// The longest deadline or lease.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Checks that a duration is longer than `least` and not longer than `most`.
pub(crate) fn in_range(
    setting: &'static str,
    value: Duration,
    least: Duration,
    most: Duration,
) -> Result<(), BuildError> {
    // This is longer than any useful value, and small enough that adding it to a reading of a clock does not overflow.
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
