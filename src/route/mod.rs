//! The event router: arms by event type and data model. Each arm is an ordinary axum handler.
//!
#![doc = include_str!("../../docs/router.md")]

mod dispatch;
mod router;
mod subscriptions;
mod table;

pub use router::EventRouter;
pub use subscriptions::{Subscription, SubscriptionWarning, Subscriptions};
