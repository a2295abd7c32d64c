//! Whose keys: rings of keys that are looked up by subscription id, in a database for instance, when a delivery needs them.
//!
//! Where subscriptions come and go by the minute, or are too many to hold, a [map](crate::Keys::by_subscription) of all rings
//! has to be kept in step with the place where they live. A [`SecretProvider`] is asked instead. The id that it is asked for
//! comes from `X-Service-Webhook-Id`, which is not signed, so **anyone can cause look-ups**. What follows is what keeps that cheap.
//!
//! # Rules
//!
//! 1. **Head and age come first.** A request that its head refuses, or its age, is not looked up. (Of the stale deliveries
//!    that could be retries, up to eight a second are checked all the same, and looked up for it: after an outage, when they tell
//!    most, no ring is cached.)
//! 2. **Only ids of the form `wh_[A-Za-z0-9_-]{1,64}` are looked up.** Any other is an unknown subscription.
//! 3. **What was found counts for 60 s**, and what was not found as well, from the *beginning* of the look-up: a subscription that is
//!    removed, and a key that is retired, are refused after 60 s at the latest. [`Keys::forget`](crate::Keys::forget) makes it at once.
//!    An old answer is never used because no new one can be had.
//! 4. **Found and unknown ids are remembered apart**, each up to its [limit](crate::ReceiverBuilder::lookup_cache): invented ids evict
//!    no ring.
//! 5. **One look-up an id.** Deliveries that come while it is under way wait for the same answer. It has no leader: any of them may be
//!    dropped, the others go on.
//! 6. **16 look-ups at once**, and 1,024 deliveries that wait for them. Ids that were not found lately get three quarters of both, so
//!    that a flood of them leaves room for the next look-up of those that were; no id gets more than a quarter of the places to wait.
//!    Among them, ids whose last look-up brought no answer have their turn alternately with all others. Where all their places are taken,
//!    a look-up in the longer of these two queues, chosen at random, gives way to one that begins.
//! 7. **A look-up gets 1 s of the delivery's budget**, or half of the budget if that is less. Then the delivery is refused; the look-up
//!    goes on for up to 5 s more, so that the retry finds its answer.
//! 8. **Failed, too slow, too many: 503** with `Retry-After`, and never an answer that calls a subscription unknown. A failure is
//!    not remembered: the next delivery asks again, and nobody has to restart anything. A panic is a failure.
//! 9. **An unknown id costs no less work than a known one**: the body is read and hashed, under as many keys as the largest ring has
//!    that was found lately, and the answer is the same 401.
//!
//! A ring's scope is its subscription's id, unless it names one; a pinned workspace is kept as everywhere. **One secret in two
//! scopes can't be refused here**, as it is in a map: see [`SecretProvider`](SecretProvider#security).
//!
//! # What remains observable
//!
//! The **time** of an answer tells whether an id had to be looked up, and so whether somebody has sent that id within the last minute;
//! it tells known from unknown ids if the database takes longer over one of them. While look-ups fail or have to queue, the
//! **status** tells as much: 401 where an id is remembered or gets its turn, 503 where not. And a large body shows how many keys a
//! ring has, for it is hashed under each; where rings differ in that, an unknown id counts as the largest.
//! Ids are no secrets: they stand in a header of every delivery. What must stay secret are the keys, and of those neither time nor
//! status tells anything.
//!
//! # Sizing, and what a flood costs
//!
//! - *Found*: set `lookup_cache` to no less than the subscriptions that deliver within one minute. A ring takes about half a KiB
//!   with one key, 0.8 KiB with four: the default of 16,384 comes to 8 MiB when it is full. Where [`LookupStats::evicted`] grows,
//!   it is too small, and look-ups repeat within the minute.
//! - *Look-ups*: each live subscription costs one a minute, 10,000 of them 170 a second. With 16 at once the database must answer
//!   within `16 / look-ups a second`, here 90 ms.
//! - *A flood of invented ids* costs the database at most 12 queries at a time, and memory the 4,096 unknown ids, as many whose look-ups
//!   failed, 0.3 KiB each, and 768 waiting requests. Known subscriptions keep their cached rings, and four look-ups of their own when
//!   these end. A subscription whose look-up failed is looked up at its retry, since invented ids fail only where the database does,
//!   unless 4,096 others have failed since. One whose first delivery falls into the flood has to queue with it: where the database answers
//!   `s` look-ups a second and the flood brings `r` new requests a second, each of its deliveries is looked up with a chance of
//!   about `s / (s + r)`, else answered 503 and retried. A limit by address, in front of the receiver, is the cure.
//! - *A database that is down*: deliveries of cached subscriptions go on for up to a minute, the others are answered 503
//!   (`secrets_unavailable`, `secrets_too_slow`) and retried by the sender. They go on by themselves when it is back; one that hangs
//!   holds its look-ups for up to 5 s.
//!
//! # Example
//!
//! ```
//! use hookgate::{LocalStore, Receiver, Secret, provider_fn};
//! # struct Database;
//! # impl Database { async fn secret_of(&self, _: &str) -> Result<Option<String>, std::io::Error> { Ok(None) } }
//! # let database = std::sync::Arc::new(Database);
//!
//! let receiver = Receiver::builder()
//!     .provider(provider_fn(move |id| {
//!         let database = database.clone();
//!         async move {
//!             let text = database.secret_of(id.as_str()).await?;
//!             let secret = text.map(|text| Secret::new(&text)).transpose()?;
//!             Ok::<_, Box<dyn std::error::Error + Send + Sync>>(secret)
//!         }
//!     }))
//!     .lookup_cache(50_000, 4_096)
//!     .store(LocalStore::default())
//!     .build()?;
//!
//! // When a secret was rotated, or a subscription removed, or added (its id may be remembered as unknown):
//! receiver.keys().forget("wh_1")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The layer looks up by itself; a server of your own opens deliveries with [`open_async`](crate::Receiver::open_async).

mod board;
mod bounded;
mod cache;
mod flight;
mod id;
mod places;
mod provider;
mod resolver;

pub use id::SubscriptionId;
pub use provider::{LookupFuture, ProviderFn, SecretProvider, provider_fn};

#[cfg(feature = "tower")]
pub(crate) use board::LONGEST;
pub(crate) use cache::Capacities;
pub(crate) use resolver::{Cached, Resolver, Waiting};

/// How much is remembered of what was looked up, and how much is under way. From
/// [`Keys::lookup_stats`](crate::Keys::lookup_stats); [`Keys::forget`](crate::Keys::forget) has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LookupStats {
    /// Subscriptions whose rings are remembered, those included that have ended and were not swept yet.
    pub found: usize,
    /// Ids that are remembered as unknown, likewise.
    pub unknown: usize,
    /// Rings that were forgotten before their end to make room, since the start. Where it grows,
    /// [`lookup_cache`](crate::ReceiverBuilder::lookup_cache) is too small.
    pub evicted: u64,
    /// Look-ups under way; at most 16.
    pub running: usize,
    /// Deliveries that wait for a look-up, whether it is under way or queued; at most 1,024.
    pub waiting: usize,
}
