//! Finds the ring of a subscription's id: in the cache first, then with the provider.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::task::{Context, Poll, Wake, Waker};

use super::board::{Board, Seat, Step};
use super::cache::{Cache, Capacities, LIFETIME};
use super::error::{LookupError, LookupErrorKind as Kind};
use super::flight::{Afterwards, Lookup, Outcome};
use super::id::{SubscriptionId, as_looked_up};
use super::places::Ticket;
use super::provider::{Answer, SecretProvider};
use crate::caught::{Panicked, caught};
use crate::clock::{Clock, Monotonic};
use crate::verify::Ring;

/// Looks up rings. Locks are taken in the order of the fields, and none is held while code from outside this crate runs.
pub(crate) struct Resolver {
    provider: Arc<dyn SecretProvider>,
    clock: Arc<dyn Clock>,
    board: Mutex<Board>,
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

/// The answer of the cache for an id.
pub(crate) enum Cached<'h> {
    /// The ring. `None` if there is no such subscription, or if the id has another form, which is never looked up.
    Known(Option<Arc<Ring>>),
    /// The provider has to be asked.
    Absent(&'h str),
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
            board: Mutex::default(),
            cache: RwLock::new(Cache::new(capacities)),
        }
    }

    /// Answers from the cache.
    pub(crate) fn cached<'h>(&self, webhook_id: &'h [u8]) -> Cached<'h> {
        let Some(id) = as_looked_up(webhook_id) else {
            return Cached::Known(None);
        };
        let now = self.clock.monotonic();
        let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
        let known = cache.get(id, now);
        known.map_or(Cached::Absent(id), |ring| Cached::Known(ring.cloned()))
    }

    /// Joins the look-up of an id that the cache did not know, or begins one.
    pub(crate) fn look_up(self: &Arc<Self>, id: &str) -> Waiting {
        let now = self.clock.monotonic();
        let joined = self.on_board(|board, after| {
            let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
            cache.purge(now);
            // A look-up may have ended after the cache was read.
            if let Some(ring) = cache.get(id, now) {
                return Err(Ok(ring.cloned()));
            }
            let standing = cache.standing(id);
            drop(cache);
            let seat = board.join(id, standing, now, |id| self.begin(id), after);
            seat.map_err(|error| Err(Arc::new(error)))
        });
        Waiting {
            resolver: Arc::clone(self),
            turn: joined.map_or_else(Turn::Over, Turn::Seated),
        }
    }

    /// Makes the next delivery ask the provider. New deliveries do not join a look-up under way, and its answer is not
    /// remembered.
    pub(crate) fn forget(&self, id: &str) {
        self.on_board(|board, _| {
            board.unlist(id);
            let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
            cache.forget(id);
        });
    }

    pub(crate) fn forget_all(&self) {
        self.on_board(|board, _| {
            board.unlist_all();
            let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
            cache.forget_all();
        });
    }

    /// Returns the number of keys of the largest ring that was found lately.
    pub(crate) fn most_keys(&self) -> usize {
        let now = self.clock.monotonic();
        let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
        cache.most_keys(now)
    }

    pub(crate) fn stats(&self) -> LookupStats {
        let board = self.board();
        let (running, waiting) = board.counts();
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

    fn end(&self, ticket: Ticket, answer: Result<Answer, Panicked>) {
        let now = self.clock.monotonic();
        let about = {
            let board = self.board();
            board.id(ticket).zip(board.began(ticket))
        };
        let outcome = outcome(answer, about, now);
        let kept = outcome.clone(); // keeps a provider's error alive: its destructor is code from outside this crate and must not run under the lock
        self.on_board(|board, after| {
            let Some((id, began)) = board.end(ticket, outcome, now, after) else {
                return;
            };
            if let Ok(ring) = &kept {
                let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
                cache.put(&id, ring.as_ref(), began);
            }
        });
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_board<T>(&self, work: impl FnOnce(&mut Board, &mut Afterwards) -> T) -> T {
        let mut after = Afterwards::default();
        let result = work(&mut self.board(), &mut after);
        if !after.unanswered.is_empty() {
            let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
            for id in &after.unanswered {
                cache.leave_unanswered(id);
            }
        }
        after.run();
        result
    }
}

/// Turns an answer into the outcome of a look-up. An answer that arrives after its lifetime has ended is not used.
fn outcome(
    answer: Result<Answer, Panicked>,
    about: Option<(Arc<str>, Monotonic)>,
    now: Monotonic,
) -> Outcome {
    let error = match answer {
        Ok(Ok(found)) => match about {
            Some((id, began)) if now.saturating_since(began) < LIFETIME => {
                return Ok(found.map(|ring| Arc::new(Ring::of_subscription(&id, ring))));
            }
            _ => LookupError::new(Kind::TimedOut),
        },
        Ok(Err(error)) => error,
        // The message may hold a secret, so only the panic hook gets it.
        Err(_) => LookupError::new(Kind::Panicked),
    };
    Err(Arc::new(error))
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
    turn: Turn,
}

enum Turn {
    /// A seat, given up when the `Waiting` is dropped.
    Seated(Seat),
    /// An answer that needed no waiting.
    Over(Outcome),
    /// The seat was already given up.
    #[cfg(feature = "tower")]
    Left,
}

impl Waiting {
    /// The request waits no more. Returns whether the look-up should go on: it has begun, and no other request waits for it. If
    /// not, this has left it.
    #[cfg(feature = "tower")]
    pub(crate) fn stays_behind(&mut self) -> bool {
        let Turn::Seated(seat) = &mut self.turn else {
            return false;
        };
        let now = self.resolver.clock.monotonic();
        let stays = self
            .resolver
            .on_board(|board, after| board.stay_behind(seat, now, after));
        if !stays {
            self.turn = Turn::Left;
        }
        stays
    }
}

impl Future for Waiting {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let this = self.get_mut();
        let seat = match &this.turn {
            Turn::Seated(seat) => *seat,
            Turn::Over(outcome) => return Poll::Ready(outcome.clone()),
            #[cfg(feature = "tower")]
            Turn::Left => return Poll::Ready(Err(Arc::new(LookupError::new(Kind::TimedOut)))),
        };
        let waker = context.waker().clone();
        let step = this
            .resolver
            .on_board(|board, after| board.step(seat, waker, after));
        let mut lookup = match step {
            Step::Over(outcome) => return Poll::Ready(outcome),
            Step::Wait => return Poll::Pending,
            Step::Poll(lookup) => lookup,
        };
        let knock = Waker::from(Arc::new(Knock {
            resolver: Arc::downgrade(&this.resolver),
            ticket: seat.ticket,
        }));
        let answer = match caught(|| lookup.as_mut().poll(&mut Context::from_waker(&knock))) {
            Ok(Poll::Pending) => {
                this.resolver
                    .on_board(|board, after| board.put_back(seat.ticket, lookup, after));
                return Poll::Pending;
            }
            Ok(Poll::Ready(answer)) => Ok(answer),
            Err(panicked) => Err(panicked),
        };
        let _ = caught(|| drop(lookup));
        this.resolver.end(seat.ticket, answer);
        // The outcome is there now: this one's own, or another one that was set first.
        match this
            .resolver
            .on_board(|board, after| board.step(seat, knock, after))
        {
            Step::Over(outcome) => Poll::Ready(outcome),
            Step::Poll(_) | Step::Wait => Poll::Pending,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Turn::Seated(seat) = self.turn {
            let now = self.resolver.clock.monotonic();
            self.resolver
                .on_board(|board, after| board.leave(seat, now, after));
        }
    }
}

/// Wakes a look-up.
struct Knock {
    resolver: Weak<Resolver>,
    ticket: Ticket,
}

impl Wake for Knock {
    fn wake(self: Arc<Self>) {
        if let Some(resolver) = self.resolver.upgrade() {
            resolver.on_board(|board, after| board.knock(self.ticket, after));
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
    fn of_two_who_leave_at_one_moment_the_last_stays_behind() {
        let (provider, clock) = (Arc::new(Hangs), Arc::new(SystemClock));
        let resolver = Arc::new(Resolver::new(provider, clock, Capacities::default()));
        let (mut first, mut second) = (resolver.look_up("wh_1"), resolver.look_up("wh_1"));
        // Both calls come before either waiter is dropped.
        assert!(!first.stays_behind());
        assert!(second.stays_behind());
        assert!(!first.stays_behind());
        drop(first);
        let stats = resolver.stats();
        assert_eq!((stats.running, stats.waiting), (1, 0));
        drop(second);
        assert_eq!(resolver.stats().running, 0);
    }
}
