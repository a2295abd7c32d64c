//! Look-up of keys: rings that are looked up by subscription id when a delivery needs them, for example in a database.
//!
//! If subscriptions change by the minute, or are too many to hold in memory, a [map](crate::Keys::by_subscription) of all rings
//! would have to be kept in step with their source. In that case the receiver asks a [`SecretProvider`]. The id for the look-up
//! comes from `X-Service-Webhook-Id`, which is not signed, so **any client can cause look-ups**. The following rules keep that
//! cheap.
//!
//! # Rules
//!
//! 1. **Head and age come first.** If the head or the age refuses a request, no keys are looked up. (Of the stale deliveries
//!    that could be retries, up to eight a second are still checked, and looked up for it: after an outage, when they are most
//!    useful, no ring is cached.)
//! 2. **Only ids of the form `wh_[A-Za-z0-9_-]{1,64}` are looked up.** Any other id is an unknown subscription.
//! 3. **An answer is valid for 60 s**, found or unknown, from the *beginning* of the look-up: a removed subscription and a
//!    retired key are refused after 60 s at the latest. [`Keys::forget`](crate::Keys::forget) does it at once. An old answer
//!    is never used because a new one is not available.
//! 4. **Found and unknown ids are remembered separately**, each up to its [limit](crate::ReceiverBuilder::lookup_cache):
//!    invented ids evict no ring.
//! 5. **One look-up for each id.** Deliveries that arrive while it is under way wait for the same answer. It has no leader: if
//!    one of them is dropped, the others go on.
//! 6. **16 look-ups at once**, and 1,024 deliveries that wait for them. Ids that were not found lately get at most three quarters
//!    of both, so that a flood of them leaves room for the next look-up of ids that were found. While look-ups of ids that were
//!    not found lately are queued, ids that were found get at most 14 of the 16, so that known subscriptions alone never keep a
//!    queued look-up of a new one from its turn. No id gets more than a quarter of the places to wait. Among the ids that were
//!    not found lately, ids whose last look-up failed or timed out take turns with all others. If all their places are taken, a look-up in the longer of these two queues, chosen at random, gives its place
//!    to a new one.
//! 7. **A look-up gets 1 s of the delivery's budget**, or half of the budget if that is less. Then the delivery is refused; the
//!    look-up continues for up to 5 s more, so that the retry finds its answer.
//! 8. **Failed, too slow, too many: 503** with `Retry-After`, and never an answer that calls a subscription unknown. A failure
//!    is no answer for a later delivery: the next one asks again, and no restart is needed. A panic is a failure. Only the id is
//!    remembered, for its turn in the queue (rule 6), and only after an error of the provider or a look-up that took 5 s. A
//!    request that was dropped before that is no failure.
//! 9. **An unknown id costs no less work than a known one**: the body is read and hashed, under as many keys as the largest
//!    ring that was found lately, and the answer is the same 401.
//!
//! A ring's scope is the id of its subscription, unless the ring names a scope. A pinned workspace is checked as everywhere.
//! **One secret in two scopes cannot be refused here**, unlike in a map: see [`SecretProvider`](SecretProvider#security).
//!
//! # Information that an attacker can observe
//!
//! The **time** of an answer shows whether an id had to be looked up, and so whether a request with that id came within the
//! last minute. It also separates known from unknown ids if the database takes longer for one of them. While look-ups fail or
//! have to queue, the **status** shows the same: 401 if an id is remembered or gets its turn, 503 if not. A large body shows
//! the number of keys of a ring, because it is hashed under each key; if rings differ in that, an unknown id counts as the
//! largest. Ids are not secrets: they are in a header of every delivery. The keys must stay secret, and neither time nor status
//! shows anything about them.
//!
//! # Sizing, and the cost of a flood
//!
//! - *Found*: set `lookup_cache` to at least the number of subscriptions that deliver within one minute. A ring takes about
//!   half a KiB with one key, 0.8 KiB with four: the default of 16,384 takes 8 MiB when it is full. If [`LookupStats::evicted`]
//!   grows, it is too small, and look-ups repeat within the minute.
//! - *Look-ups*: each live subscription costs one a minute, 10,000 of them 170 a second. With 16 at once the database must
//!   answer within `16 / look-ups a second`, here 90 ms. Where it is
//!   slower, known subscriptions alone take up to 14 look-ups, and new ones share the other two.
//! - *A flood of invented ids* costs the database at most 12 queries at a time. It costs memory for the 4,096 unknown ids, for
//!   up to 4,096 ids whose look-ups failed (this number is fixed), 0.3 KiB each, and for 768 waiting requests. Known subscriptions keep their cached
//!   rings, and have at least four look-ups of their own when these end. A subscription whose look-up failed is looked up at its retry,
//!   because invented ids fail only if the database does, unless 4,096 others have failed since. A subscription whose first
//!   delivery arrives during the flood has to queue with it: if the database answers `s` look-ups a second and the flood brings
//!   `r` new requests a second, each of its deliveries is looked up with a chance of about `s / (s + r)`, else answered 503 and
//!   retried. The remedy is a limit by address in front of the receiver.
//! - *A database that is down*: deliveries of cached subscriptions go on for up to a minute; the others are answered 503
//!   (`secrets_unavailable`, `secrets_too_slow`) and retried by the sender. They go on by themselves when the database works
//!   again. A database that hangs holds its look-ups for up to 5 s.
//!
//! # Example
//!
//! ```
//! use hookgate::{MemoryStore, Receiver, Secret, provider_fn};
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
//!     .store(MemoryStore::default())
//!     .build()?;
//!
//! // When a secret was rotated, or a subscription removed, or added (its id may be remembered as unknown):
//! receiver.keys().forget("wh_1")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The layer looks keys up by itself; a server of your own opens deliveries with [`open_async`](crate::Receiver::open_async).

mod bounded;
mod cache;
mod error;
mod id;
mod keys;
mod lookups;
mod pending;
mod places;
mod provider;
mod resolver;
mod verifier;

pub use error::{LookupError, LookupErrorKind};
pub use id::SubscriptionId;
pub use keys::Keys;
pub use provider::{LookupFuture, ProviderFn, SecretProvider, provider_fn};

pub(crate) use cache::Capacities;
pub(crate) use keys::RingSearch;
#[cfg(feature = "tower")]
pub(crate) use lookups::LONGEST;
pub use resolver::LookupStats;
pub(crate) use resolver::Resolver;
#[cfg(feature = "tower")]
pub(crate) use resolver::Waiting;
pub use verifier::Verifier;
