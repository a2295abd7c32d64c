//! Finds rings with a provider: remembers its answers, and limits how often it is asked.

use std::collections::HashMap;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moka::{notification::RemovalCause, policy::EvictionPolicy, sync::Cache};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::provider::{LookupError, LookupResult, SecretProvider, SubscriptionId, as_looked_up};
use crate::catch_panic::catch_panic_in;
use crate::clock::{Clock, Monotonic};
use crate::sync::{Mutex, MutexGuard, lock};
use crate::verify::KeyRing;

/// The time for which an answer is valid, from the beginning of its look-up.
const LIFETIME: Duration = Duration::from_secs(60);
/// The same for a ring none of whose keys fits a delivery: the subscription's keys may have been
/// rotated.
const LIFETIME_OF_MISFIT: Duration = Duration::from_secs(10);
/// The time for which an id that was found has the places of known ids, by moka's own clock.
const KNOWN_FOR: Duration = Duration::from_secs(3_600);
const MAX_FOUND: u64 = 16_384;
const MAX_UNKNOWN: u64 = 4_096;

/// Look-ups at a time, and how many of them may be for ids that were not found in the last hour.
const PLACES: usize = 16;
const PLACES_FOR_NEW_IDS: usize = 12;

/// The most time for a look-up in a tokio runtime. It is longer than a delivery waits, so that a
/// slow answer serves the retry.
const LONGEST: Duration = Duration::from_secs(5);

/// Looks up rings.
pub(crate) struct Resolver {
    provider: Arc<dyn SecretProvider>,
    clock: Arc<dyn Clock>,
    /// Two caches: a flood of invented ids evicts no ring.
    found: Cache<Arc<str>, Found>,
    /// Ids of no subscription, each with the end of this answer.
    unknown: Cache<Arc<str>, Monotonic>,
    /// The look-ups that new deliveries join. All answers are written to the caches under this
    /// lock.
    flights: Mutex<Flights>,
    places: Arc<Semaphore>,
    places_for_new_ids: Arc<Semaphore>,
    decoys: Decoys,
    evicted: Arc<AtomicU64>,
}

/// A subscription that was found in the last hour.
#[derive(Clone)]
struct Found {
    /// Absent after the operator has called `forget`.
    ring: Option<Arc<KeyRing>>,
    began: Monotonic,
    ends: Monotonic,
}

type Flights = HashMap<Arc<str>, watch::Receiver<Option<LookupResult>>>;

/// The numbers of remembered answers and of look-ups under way. From
/// [`Keys::lookup_stats`](crate::lookup::Keys::lookup_stats);
/// [`Keys::forget`](crate::lookup::Keys::forget) has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LookupStats {
    /// Subscriptions that were found in the last hour; at most 16,384.
    pub found: usize,
    /// Ids that are remembered as unknown; at most 4,096.
    pub unknown: usize,
    /// Rings that were forgotten before their end to make room, since the start. If it grows, more
    /// than 16,384 subscriptions deliver within a minute: share them among several receivers.
    pub evicted: u64,
    /// Look-ups under way; at most 16.
    pub running: usize,
    /// Ids whose look-up waits for one of these 16 places.
    pub waiting: usize,
}

impl Resolver {
    pub(crate) fn new(provider: Arc<dyn SecretProvider>, clock: Arc<dyn Clock>) -> Self {
        let evicted = Arc::<AtomicU64>::default();
        let (now, count) = (Arc::clone(&clock), Arc::clone(&evicted));
        let evict = move |_: Arc<Arc<str>>, found: Found, why| {
            if why == RemovalCause::Size && found.ring.is_some() && now.monotonic() < found.ends {
                count.fetch_add(1, Ordering::Relaxed);
            }
        };
        // moka's default policy, TinyLFU, forgets fresh ids once the cache is full and has been
        // read.
        Self {
            provider,
            clock,
            found: Cache::builder()
                .eviction_policy(EvictionPolicy::lru())
                .max_capacity(MAX_FOUND)
                .time_to_live(KNOWN_FOR)
                .eviction_listener(evict)
                .build(),
            unknown: Cache::builder()
                .eviction_policy(EvictionPolicy::lru())
                .max_capacity(MAX_UNKNOWN)
                .time_to_live(LIFETIME)
                .build(),
            flights: Mutex::default(),
            places: Arc::new(Semaphore::new(PLACES)),
            places_for_new_ids: Arc::new(Semaphore::new(PLACES_FOR_NEW_IDS)),
            decoys: Decoys::new(),
            evicted,
        }
    }

