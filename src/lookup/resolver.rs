//! Finds the ring of a subscription's id: in the cache first, then with the provider.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::task::{Context, Poll, Wake, Waker};

use super::cache::{Cache, Capacities, LIFETIME};
use super::error::{LookupError, LookupErrorKind as Kind};
use super::id::{SubscriptionId, as_looked_up};
use super::lookups::{Lookup, Lookups, Outcome, Step, Waiter, timed_out};
use super::places::LookupId;
use super::provider::{Answer, SecretProvider};
use crate::caught::{Panicked, caught};
use crate::clock::Clock;
use crate::sync::{Mutex, lock};
use crate::verify::KeyRing;

/// Looks up rings. Locks are taken in the order of the fields, and none is held while code from outside this crate runs.
pub(crate) struct Resolver {
    provider: Arc<dyn SecretProvider>,
    clock: Arc<dyn Clock>,
    lookups: Mutex<Lookups>,
    cache: RwLock<Cache>,
}

/// The numbers of remembered answers and of look-ups under way. From [`Keys::lookup_stats`](crate::Keys::lookup_stats);
/// [`Keys::forget`](crate::Keys::forget) has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LookupStats {
    /// Subscriptions whose rings are remembered, including rings that have ended and were not yet removed.
    pub found: usize,
    /// Ids that are remembered as unknown, counted in the same way.
    pub unknown: usize,
    /// Rings that were forgotten before their end to make room, since the start. If it grows,
    /// [`lookup_cache`](crate::ReceiverBuilder::lookup_cache) is too small.
    pub evicted: u64,
    /// Look-ups under way; at most 16.
    pub running: usize,
    /// Deliveries that wait for a look-up, whether it is under way or queued; at most 1,024.
    pub waiting: usize,
}

impl Resolver {
    pub(crate) fn new(
        provider: Arc<dyn SecretProvider>,
        clock: Arc<dyn Clock>,
        capacities: Capacities,
    ) -> Self {
        Self {
            provider,
            clock,
            lookups: Mutex::new(Lookups::new(capacities.found)),
            cache: RwLock::new(Cache::new(capacities)),
        }
    }

