//! The steps of a delivery and their policy, without a framework: [`Authenticator`] goes from a request's head to a [`Delivery`],
//! [`Claims`] from there to a [`Claim`]. The receiver, the layer and the acceptor take these steps.

mod admit;
mod attributes;
mod authenticate;
mod claim;
pub(crate) mod delivery;
mod gate;
mod head;
mod health;
mod range;
mod store;
mod stored;
mod traceparent;
mod verify_stored;

pub use admit::Admission;
pub use claim::Claim;
pub(crate) use delivery::Delivery;
pub use head::RequestHead;
pub use health::Health;
pub use stored::StoredDelivery;

pub(crate) use admit::Claims;
pub(crate) use authenticate::{Authenticator, CheckedHead};
pub(crate) use claim::{ForHealth, Settlement};
pub(crate) use gate::Gate;
pub(crate) use range::in_range;
pub(crate) use store::Store;
pub use store::guarded;
pub(crate) use traceparent::TRACEPARENT;
