//! All steps of a delivery, one by one, without a framework.
//!
//! ```
//! use hookgate::clock::{Clock, SystemClock};
//! use hookgate::receiver::{Admission, RequestHead};
//! use hookgate::verify::{Signature, Timestamp};
//! use hookgate::{MemoryStore, Receiver, Secret, block_on};
//!
//! // What a request brings, signed as the service does it.
//! let secret = Secret::new("whsec_made_up_for_this_example")?;
//! let (now, body) = (SystemClock.now().to_string(), br#"{"id":"evt_1","type":"row.deleted"}"#);
//! let signature = Signature::sign(&secret, &Timestamp::parse(now.as_bytes())?, body).to_header_value();
//! let headers = [("x-service-timestamp", &*now), ("x-service-signature", &*signature)];
//!
//! let receiver = Receiver::builder().secret(secret).store(MemoryStore::default()).build()?;
//! let head = RequestHead::new("POST", headers);
//! let mut received = receiver.check_head(&head)?;
//! received.push(body.as_slice().into())?;
//! let delivery = receiver.verify(received, &head)?;
//! match block_on(receiver.admit(&delivery))? {
//!     Admission::Fresh(claim) => {
//!         assert_eq!(delivery.event_id(), "evt_1"); // handle it, then
//!         block_on(claim.commit())?;
//!     }
//!     Admission::Replayed { .. } => {} // answer 200
//!     Admission::Running { .. } => {}  // ask again a little later, or answer 503
//! }
//! assert!(matches!(block_on(receiver.admit(&delivery))?, Admission::Replayed { same_body: true }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | step | takes | gives | waits |
//! |---|---|---|---|
//! | [`check_head`](Receiver::check_head), [`check_head_async`](Receiver::check_head_async) | the request's head | a [`BodyVerifier`](crate::verify::BodyVerifier) | no; for a [look-up](crate::lookup) |
//! | [`push`](crate::verify::BodyVerifier::push) | a chunk of the body | | no |
//! | [`verify`](Receiver::verify) | the body | a [`Delivery`](crate::Delivery) | no |
//! | [`admit`](Receiver::admit) | the delivery | an [`Admission`] | for the store |
//! | [`commit`](Claim::commit), [`release`](Claim::release) | the [`Claim`] | | for the store |
//!
//! Each step ends in a [`Refusal`](crate::Refusal) or leads to the next. The tower layer takes the
//! same steps and adds the parts that need a runtime: deadlines, waiting for a running copy, runs
//! that outlive their request.

pub(crate) mod builder;
#[cfg(feature = "tower")]
mod builder_layer;
#[cfg(feature = "tower")]
mod serve;
pub(crate) mod steps;

pub use crate::pipeline::{Admission, Claim, Health, RequestHead, StoredDelivery};
pub(crate) use builder::ReceiverBuilder;
pub(crate) use steps::Receiver;
