//! Deduplication: claims on events.
//!
//! ```
//! use std::time::Duration;
//!
//! use hookgate::{MemoryStore, Receiver, Secret, dedupe::Capacity};
//!
//! // Two events a second, each remembered for two days. More are refused with 503, not forgotten.
//! let capacity = Capacity::for_rate(2.0, Duration::from_secs(48 * 3_600)).refusing_when_full();
//! let store = MemoryStore::new(capacity);
//! let receiver = Receiver::builder()
//!     .secret(Secret::new("whsec_made_up_for_this_example")?)
//!     .store(store.clone()) // the same memory, for its figures
//!     .build()?;
//! assert_eq!((receiver.runs(), store.capacity().records()), (0, 345_600));
//! # Ok::<(), hookgate::ConfigError>(())
//! ```
//!
//! The service may deliver an event more than once, and delivers an event again if it believes that
//! a delivery has failed. So each event is **claimed** before it is handled, by its id from the
//! signed body and the scope of the keys that verified it:
//!
//! ```text
//!            claim                     commit
//!  absent ───────────▶ running(token) ────────▶ done(token)
//!    ▲                   │        │                  │
//!    ├──── release ──────┘        │                  │
//!    ├──── the lease ends ────────┘                  │
//!    └──── the retention ends ───────────────────────┘
//! ```
//!
//! There are three states, since two states lose events. If an event were marked *seen* before its
//! handler has succeeded, the retry of a failed run would be ignored. If it were marked afterwards,
//! two copies could run. And a copy that finds a **running** claim must not be answered *done*:
//! that run may still fail.
//!
//! # What is promised
//! - **Once.** Of any number of copies that come at the same moment, one gets the claim. The holder
//!   of a claim is identified by a token, and a run that lost its lease can't undo the record of a
//!   later run. The token guards our record only: it can't stop effects that are already under way.
//! - **A claim ends by itself.** It has a lease, which is renewed while its run is alive. When a
//!   process dies, its leases end before the first retry comes, so the retry runs. The lease is
//!   counted from when the claim is called: an answer that comes after the lease has ended starts
//!   no run.
//! - **Remembered long enough.** A finished event is kept for a fixed time from its commit, and
//!   duplicates don't extend it. That time must be longer than the sender's *whole*
//!   [`RetrySchedule`], more than a day, and not merely the 300 s for which a signature is fresh.
//!   Each retry carries a new timestamp, so its signature is fresh, and only this record shows that
//!   it is a duplicate.
//! - **No event is forgotten without a report.** A store in memory has an explicit [`Capacity`].
//!   When it is full it either evicts the oldest finished event, which is counted with its age, or
//!   refuses fresh ones; running claims are never forgotten.
//!
//! # Choosing a store
//! [Guarantees](crate::guide::guarantees) has five questions that lead to a store, and the promises
//! of each for each fault. In this module are [`MemoryStore`](crate::MemoryStore), the reference,
//! and `MokaStore` (feature `moka`): both forget all events at a restart. The packages
//! `hookgate-sqlite`, `hookgate-postgres` and `hookgate-redis` have stores that remember them. Your
//! own store implements [`DedupeStore`].
//!
//! A store is never chosen implicitly. A store written outside this crate is checked by the same
//! suite as the ones inside: `StoreConformance` of the package `hookgate-testing`.

mod capacity;
mod claim_in;
pub(crate) mod key;
pub(crate) mod memory;
#[cfg(feature = "moka")]
mod moka_store;
#[cfg(all(test, shuttle))]
pub(crate) mod races;
mod running;
mod schedule;
mod scopes;
pub(crate) mod store_contract;

pub use crate::future::StoreFuture;
pub use crate::store_error::{StoreError, StoreErrorKind};
pub use capacity::{Capacity, StoreStats};
pub use claim_in::{ClaimValues, ClaimedIn, NotFresh};
pub use key::{ClaimToken, EventKey};
#[cfg(feature = "moka")]
pub use moka_store::MokaStore;
pub use schedule::{Attempt, RetrySchedule};
pub use scopes::ScopesInUse;
pub(crate) use store_contract::DedupeStore;
pub use store_contract::{Claimed, LongestLease, Ownership};

pub(crate) use scopes::ScopeEntry;
