//! The tower layer: it processes deliveries with deadlines, copies that wait, and runs that outlive their request.
//!
#![doc = include_str!("../../docs/layer.md")]

mod body;
mod budget;
mod catch;
mod drain;
mod exchange;
mod failure_reason;
#[cfg(feature = "metrics")]
mod gauges;
mod guard;
mod handle;
mod handler;
mod handler_error;
mod marks;
mod read;
mod response;
mod run;
mod run_state;
mod service;
mod settle;
mod supervise;
mod take_in;
mod timer;
mod waiting;

pub use body::{ResponseBody, VerifiedBody};
pub use drain::Drained;
pub use failure_reason::FailureReason;
pub use handle::handler_service;
pub use handler::{FromDelivery, IntoAnswer};
pub use handler_error::HandlerError;
pub use marks::{AlreadyHandled, DeadLetter, DeadLettered, Unhandled};
pub use response::OwnAnswer;
pub use service::{ResponseFuture, WebhookLayer, WebhookService};

#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub use crate::observe::metrics::DURATION_BUCKETS;
pub use crate::observe::{Answer, Failed, ObservedRequest, Reason, RequestObserver, Settled};

#[cfg(feature = "metrics")]
pub(crate) use gauges::record as record_gauges;
#[cfg(feature = "axum")]
pub(crate) use response::{TYPE_MISMATCH, envelope};
pub(crate) use {
    budget::BodyBudget,
    catch::{CatchUnwind, Kept, caught},
    drain::drain,
    exchange::Exchange,
    guard::{Guard, LayerSettings},
    handle::{HandlerService, handle},
    run::Attached,
    run_state::{End, Ended, RunState},
    settle::classify,
    supervise::{Handled, bounded},
    timer::LATE_STORE_CALL,
    waiting::WaitingCopies,
};
