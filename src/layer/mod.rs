//! The tower layer: the walk of a delivery with deadlines, waiting copies and runs that outlive their request.
//!
//! # What a request meets
//!
//! 1. The head is looked at before a byte of the body is read. Keys that have to be [looked up](crate::lookup) get 1 s of the
//!    budget for it, or half of it if that is less. Then the body is read, under its limit and deadline, and
//!    hashed as it arrives. What bodies hold until they are whole is [bounded](crate::ReceiverBuilder::body_budget) for all of them
//!    together. One that is too large is read on until its deadline, up to 16 MiB, and nothing of it is kept: a sender that writes
//!    its whole body before it reads would not hear of the 413 otherwise. A sender that waits for `100 Continue` is answered at once.
//! 2. An authentic delivery is claimed. A copy of an event that is done is answered 200 with `Idempotent-Replayed: true`; a
//!    copy of one that is running waits for that run, within its own budget.
//! 3. The inner service gets the request with the exact bytes that were signed as its body, and the
//!    [`Delivery`](crate::Delivery) in its extensions. 2xx commits the claim; anything else, and a panic, releases it.
//!
//! # What ends a run, and what does not
//!
//! Claim, handler and commit are **one run**. It is polled in the request's own task; when the budget ends (503) or the sender
//! hangs up, it moves to a task of its own and goes on. So nothing cuts a handler in half but its own limit
//! ([`run_limit`](crate::ReceiverBuilder::run_limit)) and [`drain`](crate::Receiver::drain), and both release the claim.
//!
//! - Dropping the response future leaves the run going.
//! - Spans go along with a run that moves (feature `tracing`). Task-locals do not: a handler that reads one after its request
//!   was answered may panic, which is a failed run.
//! - A handler that blocks its thread blocks its answer: no deadline can be kept for it. Use `spawn_blocking`.
//! - A handler's effects can't be undone. Where a lease was lost, two runs may have overlapped: see
//!   [`dedupe`](crate::dedupe).
//!
//! # Where to put it
//!
//! On the route, `post(handler).layer(receiver.layer())`, or with `Router::route_layer`. With `Router::layer` it also answers for
//! paths that don't exist: a signed delivery to one is claimed, answered 404 and released.
//!
//! Concurrency limits and the like belong **outside**: inside, a slow body holds a permit. A time-out outside merely lets the run
//! move; one inside drops the handler, which is a failed run. A body limit outside, such as tower-http's, should be no lower
//! than [`max_body`](crate::ReceiverBuilder::max_body), or its refusals look like broken bodies.
//!
//! Axum's own `DefaultBodyLimit`, 2 MiB unless it is set, holds no more behind the layer, wherever outside it was set: the body has passed
//! `max_body`, and an extractor that refused it would do so at each retry. (A limit below 4 KiB outside
//! does hold, for bodies up to 4 KiB.) A `DefaultBodyLimit` inside, between the layer and the handler, holds.
//!
//! The layer needs a tokio runtime with its timers enabled, and panics without one, as tokio's timers do.
//!
//! # What is logged
//!
//! With the feature `tracing` a delivery is one span, and its answer one line in it. What was refused or has failed is told at WARN. Anybody can
//! cause refusals of what is not authentic, so of those one line a second is at WARN, and one for each reason that had none within the last
//! minute; the others are at DEBUG, and the next line at WARN says in `suppressed` how many they were. Failures of authentic
//! deliveries are told each. A method that HTTP does not know is `_OTHER`, with its first 32 characters in
//! `http.request.method_original`. Metrics and hooks are told of each delivery.
//!
//! # Without tower
//!
//! [`Receiver::handle`] is the same walk as one call, for a server that knows no tower services: a request in, the
//! answer out. The handler is a function of an [`Event<R>`](crate::Event) or a [`Delivery`](crate::Delivery).
//!
//! # In place of a handler
//!
//! [`ReceiverBuilder::accept_into`](crate::ReceiverBuilder::accept_into) takes the same walk to a [`Sink`](crate::Sink): a delivery
//! is stored, answered 2xx once it is durable, and handled afterwards. See [`inbox`](crate::inbox).
//!
//! # Examples
//!
//! With the defaults:
//!
//! ```
//! use hookgate::{Delivery, LocalStore, Receiver, Secret};
//! use http::{Request, Response, StatusCode};
//! use tower::{ServiceBuilder, service_fn};
//!
//! let receiver = Receiver::builder()
//!     .secret(Secret::new("whsec_made_up_for_this_example")?)
//!     .store(LocalStore::default())
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
//! Told what happens, with a place for deliveries that can never succeed:
//!
//! ```
//! use std::time::Duration;
//! use hookgate::{LocalStore, Receiver, Secret};
//!
//! let receiver = Receiver::builder()
//!     .secret(Secret::new("whsec_made_up_for_this_example")?)
//!     .store(LocalStore::default())
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

mod accepting;
mod already_handled;
mod body;
mod budget;
mod catch;
mod dead_letter;
mod drain;
mod failure_reason;
mod handle;
mod handler;
mod hooks;
mod judge;
mod looking;
mod meeting;
mod metrics;
mod read;
mod record;
mod response;
mod run;
mod service;
mod settings;
mod settle;
mod supervise;
mod trace;
mod unhandled;
mod waiting;
#[cfg(feature = "tracing")]
mod warnings;

pub use already_handled::AlreadyHandled;
pub use body::{ResponseBody, VerifiedBody};
pub use dead_letter::DeadLetter;
pub use drain::Drained;
pub use failure_reason::FailureReason;
pub use handler::{FromDelivery, IntoAnswer};
pub use hooks::{Answer, DeadLettered, Failed, HookError, Reason, Settled};
#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub use metrics::DURATION_BUCKETS;
pub use response::OwnAnswer;
pub use service::{ResponseFuture, WebhookLayer, WebhookService};
pub use unhandled::Unhandled;

pub(crate) use accepting::{accept, accept_as_service};
pub(crate) use drain::Bell;
#[cfg(feature = "axum")]
pub(crate) use response::{MISFIT, envelope};
pub(crate) use settings::LayerSettings;
#[cfg(feature = "inbox")]
pub(crate) use {
    catch::CatchUnwind,
    drain::TO_RELEASE,
    handle::Each,
    hooks::Chain,
    judge::{Verdict, judge},
    metrics::inbox as inbox_metrics,
    supervise::{Handled, bounded},
};

use crate::receiver::Receiver;

impl Receiver {
    /// A layer that guards a route, or any tower service. See the [module docs](crate::layer).
    ///
    /// All layers of one receiver share its store, permits and hooks.
    #[must_use]
    pub fn layer(&self) -> WebhookLayer {
        WebhookLayer::new(self.clone())
    }
}
