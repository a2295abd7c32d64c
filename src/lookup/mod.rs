//! Keys of subscriptions: held in memory, or looked up by a provider (feature `lookup`) when a delivery needs them.
//!
#![cfg_attr(feature = "lookup", doc = include_str!("../../docs/lookup.md"))]

mod keys;
#[cfg(feature = "lookup")]
mod provider;
#[cfg(feature = "lookup")]
mod resolver;
pub(crate) mod verifier;

pub use keys::{Keys, SubscriptionId};
#[cfg(feature = "lookup")]
pub use provider::SecretProvider;
#[cfg(feature = "lookup")]
pub use resolver::LookupStats;

pub(crate) use keys::{LookupError, RingSearch};
#[cfg(feature = "lookup")]
pub(crate) use resolver::Resolver;
pub(crate) use verifier::Verifier;
