//! The steps of a delivery and their policy, without a framework: [`Authenticator`] goes from a
//! request's head to a [`Delivery`], [`Claims`] from there to a [`Claim`]. The receiver, the layer
//! and the acceptor take these steps.

mod authenticate;
pub(crate) mod claims;
pub(crate) mod delivery;
mod gate;
mod health;
mod request_head;

pub use claims::{Admission, Claim};
pub(crate) use delivery::Delivery;
pub use delivery::StoredDelivery;
pub use health::Health;
pub use request_head::RequestHead;

pub(crate) use authenticate::{Authenticator, CheckedHead};
pub(crate) use claims::{Claims, ForHealth, Settlement, Store};
pub(crate) use gate::Gate;
pub(crate) use request_head::TRACEPARENT;
