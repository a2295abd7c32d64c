//! The Workspace Data Service on your machine: its API with state, signed deliveries with retries,
//! and inbound triggers. A test sets the time, and chooses the faults.
//!
//! The command `hookgate emulate` runs the same emulator. docs/emulator.md has the form of a seed
//! and the control API. It also lists which behaviour the specification shows, which is assumed,
//! and which is unknown.
//!
//! # One clock
//! The receiver and its store read the emulator's clock. So a test of an event with retries over 36
//! minutes takes a few milliseconds, and its timestamps are right:
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering};
//! use std::time::Duration;
//!
//! use axum::{Router, http::StatusCode, routing::post};
//! use hookgate::{Event, MemoryStore, Receiver, Secret};
//! use hookgate_emulator::{Emulator, Seed};
//! use serde_json::json;
//!
//! static FAILURES: AtomicU32 = AtomicU32::new(3);
//!
//! /// Fails three times.
//! async fn on_event(_: Event) -> StatusCode {
//!     match FAILURES.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
//!         Ok(_) => StatusCode::INTERNAL_SERVER_ERROR,
//!         Err(_) => StatusCode::NO_CONTENT,
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
//! let emulator = Emulator::start(Seed::orders()).await?;
//!
//! let secret = "whsec_made_up_for_this_test";
//! let receiver = Receiver::builder()
//!     .secret(Secret::new(secret)?)
//!     .store(MemoryStore::default().with_clock(emulator.clock()))
//!     .clock(emulator.clock())
//!     .build()?;
//! let app: Router = Router::new().route("/webhooks", post(on_event).layer(receiver.layer()));
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let url = format!("http://{}/webhooks", listener.local_addr()?);
//! tokio::spawn(async move { axum::serve(listener, app).await });
//!
//! emulator.subscribe(&url, secret)?;
//! let row = emulator.rows("dm_orders").create(json!({ "prop_customer": "Ada", "prop_total": 12.5 }))?;
//! emulator.advance(Duration::from_secs(36 * 60)).await; // 1, 5 and 30 minutes
//! emulator.assert_delivered("row.created", json!({ "rowId": row, "properties": { "Customer": "Ada" } }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A receiver in another process reads a real clock. With [`EmulatorBuilder::real_signatures`]
//! deliveries are signed at the real time, and the schedule still follows the emulator's time.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/emulator.md")]
mod guide_page {}

mod answer;
mod api;
mod body;
mod changes;
mod control;
mod deliver;
mod emulator;
mod events;
mod faults;
mod http;
mod hub;
mod ids;
mod inspector;
mod live;
mod model;
mod page;
mod query;
mod requests;
mod seed;
mod switches;
mod time;
mod trigger;

pub use emulator::{Emulator, EmulatorBuilder, Refused, RowsHandle};
pub use hub::StartError;
pub use inspector::{DeliveryFilter, Inspected, Inspector};
pub use seed::{Seed, SeedError};
pub use time::EmulatorClock;
