//! Keys of subscriptions: held in memory, or looked up by a provider (feature `lookup`) when a
//! delivery needs them.
//!
//! [rotation page]: crate::guide::rotation
//!
#![cfg_attr(feature = "lookup", doc = include_str!("../../docs/lookup.md"))]

mod keys;
mod provider;
#[cfg(feature = "lookup")]
mod resolver;
pub(crate) mod verifier;

pub use keys::Keys;
#[cfg(feature = "lookup")]
pub use provider::SecretProvider;
pub use provider::SubscriptionId;
#[cfg(feature = "lookup")]
pub use resolver::LookupStats;

pub(crate) use keys::RingSearch;
pub(crate) use provider::LookupError;
#[cfg(feature = "lookup")]
pub(crate) use resolver::Resolver;
pub(crate) use verifier::Verifier;
