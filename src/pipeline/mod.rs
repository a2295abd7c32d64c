//! The steps of a delivery and their policy, without a framework: [`Authenticator`] goes from a request's head to a [`Delivery`],
//! [`Claims`] from there to a [`Claim`]. The receiver, the layer and the acceptor take these steps.

mod admit;
mod attributes;
mod authenticate;
mod claims;
pub(crate) mod delivery;
mod gate;
mod health;
mod range;
mod request_head;
mod stale;
mod store_calls;
mod stored_delivery;
mod traceparent;
mod verify_stored;

pub use admit::Admission;
pub use claims::Claim;
pub(crate) use delivery::Delivery;
pub use health::Health;
pub use request_head::RequestHead;
pub use stored_delivery::StoredDelivery;

pub(crate) use admit::Claims;
pub(crate) use authenticate::{Authenticator, CheckedHead};
pub(crate) use claims::{ForHealth, Settlement};
pub(crate) use gate::{Gate, OnIdle};
pub(crate) use range::in_range;
pub(crate) use store_calls::Store;
pub use store_calls::guarded;
pub(crate) use traceparent::TRACEPARENT;
