//! A client of the Workspace Data Service's HTTP API, and a reconciliation that finds changes
//! without a handled event.
//!
//! Rows are read and written by the **names** of their properties, with the same structs as
//! `Event<R>` of the crate `hookgate`. In this example the emulator is the service:
//!
//! ```
//! use hookgate_client::{ApiKey, Client};
//! use hookgate_emulator::{Emulator, Seed};
//! use serde::{Deserialize, Serialize};
//! use serde_json::json;
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct Order {
//!     #[serde(rename = "Customer")]
//!     customer: String,
//!     #[serde(rename = "Quantity")]
//!     quantity: Option<i64>,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let emulator = Emulator::start(Seed::orders()).await?;
//! let client = Client::new(&emulator.base_url(), ApiKey::new("tk_test_write")?)?;
//! let orders = client.rows::<Order>("dm_orders");
//!
//! let mut list = orders.list(); // a stream, which requests the next page itself
//! while let Some(row) = list.next().await {
//!     let row = row?;
//!     println!("{}: {}", row.id, row.properties.customer);
//! }
//!
//! let ada = Order { customer: "Ada".into(), quantity: Some(2) };
//! let row = orders.create(&ada).await?;
//! assert_eq!(row.properties, ada);
//! let row = orders.update(&row.id, &json!({ "Quantity": 3 })).await?;
//! assert_eq!(row.properties.quantity, Some(3));
//! orders.delete(&row.id).await?;
//!
//! let error = orders.delete(&row.id).await.unwrap_err();
//! assert!(error.to_string().starts_with("DELETE /datamodels/dm_orders/rows/row_"));
//! assert!(error.to_string().contains("404 NOT_FOUND"));
//! # Ok(()) }
//! ```
//!
//! # Repeats
//! A call repeats its request within [`Options::retries`] and [`Options::total_timeout`], if that
//! makes no change twice. The table in `docs/client.md`, *When a request fails*, has the failures
//! by method. A [`Trigger`] is called once, unless you call [`TriggerCall::repeat`].
//!
//! The API has no idempotency key. If a change was sent and no answer says whether it was made, the
//! error says *outcome unknown* ([`Error::is_outcome_unknown`]): check the row before you repeat
//! the change. If the future of a change is dropped, its outcome is unknown too.
//!
//! # Rate
//! All clones of a [`Client`] share one count of the requests that are left. The headers
//! `X-RateLimit-*` of each answer correct it. If none is left, a request waits, within the call's
//! total time. [`ClientBuilder::on_wait`] is called for each wait, and [`Client::rate`] returns the
//! requests that are left. The service may count by workspace: then other programs use the same
//! rate. After a 429 all calls of the client wait.
//!
//! # Transport
//! Requests go through any `tower_service::Service` over `http` types:
//! [`ClientBuilder::with_service`]. The feature `tls`, which is on by default, brings hyper's
//! pooling client with rustls; the feature `hyper` brings it without TLS. Neither follows a
//! redirect. rustls takes its default provider of crypto, where the program has installed one,
//! otherwise that of the feature `ring` or `aws-lc-rs`.
//!
//! # Events
//! The feature `reconcile` adds the module `reconcile`, which finds the rows that changed without a
//! handled event, and `Ledger`, which recognises the events of the client's own writes.
//!
//! # Security
//! Keys are wiped when they are dropped, and no `Debug` or error shows one. Plain http to other
//! machines is refused, unless [`ClientBuilder::allow_plain_http`] permits it. An error holds no
//! value of a row, unless the service's own message contains one.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(all(doctest, feature = "reconcile"))]
#[doc = include_str!("../../../docs/client.md")]
mod page {}

mod address;
mod call;
mod client;
mod error;
#[cfg(feature = "hyper")]
mod hyper;
mod json;
mod key;
#[cfg(feature = "reconcile")]
mod ledger;
mod list;
mod model;
mod names;
mod objects;
mod options;
mod rate;
#[cfg(feature = "reconcile")]
pub mod reconcile;
mod rows;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod sql;
mod transport;
mod trigger;

pub use call::{Wait, WaitReason};
pub use client::{Client, ClientBuilder, DataModels};
pub use error::{BatchProgress, Error, ErrorKind, RowError, Scope};
pub use key::ApiKey;
#[cfg(feature = "reconcile")]
pub use ledger::{Echo, Ledger};
pub use list::{List, Page};
pub use model::{DataModel, Icon, Property, PropertyType, RelationConfig, SelectOption};
pub use objects::Objects;
pub use options::Options;
pub use rate::Rate;
pub use rows::{Created, Direction, Row, Rows};
pub use transport::Body;
pub use trigger::{Trigger, TriggerAnswer, TriggerCall};
