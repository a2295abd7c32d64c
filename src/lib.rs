//! Receives the signed webhooks of the Workspace Data Service. It proves that each delivery is
//! **authentic** and fresh, recognises events that were handled before, and gives the handler a
//! **typed** event, **once**. No event is lost. It does the same for [any other
//! sender](guide::other_senders) that signs with HMAC-SHA256: Stripe, GitHub, Standard Webhooks.
//!
//! ```no_run
//! # #[cfg(feature = "axum")]
//! # mod program {
//! use axum::{Router, http::StatusCode, routing::post};
//! use hookgate::{Event, EventData, MemoryStore, Receiver, Secret};
//!
//! #[derive(serde::Deserialize)]
//! struct Order {
//!     #[serde(rename = "Customer")] // the column's display name
//!     customer: Option<String>,
//! }
//!
//! async fn on_event(event: Event<Order>) -> StatusCode {
//!     match event.data {
//!         EventData::RowCreated(row) => println!("{} for {:?}", row.row_id, row.properties.customer),
//!         EventData::RowUpdated(row) => println!("{}: {:?}", row.row_id, row.changes),
//!         EventData::RowDeleted(row) => println!("{} is gone", row.row_id),
//!         _ => {} // page.*, member.* and future types keep their raw JSON
//!     }
//!     StatusCode::NO_CONTENT // 2xx: done. Anything else, or a panic: the sender's retry runs again.
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let secret = Secret::from_env("WEBHOOK_SECRET")?;
//!     let receiver = Receiver::builder().secret(secret).store(MemoryStore::default()).build()?;
//!     let app = Router::new().route("/webhooks", post(on_event).layer(receiver.layer()));
//!     let listener = tokio::net::TcpListener::bind("127.0.0.1:8787").await?;
//!     Ok(axum::serve(listener, app).await?)
//! }
//! # }
//! # fn main() {}
//! ```
//!
//! ```text
//!  method, headers        refused before a byte of the body is read
//!    │  lookup            the keys of the subscription
//!  body, chunk by chunk   hashed as it arrives, under a limit and a deadline
//!    │  verify            Verified: authentic and fresh
//!  Delivery
//!    │  event             Event<R>: typed
//!    │  dedupe            Claim: of all copies one runs
//!  handler                2xx commits the claim; anything else, or a panic, lets a retry run again
//!    or sink              stores the delivery in place of claim and handler: 2xx once it is durable
//!    │  outcome           the answer; the reason goes to the operator
//! ```
//!
//! Where to go on:
//!
//! - [the guide](guide): which answer the sender gets, errors of handlers, stores and their
//!   guarantees, tests, operations;
//! - [your own server](guide::own_server): without axum; the [steps](receiver) one by one, or
//!   verification alone, without a runtime;
//! - [several subscriptions](guide::handlers), and their secrets in a [database](crate::lookup);
//! - [which store](guide::guarantees): one process, ten replicas, a file, a queue.
//!
//! # Features
//!
//! A feature adds API and changes no behaviour.
//!
//! | feature | adds |
//! |---|---|
//! | none | verification, typed events, claims in memory ([`MemoryStore`]), the [receiver's](receiver) steps |
//! | `tower` | `layer` for any tower service, `Receiver::handle` for any other; needs a tokio runtime |
//! | `axum` (default) | `extract`, `route`: the extractors and the event router for axum 0.8; brings `tower` |
//! | `lookup` | keys that a provider [looks up](crate::lookup), for example in a database |
//! | `moka` | `MokaStore`, for programs that want that cache |
//! | `tracing` | one span for each delivery |
//! | `metrics` | counters, histograms and gauges, through the `metrics` facade; brings `tower` |
//! | `chrono`, `jiff`, `time` | conversions of a [`Date`](crate::event::Date) |
//!
//! What not every receiver needs is a package of its own, of [the same
//! version](guide::guarantees#versions): claims in [Redis](https://docs.rs/hookgate-redis),
//! [PostgreSQL](https://docs.rs/hookgate-postgres) or a [file](https://docs.rs/hookgate-sqlite),
//! the durable [inbox](https://docs.rs/hookgate-inbox), the [order](https://docs.rs/hookgate-order)
//! of a row's events, the [delivery log](https://docs.rs/hookgate-record), [tools for
//! tests](https://docs.rs/hookgate-testing), the service [on your
//! machine](https://docs.rs/hookgate-emulator), its [API](https://docs.rs/hookgate-client), and the
//! command `hookgate` (`hookgate-cli`).
#![forbid(unsafe_code)]
// The items of clippy.toml. Unit tests may use them.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]
#![cfg_attr(docsrs, feature(doc_cfg))]
// What the layer alone calls is compiled without it too, so that the core has few conditions.
#![cfg_attr(not(feature = "tower"), allow(dead_code, unused_imports))]

mod catch_panic;
pub mod clock;
mod config;
pub mod dangerous;
pub mod dedupe;
pub mod event;
#[cfg(feature = "axum")]
pub mod extract;
mod future;
pub mod guide;
#[cfg(feature = "tower")]
pub mod layer;
pub mod lookup;
#[cfg(feature = "tower")]
mod observe;
pub mod outcome;
mod pipeline;
mod readable;
pub mod receiver;
#[cfg(feature = "axum")]
pub mod route;
#[cfg(feature = "tower")]
pub mod run;
pub mod scheme;
#[cfg(feature = "tower")]
pub mod sink;
mod store_error;
mod sync;
mod text_id;
pub mod verify;

/// For hookgate's other crates alone. It is not stable: any release may change it.
#[doc(hidden)]
pub mod internal {
    pub use crate::catch_panic::catch_panic;
    pub use crate::dedupe::key::body_digest;
    pub use crate::event::head::unverified_head;
    pub use crate::event::scan::{from_foreign_json, has_reserved_key};
    #[cfg(feature = "tower")]
    pub use crate::layer::receiver_inner::HandlerCall;
    pub use crate::pipeline::claims::catch_store_panic;
}

pub use config::{ConfigError, ConfigErrorKind};
pub use dedupe::memory::MemoryStore;
pub use dedupe::store_contract::DedupeStore;
pub use event::Signed;
pub use event::content::{Event, EventData, RowCreated, RowDeleted, RowUpdated};
pub use event::properties::Properties;
pub use future::block_on;
#[cfg(feature = "tower")]
pub use layer::marks::DeadLetter;
#[cfg(feature = "tower")]
pub use layer::marks::HandlerError;
#[cfg(feature = "tower")]
pub use layer::service::WebhookLayer;
pub use lookup::verifier::Verifier;
pub use outcome::refusal::Refusal;
pub use outcome::table::Outcome;
pub use pipeline::delivery::Delivery;
pub use receiver::builder::ReceiverBuilder;
pub use receiver::steps::Receiver;
#[cfg(feature = "axum")]
pub use route::router::{EventRouter, Subscriptions};
pub use scheme::Scheme;
pub use verify::keyring::KeyRing;
pub use verify::secret::Secret;
pub use verify::verified::Verified;

/// README's Rust, compiled. It uses the features that it needs.
#[cfg(all(doctest, feature = "axum"))]
#[doc = include_str!("../README.md")]
struct Readme;
