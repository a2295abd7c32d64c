//! The store of claims: four calls, and the contract that every store keeps.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::capacity::StoreStats;
use super::key::{ClaimToken, EventKey};
use super::running::nanos_of;
use super::scopes::ScopesInUse;
use crate::future::StoreFuture;

/// Remembers which events are being handled and which are done.
///
/// A record is absent, **running** under a claim token until its lease ends, or **done** until its
/// retention ends:
///
/// | call | absent, or lease or retention over | running, same token | running, other token | done, same token | done, other token |
/// |---|---|---|---|---|---|
/// | `claim` | running: `Fresh` | lease renewed: `Fresh` | `Running` | `Done` | `Done` |
/// | `renew` | `Lost` | lease renewed: `Held` | `Lost` | `Lost` | `Lost` |
/// | `commit` | `Lost` | done: `Held` | `Lost` | for one lease `Held`, then `Lost` | `Lost` |
/// | `release` | `Lost` | absent: `Held` | `Lost` | `Lost` | `Lost` |
///
/// 1. **Each call is one indivisible step.** Under any number of concurrent claims, one is `Fresh`.
/// 2. **The caller chooses the token**, so a call whose reply was lost can be repeated and gives
///    the right answer: a claim that finds its own token is `Fresh`, a commit that finds its own
///    done record is `Held`. That holds for one lease after the commit: the last lease of its
///    claim, or the longest that the store was given. Later the commit is `Lost`, so the token need
///    not be stored any longer. Store its [`body_mark`](ClaimToken::body_mark) as long as the
///    record, and return it in [`Claimed::Done`].
/// 3. **A lease that has ended no longer counts**: the next claim is `Fresh`, and the calls of the
///    late holder are `Lost`.
/// 4. **Retention runs from the commit.** A claim that finds the record does not extend it.
/// 5. **Running records are never evicted.** When the store is full it either forgets the done
///    record that was committed first (of its part, where the store has parts), or refuses the
///    claim with [`StoreErrorKind::Full`](crate::dedupe::StoreErrorKind::Full).
/// 6. **An error means unknown**: the call may or may not have taken effect. The delivery is then
///    answered 503. The same holds where the call panics.
///
/// The conformance suite, `StoreConformance` of the package `hookgate-testing`, checks any store
/// against this table.
pub trait DedupeStore: fmt::Debug + Send + Sync + 'static {
    /// Claims the event for `token`, for as long as `lease`.
    fn claim<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Claimed>;

    /// Extends the lease of a running claim to `lease` from now.
    fn renew<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Ownership>;

    /// Turns the running claim into a done record that is kept for `retain` from now.
    fn commit<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        retain: Duration,
    ) -> StoreFuture<'a, Ownership>;

    /// Releases the running claim, so that the next copy can claim at once.
    fn release<'a>(&'a self, key: &'a EventKey, token: ClaimToken) -> StoreFuture<'a, Ownership>;

    /// Returns the store's numbers without asking a server: for metrics, and no part of the
    /// contract above.
    ///
    /// `None`, the default, is the right answer of a store that would have to ask a server for
    /// them: callers of this method can't wait.
    fn observe(&self) -> Option<StoreStats> {
        None
    }

    /// Returns the receivers that use these records, so that one with another secret is refused
    /// when it is built: see [`ScopesInUse`]. No part of the contract above.
    ///
    /// `None`, the default: keys are not compared, and each receiver of this store needs its own
    /// scope. A store that wraps another one returns the other's list.
    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        None
    }
}

/// The result of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The claim belongs to the caller: handle the event.
    Fresh,
    /// Another claim is running.
    Running {
        /// The latest time to try again: the remaining lease of the running claim.
        retry_after: Duration,
    },
    /// The event is done.
    Done {
        /// The [mark of the body](ClaimToken::body_mark) that was handled.
        body_mark: u32,
    },
}

/// Whether the caller's token still held the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The record belonged to the caller, and the call took effect.
    Held,
    /// It did not: the lease had ended, or another claim holds or has finished the event. Nothing
    /// was changed.
    Lost,
}

impl Ownership {
    /// Returns `Held` where the token holds the record, and otherwise `Lost`.
    #[must_use]
    pub fn from_held(is_held: bool) -> Self {
        if is_held { Self::Held } else { Self::Lost }
    }
}

/// The longest lease that was given to a store and its clones. A receiver has one length of leases.
///
/// A [commit can be repeated](super::DedupeStore::commit) for one lease. A store whose records do
/// not hold the length of their lease takes this one.
///
/// ```
/// use std::time::Duration;
/// use hookgate::dedupe::LongestLease;
///
/// let longest = LongestLease::default();
/// assert_eq!(longest.get(), Duration::MAX); // none is known
/// longest.note(Duration::from_secs(30));
/// longest.note(Duration::from_secs(10));
/// assert_eq!(longest.get(), Duration::from_secs(30));
/// ```
#[derive(Debug, Default)]
pub struct LongestLease(AtomicU64);

impl LongestLease {
    /// Notes the lease of a claim or a renewal.
    pub fn note(&self, lease: Duration) {
        let lease = nanos_of(lease);
        // A load first: a write would take the cache line from the other threads at each claim.
        if self.0.load(Ordering::Relaxed) < lease {
            self.0.fetch_max(lease, Ordering::Relaxed);
        }
    }

    /// Returns the longest lease. Where none was noted, the claim was made by another store, with a
    /// lease of any length.
    #[must_use]
    pub fn get(&self) -> Duration {
        match self.0.load(Ordering::Relaxed) {
            0 => Duration::MAX,
            lease => Duration::from_nanos(lease),
        }
    }
}

/// The answer of a store in memory, which borrows nothing.
pub(super) type Answer<T> = StoreFuture<'static, T>;

/// A shared store is a store.
impl<S: DedupeStore + ?Sized> DedupeStore for Arc<S> {
    fn claim<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Claimed> {
        (**self).claim(key, token, lease)
    }

    fn renew<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Ownership> {
        (**self).renew(key, token, lease)
    }

    fn commit<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        retain: Duration,
    ) -> StoreFuture<'a, Ownership> {
        (**self).commit(key, token, retain)
    }

    fn release<'a>(&'a self, key: &'a EventKey, token: ClaimToken) -> StoreFuture<'a, Ownership> {
        (**self).release(key, token)
    }

    fn observe(&self) -> Option<StoreStats> {
        (**self).observe()
    }

    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        (**self).scopes_in_use()
    }
}
