//! The tower layer: it processes deliveries with deadlines, copies that wait, and runs that outlive their request.
//!
//! # The steps of a request
//!
//! 1. The head is checked before a byte of the body is read. If the keys have to be [looked up](crate::lookup), the look-up
//!    gets 1 s of the budget, or half of the budget if that is less. Then the body is read, under its limit and deadline, and
//!    hashed as it arrives. The bytes that bodies hold until they are complete are
//!    [bounded](crate::ReceiverBuilder::body_budget) for all bodies together. A body that is too large, or gave way to
//!    others, is read on until its deadline, up to 16 MiB, and not kept: otherwise a sender that writes its whole body before
//!    it reads would not get the 413 or 503. A sender that waits for `100 Continue` is answered at once.
//! 2. An authentic delivery is claimed. A copy of an event that is done is answered 200 with `Idempotent-Replayed: true`; a
//!    copy of an event that is running waits for that run, within its own budget.
//! 3. The inner service gets the request with the exact bytes that were signed as its body, and the
//!    [`Delivery`](crate::Delivery) in its extensions. 2xx commits the claim; any other status, and a panic, releases it.
//!
//! # The end of a run
//!
//! Claim, handler and commit are **one run**. It is polled in the request's own task. When the budget ends (503) or the sender
//! hangs up, the run moves to its own task and goes on. So only its own limit
//! ([`run_limit`](crate::ReceiverBuilder::run_limit)) and [`drain`](crate::Receiver::drain) cut a handler off, and both release
//! the claim.
//!
//! - If the response future is dropped, the run goes on.
//! - Spans move with a run (feature `tracing`). Task-locals do not: a handler that reads one after its request was answered may
//!   panic, and that is a failed run.
//! - A handler that blocks its thread also blocks its answer: no deadline can be kept for it. Use `spawn_blocking`.
//! - A handler's effects cannot be undone. If a lease was lost, two runs may have overlapped: see [`dedupe`](crate::dedupe).
//!
//! # Where to put it
//!
//! On the route, `post(handler).layer(receiver.layer())`, or with `Router::route_layer`. With `Router::layer` it also answers
//! for paths that do not exist: a signed delivery to such a path is claimed, answered 404 and released.
//!
//! Put concurrency limits and similar layers **outside**: inside, a slow body holds a permit. A time-out outside only makes the
//! run move to its own task; a time-out inside drops the handler, and that is a failed run. A body limit outside, such as
//! tower-http's, should not be lower than [`max_body`](crate::ReceiverBuilder::max_body), or its refusals look like broken
//! bodies.
//!
//! Axum's own `DefaultBodyLimit`, 2 MiB unless it is set, does not apply behind the layer, if it was set outside it: the body
//! has passed `max_body`, and an extractor that refused it would refuse it at each retry. (A limit below 1 KiB outside still
//! applies to bodies up to 1 KiB.) A `DefaultBodyLimit` inside, between the layer and the handler, applies.
//!
//! The layer needs a tokio runtime with its timers enabled, and panics without one, as tokio's timers do.
//!
//! # Logs
//!
//! [The page about tracing](crate::guide::tracing) lists all names.
//! With the feature `tracing` a delivery is one span, and its answer one line in it. Refusals and failures are logged at WARN.
//! Any client can cause refusals of deliveries that are not authentic, so for those one line a second is at WARN, and one line
//! for each reason that had none within the last minute. The others are at DEBUG, and the next line at WARN gives their number
//! in `suppressed`. Every failure of an authentic delivery is logged. A method that HTTP does not know is `_OTHER`, with its
//! first 32 characters in `http.request.method_original`. Metrics and hooks get every delivery.
//!
//! # Without tower
//!
//! [`Receiver::handle`](crate::Receiver::handle) does the same in one call, for a server without tower services: it takes a request and returns the
//! answer. The handler is a function of an [`Event<R>`](crate::Event) or a [`Delivery`](crate::Delivery).
//!
//! # In place of a handler
//!
//! [`ReceiverBuilder::accept_into`](crate::ReceiverBuilder::accept_into) takes the same steps to a [`Sink`](crate::Sink): a
//! delivery is stored, answered 2xx once it is durable, and handled afterwards. See [`inbox`](crate::inbox).
//!
//! # Examples
//!
//! With the defaults:
//!
//! ```
//! use hookgate::{Delivery, MemoryStore, Receiver, Secret};
//! use http::{Request, Response, StatusCode};
//! use tower::{ServiceBuilder, service_fn};
//!
//! let receiver = Receiver::builder()
//!     .secret(Secret::new("whsec_made_up_for_this_example")?)
//!     .store(MemoryStore::default())
//!     .build()?;
//!
//! let service = ServiceBuilder::new().layer(receiver.layer()).service(service_fn(
//!     async |request: Request<hookgate::layer::VerifiedBody>| {
//!         let delivery: &Delivery = request.extensions().get().expect("the layer has put it there");
//!         println!("{} {}", delivery.event_type(), delivery.event_id());
//!         let mut response = Response::new(String::new());
//!         *response.status_mut() = StatusCode::NO_CONTENT;
//!         Ok::<_, std::convert::Infallible>(response)
//!     },
//! ));
//! # let _ = service;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With hooks, and a place to store deliveries that can never succeed:
//!
//! ```
//! use std::time::Duration;
//! use hookgate::{MemoryStore, Receiver, Secret};
//!
//! let receiver = Receiver::builder()
//!     .secret(Secret::new("whsec_made_up_for_this_example")?)
//!     .store(MemoryStore::default())
//!     .budget(Duration::from_secs(4))
//!     .run_limit(Duration::from_secs(120))
//!     .on_answer(|answer| println!("{answer}"))
//!     .on_failed(|failed| {
//!         if failed.attempt.as_ref().is_some_and(|attempt| attempt.may_be_last) {
//!             eprintln!("the sender may discard this one: {:?}", failed.delivery);
//!         }
//!     })
//!     .on_dead_letter(async |letter| {
//!         std::fs::write(format!("{}.json", letter.delivery.key().to_hex()), letter.delivery.body())?;
//!         Ok(())
//!     })
//!     .build()?;
//! # let _ = receiver;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod already_handled;
mod body;
mod budget;
mod catch;
mod dead_letter;
mod drain;
mod error_answer;
mod exchange;
mod failure_reason;
#[cfg(feature = "metrics")]
mod gauges;
mod guard;
mod handle;
mod handler;
mod handler_end;
mod handler_error;
mod look_up;
mod read;
mod response;
mod run;
mod run_state;
mod service;
mod settings;
mod settle;
mod supervise;
mod take_in;
mod timer;
mod unhandled;
mod waiting;

