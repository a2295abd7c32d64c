//! Receives the signed webhooks of the Workspace Data Service. It proves that each delivery is **authentic** and fresh, recognises
//! events that were handled before, and gives the handler a **typed** event, **once**. No event is lost.
//!
//! # Start here
//!
//! | you have | go to |
//! |---|---|
//! | an axum app | the example below, then [handlers and their errors](guide::handlers) |
//! | another sender: Stripe, GitHub, Standard Webhooks, any that signs with HMAC-SHA256 | [other senders](guide::other_senders) |
//! | another server: tower, hyper, actix, Lambda | `Receiver::handle` and `layer` (feature `tower`); without a runtime, [your own server](guide::own_server) |
//! | one question: are these bytes authentic? | [`Verifier`]: no HTTP crate, no runtime, no heap |
//! | many subscriptions | [`Keys::by_subscription`](crate::lookup::Keys::by_subscription); if a database has the secrets, [`lookup`] (feature `lookup`); [several data models](guide::handlers) |
//! | several processes, or a handler that needs more than 4 s | [guarantees](guide::guarantees) of each store, and the [inbox](https://docs.rs/hookgate-inbox) |
//! | a queue or store of your own in between | [queues](guide::queues): `QueueSink`, then `Receiver::run_stored` (feature `tower`) |
//! | a test to write, or deliveries to replay | [testing](guide::testing), with the package `hookgate-testing` |
//! | an alert that fires | the [runbook](guide::runbook); for a signature that fails, `hookgate explain` of [the command](guide::command) |
//!
//! An axum app guards a route with one line and gets a typed event with one argument (feature `axum`, the default):
//!
//! ```
//! # #[cfg(feature = "axum")] {
//! use axum::{Router, http::StatusCode, routing::post};
//! use hookgate::{Event, EventData, MemoryStore, Receiver, Secret};
//!
//! async fn on_event(event: Event) -> StatusCode {
//!     match event.data {
//!         EventData::RowCreated(row) => println!("{} has {} properties", row.row_id, row.properties.len()),
//!         EventData::RowUpdated(row) => println!("{} changed", row.row_id),
//!         EventData::RowDeleted(row) => println!("{} is gone", row.row_id),
//!         _ => {} // page.*, member.* and types not invented yet keep their raw JSON
//!     }
//!     StatusCode::NO_CONTENT // 2xx: done. Anything else, or a panic: a retry runs again.
//! }
//!
//! let receiver = Receiver::builder()
//!     .secret(Secret::new("whsec_made_up_for_this_example")?)
//!     .store(MemoryStore::default())
//!     .build()?;
//! let app: Router = Router::new().route("/webhooks", post(on_event).layer(receiver.layer()));
//! # let _ = app;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same `layer` guards any tower service. Without tower, pass requests to `Receiver::handle`, which does the
//! same in one call. Your own server can also take the [steps](receiver) one by one.
//!
//! # The steps of a delivery
//!
//! | step | known afterwards |
//! |---|---|
//! | [`verify`] | [`Verified`]: these bytes are authentic and fresh, under this key |
//! | [`event`] | [`EventHead`](crate::event::EventHead), then [`Event`]: id, type and data, from the bytes that were signed |
//! | [`dedupe`] | [`Claim`](crate::receiver::Claim): the caller handles this event, or it is done, or it runs elsewhere |
//! | [`lookup`] | the keys of a subscription: held in memory, or found in a database when they are needed |
//! | [`receiver`] | the policy, and all steps together |
//! | `layer`, `extract`, `route` | the same for tower and axum, and handlers by event type and data model |
//! | [`outcome`] | the outcome of the delivery, and the status that answers it |
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | none | everything up to [`receiver`], with [`MemoryStore`] |
//! | `tower` | `layer` for any tower service, `Receiver::handle` for any other; needs a tokio runtime |
//! | `axum` (default) | `extract`, `route`: the extractors and the event router for axum 0.8; brings `tower` |
//! | `lookup` | keys that a provider [looks up](lookup), for example in a database |
//! | `moka` | `MokaStore`, for programs that want that cache |
//! | `tracing` | one span for each delivery |
//! | `metrics` | counters, histograms and gauges, through the `metrics` facade; brings `tower` |
//! | `chrono`, `jiff`, `time` | conversions of a [`Date`](crate::event::Date) |
//!
//! A feature adds API and changes no behaviour.
//!
//! # Packages
//!
//! What not every receiver needs is a package of its own. [All have one version](guide::guarantees#versions).
//!
//! | package | is |
//! |---|---|
//! | [`hookgate-redis`](https://docs.rs/hookgate-redis) | claims that processes share, on Redis or Valkey |
//! | [`hookgate-postgres`](https://docs.rs/hookgate-postgres) | the same on PostgreSQL; claims inside your own transaction; the inbox in a table |
//! | [`hookgate-sqlite`](https://docs.rs/hookgate-sqlite) | claims that a restart does not forget, in a file; claims inside your own transaction; the inbox in a file |
//! | [`hookgate-inbox`](https://docs.rs/hookgate-inbox) | the durable inbox and its workers |
//! | [`hookgate-order`](https://docs.rs/hookgate-order) | whether an event is the newest of its row |
//! | [`hookgate-record`](https://docs.rs/hookgate-record) | the delivery log: every delivery with its answer, in a file |
//! | [`hookgate-testing`](https://docs.rs/hookgate-testing) | tools for tests: signer, factories, replay, conformance of stores |
//! | [`hookgate-emulator`](https://docs.rs/hookgate-emulator) | the service on your machine |
//! | [`hookgate-client`](https://docs.rs/hookgate-client) | the service's API, and reconciliation |
//! | `hookgate-cli` | the command `hookgate` |
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