    /// Returns the ring in the cache, a decoy for an unknown subscription; or the id to look up.
    pub(crate) fn cached<'h>(&self, webhook_id: &'h [u8]) -> Result<Arc<KeyRing>, &'h str> {
        let now = self.clock.monotonic();
        let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
        match as_looked_up(webhook_id) {
            Some(id) => cache.get(id, now).cloned().ok_or(id),
            // An id of another form is never looked up.
            None => Ok(Arc::clone(cache.decoy(now))),
        }
    }

    /// Joins the look-up of an id that the cache did not know, or begins one.
    pub(crate) fn look_up(self: &Arc<Self>, id: &str) -> Waiting {
        let now = self.clock.monotonic();
        let waiter = self.with_lookups(|lookups| {
            let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
            cache.purge(now);
            // A look-up may have ended after the cache was read.
            if let Some(ring) = cache.get(id, now) {
                return Err(Ok(Arc::clone(ring)));
            }
            drop(cache);
            let waiter = lookups.join(id, now, |id| self.begin(id));
            waiter.map_err(|error| Err(Arc::new(error)))
        });
        Waiting {
            resolver: Arc::clone(self),
            waiter,
        }
    }

    /// Makes the next delivery of this id, or of each id, ask the provider. New deliveries do not join a look-up under way, and its answer is not
    /// remembered.
    pub(crate) fn forget(&self, id: Option<&str>) {
        self.with_lookups(|lookups| {
            lookups.unlist(id);
            let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
            cache.forget(id);
        });
    }

    pub(crate) fn stats(&self) -> LookupStats {
        let (running, waiting) = lock(&self.lookups).counts();
        let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
        let (found, unknown, evicted) = cache.counts();
        LookupStats {
            found,
            unknown,
            evicted,
            running,
            waiting,
        }
    }

    /// Makes the look-up. No code of the provider runs before it is polled.
    fn begin(&self, id: &Arc<str>) -> Lookup {
        let (provider, id) = (Arc::clone(&self.provider), SubscriptionId(Arc::clone(id)));
        Box::pin(async move { provider.look_up(&id).await })
    }

    /// An answer that arrives after its lifetime has ended is not used.
    fn end(&self, lookup_id: LookupId, answer: Result<Answer, Panicked>) {
        let now = self.clock.monotonic();
        let answer = match answer {
            Ok(answer) => answer.map_err(Arc::new),
            // The message may hold a secret, so only the panic hook gets it.
            Err(_) => Err(Arc::new(LookupError::new(Kind::Panicked))),
        };
        let _kept = answer.as_ref().err().cloned(); // its destructor is code from outside this crate and must not run under the lock
        self.with_lookups(|lookups| {
            let Some((id, began)) = lookups.under_way(lookup_id) else {
                return;
            };
            let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
            let outcome = match answer {
                Ok(_) if now.saturating_since(began) >= LIFETIME => Err(timed_out()),
                Ok(Some(ring)) => Ok(Arc::new(ring.of_subscription(&id))),
                Ok(None) => Ok(Arc::clone(cache.decoy(now))),
                Err(error) => Err(error),
            };
            let is_remembered = lookups.end(lookup_id, outcome.clone(), outcome.is_err(), now);
            if let Ok(ring) = outcome
                && is_remembered
            {
                cache.put(&id, &ring, began);
            }
        });
    }

    fn with_lookups<T>(&self, work: impl FnOnce(&mut Lookups) -> T) -> T {
        let mut lookups = lock(&self.lookups);
        let result = work(&mut lookups);
        let deferred = mem::take(&mut lookups.deferred);
        drop(lookups);
        deferred.run();
        result
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// Waits for a look-up, and polls it when it is its turn. There is no leader: if any waiter is dropped, the others go on.
pub(crate) struct Waiting {
    resolver: Arc<Resolver>,
    /// Given up when this is dropped; or an outcome for which nothing waits.
    waiter: Result<Waiter, Outcome>,
}

impl Waiting {
    /// The request waits no more. Returns whether the look-up should go on: it has begun, and no other request waits for it. If
    /// not, this has left it.
    pub(crate) fn detach_if_last(&mut self) -> bool {
        let Ok(waiter) = self.waiter else {
            return false;
        };
        let now = self.resolver.clock.monotonic();
        let stays = self
            .resolver
            .with_lookups(|lookups| lookups.detach_if_last(waiter, now));
        if !stays {
            self.waiter = Err(Err(timed_out()));
        }
        stays
    }
}

impl Future for Waiting {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let resolver = &self.resolver;
        let waiter = match &self.waiter {
            Ok(waiter) => *waiter,
            Err(outcome) => return Poll::Ready(outcome.clone()),
        };
        let (lookup_id, waker) = (waiter.lookup_id, context.waker().clone());
        let mut lookup = match resolver.with_lookups(|lookups| lookups.step(waiter, waker)) {
            Step::Over(outcome) => return Poll::Ready(outcome),
            Step::Wait => return Poll::Pending,
            Step::Poll(lookup) => lookup,
        };
        let waker = Waker::from(Arc::new(LookupWaker {
            resolver: Arc::downgrade(resolver),
            lookup_id,
        }));
        let polled = caught(|| lookup.as_mut().poll(&mut Context::from_waker(&waker)));
        let answer = match polled {
            Ok(Poll::Pending) => {
                resolver.with_lookups(|lookups| lookups.put_back(lookup_id, lookup));
                return Poll::Pending;
            }
            Ok(Poll::Ready(answer)) => Ok(answer),
            Err(panicked) => Err(panicked),
        };
        let _ = caught(|| drop(lookup));
        resolver.end(lookup_id, answer);
        // The outcome is there now: this one's own, or another one that was set first.
        match resolver.with_lookups(|lookups| lookups.step(waiter, waker)) {
            Step::Over(outcome) => Poll::Ready(outcome),
            Step::Poll(_) | Step::Wait => Poll::Pending,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Ok(waiter) = self.waiter {
            let now = self.resolver.clock.monotonic();
            self.resolver
                .with_lookups(|lookups| lookups.leave(waiter, now));
        }
    }
}

/// Wakes a look-up.
struct LookupWaker {
    resolver: Weak<Resolver>,
    lookup_id: LookupId,
}

impl Wake for LookupWaker {
    fn wake(self: Arc<Self>) {
        if let Some(resolver) = self.resolver.upgrade() {
            resolver.with_lookups(|lookups| lookups.wake(self.lookup_id));
        }
    }
}

#[cfg(all(test, feature = "tower"))]
mod tests {
    use super::super::LookupFuture;
    use super::*;
    use crate::clock::SystemClock;

    struct Hangs;

    impl SecretProvider for Hangs {
        fn look_up<'a>(&'a self, _: &'a SubscriptionId) -> LookupFuture<'a> {
            LookupFuture::boxed(std::future::pending())
        }
    }

    #[test]
    fn of_two_that_leave_at_one_moment_the_last_detaches_the_look_up() {
        let (provider, clock) = (Arc::new(Hangs), Arc::new(SystemClock));
        let resolver = Arc::new(Resolver::new(provider, clock, Capacities::default()));
        let (mut first, mut second) = (resolver.look_up("wh_1"), resolver.look_up("wh_1"));
        // Both calls come before either waiter is dropped.
        assert!(!first.detach_if_last());
        assert!(second.detach_if_last());
        assert!(!first.detach_if_last());
        drop(first);
        let stats = resolver.stats();
        assert_eq!((stats.running, stats.waiting), (1, 0));
        drop(second);
        assert_eq!(resolver.stats().running, 0);
    }
}
