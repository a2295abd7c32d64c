//! The tower layer: it processes deliveries with deadlines, copies that wait, and runs that outlive
//! their request.
//!
//! ```
//! use axum::{Extension, Router, http::StatusCode, routing::post};
//! use hookgate::{Delivery, MemoryStore, Receiver, Secret};
//!
//! async fn on_delivery(Extension(delivery): Extension<Delivery>) -> StatusCode {
//!     println!("{} {}", delivery.event_type(), delivery.event_id());
//!     StatusCode::NO_CONTENT
//! }
//!
//! let receiver = Receiver::builder()
//!     .secret(Secret::new("whsec_made_up_for_this_example")?)
//!     .store(MemoryStore::default())
//!     .build()?;
//! let app: Router = Router::new().route("/webhooks", post(on_delivery).layer(receiver.layer()));
//! assert!(app.has_routes());
//! # Ok::<(), hookgate::ConfigError>(())
//! ```
//!
//! [`Receiver::handle`](crate::Receiver::handle) does the same in one call, for a server without
//! tower services. With [`ReceiverBuilder::accept_into`](crate::ReceiverBuilder::accept_into) a
//! [`Sink`](crate::sink::Sink) stores the delivery, and it is handled afterwards. The layer needs a
//! tokio runtime with timers, and panics without one. [The page about the
//! layer](crate::guide::layer) has its time-outs and limits, what a run is, and where to put it;
//! [the page about answers](crate::guide::answers) has the answers.
//!
//! 1. The head is checked before a byte of the body is read. The body is hashed as it arrives.
//! 2. An authentic delivery is claimed. A copy of a done event is answered 200 with
//!    `Idempotent-Replayed: true`; a copy of a running event waits for that run.
//! 3. The inner service gets the request with the exact bytes that were signed, and the `Delivery`
//!    in its extensions. 2xx commits the claim; any other status, and a panic, releases it.
//!
//! # Any tower service
//!
//! ```
//! use hookgate::{Delivery, MemoryStore, Receiver, Secret, layer::VerifiedBody};
//! use http::{Request, Response};
//! use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let receiver = Receiver::builder()
//!     .secret(Secret::new("whsec_made_up_for_this_example")?)
//!     .store(MemoryStore::default())
//!     .build()?;
//! let service = ServiceBuilder::new().layer(receiver.layer()).service(service_fn(
//!     async |request: Request<VerifiedBody>| {
//!         let delivery = request.extensions().get::<Delivery>().ok_or("the layer puts it there")?;
//!         Ok::<_, BoxError>(Response::new(delivery.event_id().to_owned()))
//!     },
//! ));
//! let unsigned = Request::post("/webhooks").body(String::from("{}"))?;
//! assert_eq!(service.oneshot(unsigned).await?.status(), 401);
//! # Ok(())
//! # }
//! ```
//!
//! # Hooks
//!
//! ```
//! use std::time::Duration;
//! use hookgate::{MemoryStore, Receiver, Secret};
//!
//! let receiver = Receiver::builder()
//!     .secret(Secret::new("whsec_made_up_for_this_example")?)
//!     .store(MemoryStore::default())
//!     .answer_within(Duration::from_secs(4))
//!     .run_limit(Duration::from_secs(120))
//!     .on_answer(|answer| println!("{answer}"))
//!     .on_failed(|failed| {
//!         if failed.attempt.as_ref().is_some_and(|attempt| attempt.may_be_last) {
//!             eprintln!("the sender may discard this one: {:?}", failed.delivery);
//!         }
//!     })
//!     .on_dead_letter(async |delivery, _| { // stores deliveries that can never succeed
//!         std::fs::write(format!("{}.json", delivery.key().to_hex()), delivery.body())?;
//!         Ok(())
//!     })
//!     .build()?;
//! # let _ = receiver;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod body;
mod budget;
mod claimed_run;
#[cfg(feature = "metrics")]
mod gauges;
mod handler;
mod judge;
pub(crate) mod marks;
mod read;
pub(crate) mod receiver_inner;
mod reply;
mod request;
pub(crate) mod service;
mod waiting_copies;

pub use body::{ResponseBody, VerifiedBody};
pub use handler::{FromDelivery, IntoAnswer};
pub use marks::{AlreadyHandled, Unhandled};
pub(crate) use marks::{DeadLetter, HandlerError};
pub(crate) use receiver_inner::HandlerCall;
pub(crate) use service::WebhookLayer;
pub use service::{ResponseFuture, WebhookService, handler_service};

pub(crate) use crate::observe::Reason;
#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub use crate::observe::metric_names::{DURATION_BUCKETS, STALE_AGE_BUCKETS};
pub use crate::observe::{Answer, Failed, ObservedRequest, RequestObserver, Settled};

#[cfg(feature = "metrics")]
pub(crate) use gauges::record as record_gauges;
#[cfg(feature = "axum")]
pub(crate) use receiver_inner::envelope;
pub(crate) use {
    body::request,
    budget::BodyBudget,
    claimed_run::{commit_again, settle_once, under_lease},
    judge::outcome_of,
    receiver_inner::{LayerSettings, ReceiverInner},
    reply::{LATE_STORE_CALL, Reply, RunEnd, answer_of},
    request::RequestContext,
    service::{HandlerService, handle},
};
