//! Receives webhooks right.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod block_on;
mod clock;
pub mod dedupe;
mod delivery;
mod error;
pub mod event;
#[cfg(feature = "axum")]
#[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
pub mod extract;
#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub mod layer;
pub mod outcome;
pub mod receiver;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;
pub mod verify;

pub use block_on::block_on;
pub use clock::{Clock, ManualClock, Monotonic, SystemClock, UnixSeconds};
#[cfg(feature = "moka")]
#[cfg_attr(docsrs, doc(cfg(feature = "moka")))]
pub use dedupe::MemoryStore;
pub use dedupe::{
    Attempt, Capacity, Claim, ClaimToken, Claimed, DedupeStore, EventKey, LocalStore, Ownership,
    RetrySchedule, StoreFuture, StoreStats, WhenFull,
};
pub use delivery::Delivery;
pub use error::{
    BuildError, BuildErrorKind, EventError, EventErrorKind, HeaderError, HeaderErrorKind,
    KeysError, KeysErrorKind, Malformed, SecretError, SecretErrorKind, StoreError, StoreErrorKind,
    VerifyError, VerifyErrorKind,
};
pub use event::{
    Actor, ActorId, Change, Changes, DataModelId, Date, DateText, Event, EventData, EventHead,
    EventId, EventType, Field, File, Json, Number, Other, Properties, RowCreated, RowDeleted,
    RowId, RowUpdated, Value, WorkspaceId,
};
#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub use layer::{
    Answer, DeadLetter, DeadLettered, Drained, Failed, HookError, OwnAnswer, Reason, Settled,
    WebhookLayer,
};
pub use outcome::{Failure, Outcome, Refusal, RefusalKind, Unrecorded};
pub use receiver::{Admission, HeaderMismatch, Receiver, ReceiverBuilder, RequestHead};
pub use verify::{
    BodyTooLarge, Check, DeliveryHeaders, Intake, KeyRing, Keys, Proof, Secret, Signature,
    SignedBytes, Timestamp, Verified, Verifier, Window,
};