    /// Returns the remembered ring, a decoy for an unknown subscription; or the id to look up.
    pub(super) fn cached<'h>(&self, webhook_id: &'h [u8]) -> Result<Arc<KeyRing>, &'h str> {
        match as_looked_up(webhook_id) {
            Some(id) => self.remembered(id).ok_or(id),
            // An id of another form is never looked up.
            None => Ok(self.decoys.get(self.clock.monotonic())),
        }
    }

    /// Looks an id up that was not remembered: joins the look-up of another delivery, or begins
    /// one.
    pub(super) async fn look_up(self: Arc<Self>, id: Arc<str>) -> LookupResult {
        loop {
            match self.join(&id) {
                Role::Remembers(ring) => return Ok(ring),
                Role::Leads(flight) => return flight.run().await,
                Role::Waits(mut result) => {
                    // An error: the leader was dropped before the end. This delivery begins again.
                    if let Ok(result) = result.wait_for(Option::is_some).await
                        && let Some(result) = &*result
                    {
                        return result.clone();
                    }
                }
            }
        }
    }

    /// Makes the next delivery of this id, or of each id, ask the provider.
    pub(super) fn forget(&self, id: Option<&str>) {
        let mut flights = lock(&self.flights);
        let ids: Vec<Arc<str>> = match id {
            Some(id) => vec![id.into()],
            None => {
                let found = self.found.iter().map(|(id, _)| (*id).clone());
                let unknown = self.unknown.iter().map(|(id, _)| (*id).clone());
                let remembered = found.chain(unknown);
                remembered.chain(flights.keys().cloned()).collect()
            }
        };
        for id in ids {
            flights.remove(&id);
            self.unknown.invalidate(&id);
            // The id stays one that was found lately, without its ring.
            if let Some(mut found) = self.found.get(&id) {
                found.ring = None;
                self.found.insert(id, found);
            }
        }
    }

    /// No key of a remembered ring has signed a delivery: the subscription's keys may have been
    /// rotated. The ring is remembered for 10 s in place of 60, so an attacker with wrong
    /// signatures causes one look-up in 10 s for each known id.
    pub(super) fn no_key_fits(&self, id: &str) {
        let _flights = lock(&self.flights);
        if let Some(mut found) = self.found.get(id) {
            let ends = found.began.saturating_add(LIFETIME_OF_MISFIT);
            if ends < found.ends {
                found.ends = ends;
                self.found.insert(id.into(), found);
            }
        }
    }

    pub(super) fn stats(&self) -> LookupStats {
        self.found.run_pending_tasks();
        self.unknown.run_pending_tasks();
        let number = |count| usize::try_from(count).unwrap_or(usize::MAX);
        let running = PLACES - self.places.available_permits();
        LookupStats {
            found: number(self.found.entry_count()),
            unknown: number(self.unknown.entry_count()),
            evicted: self.evicted.load(Ordering::Relaxed),
            running,
            waiting: lock(&self.flights).len().saturating_sub(running),
        }
    }

    fn remembered(&self, id: &str) -> Option<Arc<KeyRing>> {
        let now = self.clock.monotonic();
        let found = self.found.get(id).filter(|found| now < found.ends);
        found.and_then(|found| found.ring).or_else(|| {
            let end = self.unknown.get(id)?;
            (now < end).then(|| self.decoys.get(now))
        })
    }

    fn join(self: &Arc<Self>, id: &Arc<str>) -> Role {
        let mut flights = lock(&self.flights);
        // A look-up may have ended after the caches were read.
        if let Some(ring) = self.remembered(id) {
            return Role::Remembers(ring);
        }
        if let Some(result) = flights.get(id) {
            return Role::Waits(result.clone());
        }
        let (sender, result) = watch::channel(None);
        flights.insert(Arc::clone(id), result);
        Role::Leads(Flight {
            resolver: Arc::clone(self),
            id: Arc::clone(id),
            sender,
        })
    }

    /// Remembers a ring, or that there is no such subscription.
    fn remember(&self, id: &Arc<str>, ring: &Arc<KeyRing>, began: Monotonic) {
        let ends = began.saturating_add(LIFETIME);
        if ring.is_decoy {
            self.found.invalidate(id);
            self.unknown.insert(Arc::clone(id), ends);
            return;
        }
        self.unknown.invalidate(id);
        self.decoys.cover(ring, ends);
        let ring = Some(Arc::clone(ring));
        let found = Found { ring, began, ends };
        self.found.insert(Arc::clone(id), found);
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// The part of a delivery in the look-up of its id.
enum Role {
    Remembers(Arc<KeyRing>),
    Waits(watch::Receiver<Option<LookupResult>>),
    Leads(Flight),
}

/// The look-up of one id. Other deliveries of the id wait for its result; if this is dropped
/// before, one of them begins again.
struct Flight {
    resolver: Arc<Resolver>,
    id: Arc<str>,
    sender: watch::Sender<Option<LookupResult>>,
}

impl Flight {
    /// Waits for a place, and asks the provider. In a tokio runtime the question is a task of its
    /// own, which goes on if the delivery is dropped.
    async fn run(self) -> LookupResult {
        let resolver = Arc::clone(&self.resolver);
        // The delivery itself waits for the place, so a delivery that is dropped leaves the queue.
        let acquire = |places: &Arc<Semaphore>| Arc::clone(places).acquire_owned();
        let place_for_new_id = if resolver.found.contains_key(&self.id) {
            None
        } else {
            Some(acquire(&resolver.places_for_new_ids).await)
        };
        let place = acquire(&resolver.places).await;
        let runtime = Handle::try_current().ok();
        let is_task = runtime.is_some();
        let look_up = async move {
            let began = self.resolver.clock.monotonic();
            let answer = self.ask(is_task).await;
            drop((place, place_for_new_id));
            self.end(answer, began)
        };
        let Some(runtime) = runtime else {
            return look_up.await;
        };
        #[cfg(feature = "tracing")]
        let look_up = tracing::Instrument::in_current_span(look_up);
        let cut_off = |_| Err(Arc::new(LookupError::Panicked));
        runtime.spawn(look_up).await.unwrap_or_else(cut_off)
    }

    async fn ask(&self, is_task: bool) -> Result<Option<KeyRing>, LookupError> {
        let id = SubscriptionId(Arc::clone(&self.id));
        let call = pin!(async {
            let answer = self.resolver.provider.look_up(&id);
            if !is_task {
                return Ok(answer.await?);
            }
            match timeout(LONGEST, answer).await {
                Ok(answer) => Ok(answer?),
                Err(_) => Err(LookupError::TimedOut),
            }
        });
        // The message of a panic may hold a secret, so only the panic hook gets it.
        let answer = catch_panic_in(call).await;
        answer.unwrap_or(Err(LookupError::Panicked))
    }

    /// Gives the answer to all waiting deliveries, and remembers it unless the id was forgotten
    /// meanwhile.
    fn end(self, answer: Result<Option<KeyRing>, LookupError>, began: Monotonic) -> LookupResult {
        let resolver = &self.resolver;
        let now = resolver.clock.monotonic();
        let result = match answer {
            // An answer that arrives after its lifetime has ended is not used.
            Ok(_) if now.saturating_since(began) >= LIFETIME => Err(LookupError::TimedOut),
            Ok(Some(mut ring)) => {
                // A provider serves the default scheme.
                ring.forget_texts();
                Ok(Arc::new(ring.with_subscription(&self.id)))
            }
            Ok(None) => Ok(resolver.decoys.get(now)),
            Err(error) => Err(error),
        };
        let result = result.map_err(Arc::new);
        let mut flights = lock(&resolver.flights);
        if self.leave(&mut flights)
            && let Ok(ring) = &result
        {
            resolver.remember(&self.id, ring, began);
        }
        drop(flights);
        self.sender.send_replace(Some(result.clone()));
        result
    }

    /// Lets no new delivery join. Returns false if the id was forgotten, so that another look-up
    /// may be under way.
    fn leave(&self, flights: &mut MutexGuard<'_, Flights>) -> bool {
        let own = self.sender.subscribe();
        let is_joined = flights
            .get(&self.id)
            .is_some_and(|flight| flight.same_channel(&own));
        if is_joined {
            flights.remove(&self.id);
        }
        is_joined
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.leave(&mut lock(&self.resolver.flights));
    }
}

/// The rings for unknown subscriptions: a check with one takes as long as a check with the largest
/// ring, and fails.
struct Decoys {
    /// One for each number of keys, from one.
    rings: [Arc<KeyRing>; KeyRing::MAX_KEYS],
    /// The end of the last ring that was found with so many keys.
    ends: Mutex<[Monotonic; KeyRing::MAX_KEYS]>,
}

impl Decoys {
    fn new() -> Self {
        Self {
            rings: std::array::from_fn(|index| KeyRing::decoy(index + 1)),
            ends: Mutex::default(),
        }
    }

    /// Returns a decoy with as many keys as the largest ring that has not ended.
    fn get(&self, now: Monotonic) -> Arc<KeyRing> {
        let largest = lock(&self.ends).iter().rposition(|end| now < *end);
        Arc::clone(&self.rings[largest.unwrap_or_default()])
    }

    /// Takes note of a ring that was found, and of its end.
    fn cover(&self, ring: &KeyRing, ends: Monotonic) {
        if let Some(end) = lock(&self.ends).get_mut(ring.key_count() - 1) {
            *end = ends.max(*end);
        }
    }
}
