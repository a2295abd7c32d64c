//! Receives webhooks right.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod clock;
pub mod dedupe;
mod error;
pub mod verify;

pub use clock::{Clock, ManualClock, Monotonic, SystemClock, UnixSeconds};
pub use dedupe::{ClaimToken, Claimed, DedupeStore, EventKey, Ownership, StoreFuture};
pub use error::{
    HeaderError, HeaderErrorKind, KeysError, KeysErrorKind, Malformed, SecretError,
    SecretErrorKind, StoreError, StoreErrorKind, VerifyError, VerifyErrorKind,
};
pub use verify::{
    BodyTooLarge, Check, DeliveryHeaders, Intake, KeyRing, Keys, Proof, Secret, Signature,
    SignedBytes, Timestamp, Verified, Verifier, Window,
};
