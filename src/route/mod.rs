//! The event router: arms by event type and data model. Each arm is an ordinary axum handler.
//!
#![doc = include_str!("../../docs/router.md")]

pub(crate) mod router;

pub use router::Subscription;
