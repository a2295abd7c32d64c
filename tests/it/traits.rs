//! Bounds that users of any runtime need of the public types: they cross threads, and so do the
//! futures. That this compiles is the test.

use std::error::Error;

use hookgate::clock::*;
use hookgate::dedupe::*;
use hookgate::event::*;
#[cfg(feature = "tower")]
use hookgate::layer::*;
use hookgate::lookup::*;
use hookgate::outcome::*;
use hookgate::receiver::*;
#[cfg(feature = "tower")]
use hookgate::sink::*;
use hookgate::verify::*;
use hookgate::*;

fn crosses_threads<T: Send + Sync + 'static>() {}
fn is_an_error<T: Error + Send + Sync + 'static>() {}
fn may_be_spawned(_: impl Future + Send) {}

macro_rules! each {
    ($check:ident: $($type:ty),* $(,)?) => { $($check::<$type>();)* };
}

#[test]
fn public_types_cross_threads() {
    each! { crosses_threads:
        Secret, KeyRing, Keys, Verifier, BodyVerifier, Verified, Verified<Vec<u8>>, Signature, Timestamp, Window,
        DeliveryHeaders<'static>, RequestHead<'static>,
        SystemClock, ManualClock, Monotonic, UnixSeconds,
        EventKey, ClaimToken, Claim, Claimed, Ownership, MemoryStore, RetrySchedule, Attempt, Capacity, StoreStats,
        Receiver, ReceiverBuilder, Admission, Delivery, Outcome, Failure, Refusal, RefusalKind, Unrecorded,
        Event, EventData, EventHead, EventType, Properties, Changes, Change<Value>, Value, Json, Number, Date, File,
        Box<dyn DedupeStore>, Box<dyn Clock>,
    }
    #[cfg(feature = "moka")]
    crosses_threads::<MokaStore>();
    #[cfg(feature = "tower")]
    each! { crosses_threads:
        WebhookLayer, layer::WebhookService<()>, layer::VerifiedBody, Answer, Settled, Failed, DeadLetter,
        AlreadyHandled, Acceptor,
    }
}

#[test]
fn errors_fit_into_a_box() {
    each! { is_an_error:
        ConfigError, EventError, StoreError, VerifyError, Malformed, Refusal, BodyTooLarge,
    }
}

#[test]
fn the_steps_may_be_spawned() {
    fn steps(receiver: &Receiver, delivery: &Delivery) {
        may_be_spawned(receiver.admit(delivery));
    }
    fn claim(claim: &Claim) {
        may_be_spawned(claim.renew());
    }
    let _ = (steps, claim);
    let _: fn(Claim) = |claim| may_be_spawned(claim.commit());
    let _: fn(Claim) = |claim| may_be_spawned(claim.release());
}
