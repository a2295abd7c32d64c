//! Receives webhooks right.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod clock;
pub mod dedupe;
mod error;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;
pub mod event;
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
    EventError, EventErrorKind, HeaderError, HeaderErrorKind, KeysError, KeysErrorKind, Malformed,
    SecretError, SecretErrorKind, StoreError, StoreErrorKind, VerifyError, VerifyErrorKind,
};
pub use event::{
    Actor, ActorId, Change, Changes, DataModelId, Date, DateText, Event, EventData, EventHead,
    EventId, EventType, Field, File, Json, Number, Other, Properties, RowCreated, RowDeleted,
    RowId, RowUpdated, Value, WorkspaceId,
};
pub use verify::{
    BodyTooLarge, Check, DeliveryHeaders, Intake, KeyRing, Keys, Proof, Secret, Signature,
    SignedBytes, Timestamp, Verified, Verifier, Window,
};
