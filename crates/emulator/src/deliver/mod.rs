//! The service's delivery engine: subscriptions, deliveries with their attempts, and their schedule
//! on the emulator's time.
//!
//! The schedule, the signatures and the attempts are those of `hookgate_testing::sender`. Here are
//! the times, since this clock can be advanced, and the log.

mod attempts;
mod engine;
mod explain;
mod manage;
mod passing;
mod record;
mod route;
mod state;
mod subscription;

pub(crate) use engine::{Deliveries, Parts, Wanted};
pub(crate) use record::{Delivery, DeliveryState, Record};
pub(crate) use route::{EXAMPLE, Reach, Route};
pub(crate) use subscription::Subscription;

#[cfg(test)]
mod tests;
