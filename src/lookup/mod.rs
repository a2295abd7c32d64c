//! Look-up of keys: rings that are looked up by subscription id when a delivery needs them.
//!
#![doc = include_str!("../../docs/lookup.md")]

mod bounded;
mod cache;
mod error;
mod id;
mod keys;
mod lookups;
mod places;
mod provider;
mod resolver;
pub(crate) mod verifier;

pub(crate) use error::LookupError;
pub use id::SubscriptionId;
pub use keys::Keys;
pub use provider::{SecretProvider, provider_fn};

pub(crate) use cache::Capacities;
pub(crate) use keys::RingSearch;
pub(crate) use lookups::LONGEST;
pub use resolver::LookupStats;
pub(crate) use resolver::Resolver;
pub(crate) use resolver::Waiting;
pub(crate) use verifier::Verifier;
