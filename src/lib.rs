//! Receives webhooks right.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod clock;
pub mod dedupe;
mod error;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;
pub mod verify;

pub use clock::{Clock, ManualClock, Monotonic, SystemClock, UnixSeconds};
#[cfg(feature = "moka")]
#[cfg_attr(docsrs, doc(cfg(feature = "moka")))]
pub use dedupe::MemoryStore;
pub use dedupe::{
    Attempt, Capacity, ClaimToken, Claimed, DedupeStore, EventKey, LocalStore, Ownership,
    RetrySchedule, StoreFuture, StoreStats, WhenFull,
};
pub use error::{
    HeaderError, HeaderErrorKind, KeysError, KeysErrorKind, Malformed, SecretError,
    SecretErrorKind, StoreError, StoreErrorKind, VerifyError, VerifyErrorKind,
};
pub use verify::{
    BodyTooLarge, Check, DeliveryHeaders, Intake, KeyRing, Keys, Proof, Secret, Signature,
    SignedBytes, Timestamp, Verified, Verifier, Window,
};
