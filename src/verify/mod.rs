//! Authentic and fresh: from headers and raw bytes to a [`Verified`], which only this module can
//! make.
//!
//! ```
//! use hookgate::{
//!     Secret, Verifier,
//!     clock::UnixSeconds,
//!     verify::{DeliveryHeaders, Signature, Timestamp},
//! };
//!
//! let secret = Secret::new("whsec_made_up_for_this_example")?;
//! let (timestamp, body) = (Timestamp::parse(b"1763690000")?, br#"{"id":"evt_1"}"#);
//! let signature = Signature::sign(&secret, &timestamp, body).to_header_value();
//! let pairs = [("X-Service-Timestamp", "1763690000"), ("X-Service-Signature", &signature)];
//!
//! let verifier = Verifier::new(secret);
//! let head = DeliveryHeaders::from_pairs(pairs)?;
//! let verified = verifier.verify(&head, body, UnixSeconds::new(1_763_690_300))?;
//! assert_eq!(verified.body(), body);
//!
//! let stale = verifier.verify(&head, body, UnixSeconds::new(1_763_690_301));
//! assert!(stale.is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The order of checks is fixed. Headers first, in one walk; then the window, so that a stale
//! delivery ends before a byte of its body is read; then the MAC over the timestamp's bytes, a dot
//! and the body's bytes, all as received. No JSON is parsed before that, and every live key of the
//! ring is tried without an early exit.
//!
//! All of it is plain functions: the clock's reading and the bytes are arguments, and nothing
//! waits.

mod body_verifier;
pub(crate) mod keyring;
pub(crate) mod secret;
pub(crate) mod signature;
pub(crate) mod verified;

pub use crate::scheme::{DeliveryHeaders, Timestamp, Window};
pub use crate::scheme::{EVENT_ID, EVENT_TYPE, SIGNATURE, TIMESTAMP, WEBHOOK_ID};
pub use crate::scheme::{Malformed, StaleTimes, VerifyError, VerifyErrorKind};
pub use body_verifier::{BodyTooLarge, BodyVerifier};
pub(crate) use keyring::KeyRing;
pub(crate) use secret::Secret;
pub use signature::{Signature, sign};
pub use verified::SignedBytes;
pub(crate) use verified::Verified;

pub(crate) use keyring::{one_scope_a_secret, unusable, usable_name};
pub(crate) use signature::digest;