pub use already_handled::AlreadyHandled;
pub use body::{ResponseBody, VerifiedBody};
pub use dead_letter::{DeadLetter, DeadLettered, HookError};
pub use drain::Drained;
pub use failure_reason::FailureReason;
pub use handler::{FromDelivery, IntoAnswer};
pub use handler_error::HandlerError;
pub use response::OwnAnswer;
pub use service::{ResponseFuture, WebhookLayer, WebhookService};
pub use unhandled::Unhandled;

#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub use crate::observe::metrics::DURATION_BUCKETS;
pub use crate::observe::{Answer, Failed, Reason, Settled};

#[cfg(feature = "metrics")]
pub(crate) use gauges::record as record_gauges;
#[cfg(feature = "axum")]
pub(crate) use response::{TYPE_MISMATCH, envelope};
pub(crate) use {
    budget::BodyBudget,
    catch::CatchUnwind,
    drain::drain,
    exchange::Exchange,
    guard::{Guard, Guarded},
    handle::handle,
    response::Own,
    run::Attached,
    run_state::{End, Ended, LATE_STORE_CALL, Phase, RunState},
    settings::LayerSettings,
    supervise::{Handled, bounded},
    waiting::WaitingCopies,
};
#[cfg(feature = "inbox")]
pub(crate) use {
    drain::TO_RELEASE,
    handle::HandlerService,
    handler_end::{HandlerEnd, classify},
};
