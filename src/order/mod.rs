//! The order of the events of a row: an old event overwrites nothing.
//!
//! The service promises no order. For each row, an `OrderGuard` remembers the newest handled event. It tells the
//! handler whether the present event is [`Newest`](Order::Newest), [`Stale`](Order::Stale), or [`Unknown`](Order::Unknown). It also
//! reports signs that an event was missed. [The page about order](crate::guide::order) has the rules, and says what a handler
//! does with a stale event.
//!
//! ```
//! # #[cfg(feature = "axum")] {
//! use axum::{Router, http::StatusCode, routing::post};
//! use hookgate::order::{MemoryOrderStore, Order, OrderGuard};
//! use hookgate::{Event, MemoryStore, Receiver, Secret};
//!
//! async fn on_event(event: Event, order: Order) -> StatusCode {
//!     println!("{} is {}", event.id, order.name());
//!     StatusCode::NO_CONTENT
//! }
//!
//! let receiver = Receiver::builder()
//!     .secret(Secret::new("whsec_made_up_for_this_example")?)
//!     .store(MemoryStore::default())
//!     .build()?;
//! let guard = OrderGuard::new(MemoryOrderStore::default()).on_ordered(|told| println!("{}: {:?}", told.row, told.gap));
//! let app: Router = Router::new().route("/webhooks", post(on_event).layer((receiver.layer(), guard)));
//! # let _ = app;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "tower")]
mod call;
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "tower"))]
pub mod contract;
mod event;
#[cfg(feature = "axum")]
mod extract;
#[cfg(feature = "tower")]
mod function;
#[cfg(feature = "tower")]
mod guard;
mod in_transaction;
mod judge;
mod known;
mod last;
mod lock;
mod memory;
#[cfg(feature = "metrics")]
mod metrics;
mod moment;
#[cfg(feature = "tower")]
mod report;
#[cfg(feature = "tower")]
mod run;
#[cfg(feature = "tower")]
mod service;
mod store;
#[cfg(feature = "tower")]
mod turns;

#[cfg(feature = "tower")]
pub use guard::OrderGuard;
pub use in_transaction::{OrderedIn, RowValues};
pub use judge::{GapReason, Order};
pub use last::LastHandled;
pub use memory::MemoryOrderStore;
#[cfg(feature = "tower")]
pub use report::Ordered;
#[cfg(feature = "tower")]
pub use service::OrderService;
pub use store::OrderStore;
