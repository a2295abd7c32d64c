//! Finds the ring of a subscription's id: in the cache first, then with the provider.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use super::cache::Capacities;
use super::error::LookupError;
use super::id::{SubscriptionId, as_looked_up};
use super::lookups::{Lookup, Lookups, Outcome, Waiter};
use super::places::LookupId;
use super::provider::SecretProvider;
use crate::catch_panic::catch_panic;
use crate::clock::Clock;
use crate::sync::{Mutex, lock};
use crate::verify::KeyRing;

/// Looks up rings. The lock is not held while code from outside this crate runs.
pub(crate) struct Resolver {
    provider: Arc<dyn SecretProvider>,
    clock: Arc<dyn Clock>,
    lookups: Mutex<Lookups>,
}

/// The numbers of remembered answers and of look-ups under way. From [`Keys::lookup_stats`](crate::lookup::Keys::lookup_stats);
/// [`Keys::forget`](crate::lookup::Keys::forget) has an example.
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
            lookups: Mutex::new(Lookups::new(capacities)),
        }
    }

    /// Returns the ring in the cache, a decoy for an unknown subscription; or the id to look up.
    pub(crate) fn cached<'h>(&self, webhook_id: &'h [u8]) -> Result<Arc<KeyRing>, &'h str> {
        let now = self.clock.monotonic();
        let cache = &lock(&self.lookups).cache;
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
            lookups.cache.purge(now);
            // A look-up may have ended after the cache was read.
            if let Some(ring) = lookups.cache.get(id, now) {
                return Err(Ok(Arc::clone(ring)));
            }
            let waiter = lookups.join(id, now, |id| self.begin(id));
            waiter.map_err(|error| Err(Arc::new(error)))
        });
        Waiting {
            resolver: Arc::clone(self),
            waiter,
        }
    }

    /// Makes the next delivery of this id, or of each id, ask the provider.
    pub(crate) fn forget(&self, id: Option<&str>) {
        self.with_lookups(|lookups| lookups.forget(id));
    }

    pub(crate) fn stats(&self) -> LookupStats {
        let lookups = lock(&self.lookups);
        let (running, waiting) = lookups.counts();
        let (found, unknown, evicted) = lookups.cache.counts();
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
        Box::pin(async move { provider.look_up(&id).await.map_err(LookupError::from) })
    }

    fn with_lookups<T>(&self, work: impl FnOnce(&mut Lookups) -> T) -> T {
        let mut lookups = lock(&self.lookups);
        let result = work(&mut lookups);
        let deferred = mem::take(&mut lookups.deferred);
        drop(lookups);
        // Each call by itself: a panic in one must not keep another waiter asleep.
        for call in deferred {
            let _ = catch_panic(call);
        }
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
    /// Leaves its look-up when this is dropped; or an outcome that was there at once.
    waiter: Result<Waiter, Outcome>,
}

impl Waiting {
    /// The request waits no more. Returns whether the look-up should go on: it has started, and no other request waits for it. If
    /// not, this has left it.
    pub(crate) fn detach_if_last(&mut self) -> bool {
        let now = self.resolver.clock.monotonic();
        let (resolver, Ok(waiter)) = (&self.resolver, &mut self.waiter) else {
            return false;
        };
        resolver.with_lookups(|lookups| lookups.detach_if_last(waiter, now))
    }
}

impl Future for Waiting {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let resolver = &self.resolver;
        let waiter = match &self.waiter {
            Ok(waiter) => waiter,
            Err(outcome) => return Poll::Ready(outcome.clone()),
        };
        let (lookup_id, waker) = (waiter.lookup_id, context.waker().clone());
        if let Some(mut lookup) = resolver.with_lookups(|lookups| lookups.step(waiter, waker)) {
            let waker = Waker::from(Arc::new(LookupWaker {
                resolver: Arc::downgrade(resolver),
                lookup_id,
            }));
            let polled = catch_panic(|| lookup.as_mut().poll(&mut Context::from_waker(&waker)));
            // The message of a panic may hold a secret, so only the panic hook gets it.
            let panicked = |_| Poll::Ready(Err(LookupError::Panicked));
            match polled.unwrap_or_else(panicked) {
                Poll::Pending => resolver.with_lookups(|all| all.put_back(lookup_id, lookup)),
                Poll::Ready(answer) => {
                    let _ = catch_panic(|| drop(lookup));
                    let now = resolver.clock.monotonic();
                    resolver.with_lookups(|lookups| lookups.end(lookup_id, answer, now));
                }
            }
        }
        // Read after the step: from then on, the end of the look-up wakes this waiter.
        let outcome = waiter.outcome.get().cloned();
        outcome.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Ok(waiter) = &mut self.waiter {
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
    use super::super::error::ProviderError;
    use super::*;
    use crate::clock::SystemClock;
    use crate::future::StoreFuture;

    struct Hangs;

    impl SecretProvider for Hangs {
        fn look_up<'a>(
            &'a self,
            _: &'a SubscriptionId,
        ) -> StoreFuture<'a, Option<KeyRing>, ProviderError> {
            StoreFuture::boxed(std::future::pending())
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
