//! The event router: arms by event type and data model. Each arm is an ordinary axum handler.
//!
//! `Event<Order>` fits the rows of one data model. If one URL takes several data models, or one handler would get a branch for
//! each event type, the router sends every delivery to its own handler. Each handler has its own row type, extractors and
//! errors, and all have the state of the axum app.
//!
//! # The choice of the arm
//!
//! 1. The arm for the event's type **and** data model.
//! 2. The arm for its type.
//! 3. `otherwise`.
//!
//! The first of these that exists handles the event, and its answer is sent. An arm that refuses, such as one whose
//! `Event<R>` does not fit the row, does not pass the event on: another handler's 2xx would hide the mismatch.
//!
//! Data models are identified by their **id**, because people rename models. Only `row.created`, `row.updated` and
//! `row.deleted` name one, according to the specification; types that are not invented yet have arms by type only. Type and id
//! come from the bytes that were signed, never from a header, and are compared exactly, after JSON's escapes are resolved.
//!
//! # Events without an arm
//!
//! Without `otherwise` such an event is answered 204 and done: a retry would not help. But the operator sees it: the outcome is
//! [`Unhandled`](crate::Outcome::Unhandled) in place of `Handled`, with a [reason](crate::Unhandled) that names type and data
//! model. With [`refuse_unhandled`](EventRouter::refuse_unhandled) it is answered 422, the claim is released and the failure is
//! [`Failure::Unhandled`](crate::Failure::Unhandled): a deployment with the missing arm can still take a retry.
//!
//! # Bodies without a readable data model
//!
//! The layer has read id and type. The router reads more only if an arm for the event's **type** names a data model: then in
//! one pass over the whole body, without a copy, which costs somewhat less than reading it as an `Event`. The data model of a
//! row event is not readable if it is missing, not a string or present twice, or if the body is not well-formed JSON. The event
//! is then refused as [`Event`](crate::Event) refuses it: 422, the claim released, the reason with path and position. Neither
//! the arm for its type nor `otherwise` takes it: the right arm depends on the id. If no arm for the type names a data model,
//! only the handler reads the body.
//!
//! # Examples
//!
//! [Handlers](crate::guide::handlers) has two data models at one URL, with the state of the app. Here are arms for types, and a
//! handler for all other events:
//!
//! ```
//! use axum::http::StatusCode;
//! use hookgate::{Delivery, Event, EventRouter, EventType, ConfigErrorKind};
//!
//! async fn on_row(_: Event) -> StatusCode {
//!     StatusCode::NO_CONTENT
//! }
//!
//! async fn on_other(delivery: Delivery) -> StatusCode {
//!     println!("{}: {} bytes", delivery.event_type(), delivery.body().len());
//!     StatusCode::NO_CONTENT
//! }
//!
//! let events: EventRouter = EventRouter::new()
//!     .on(EventType::ROW_CREATED, on_row)
//!     .on("row.updated", on_row)
//!     .on("page.created", on_other)
//!     .otherwise(on_other);
//! assert!(events.build().is_ok());
//!
//! let twice: EventRouter = EventRouter::new().on("row.created", on_row).on("row.created", on_row);
//! let error = twice.build().unwrap_err();
//! assert_eq!(error.kind(), ConfigErrorKind::ArmTwice);
//! assert_eq!(error.to_string(), r#"two arms for "row.created" of any data model"#);
//! ```
//!
//! # What to subscribe to
//!
//! A subscription has event types and at most one data model, so the arms decide which ones are needed.
//! [`subscriptions`](EventRouter::subscriptions) lists the fewest, with no event in two of them:
//!
//! ```
//! use axum::http::StatusCode;
//! use hookgate::EventRouter;
//!
//! let events: EventRouter = EventRouter::new()
//!     .on("row.created", StatusCode::NO_CONTENT) // a constant answer is a handler, too
//!     .on_rows("dm_orders", StatusCode::NO_CONTENT);
//! assert_eq!(
//!     events.subscriptions().to_string(),
//!     "subscription to row.created; data model: any\n\
//!      subscription to row.deleted, row.updated; data model: dm_orders\n\
//!      warning: row.created of dm_orders: the subscription to any data model brings that; another one that brings it too \
//!      needs the same scope, or each event runs twice"
//! );
//! ```
//!
//! # Security
//! Each subscription has its own secret, and a client that holds one can sign **any** event type and data model: an arm does
//! not know from which subscription an event came. If that matters, give each subscription its own route, or let the arm check
//! [`Verified::scope`](crate::Verified::scope).
//!
//! A router without the layer answers 500 and names the line of code to add; no arm ever gets an unverified event.

mod arm;
mod dispatch;
mod router;
mod subscriptions;
mod table;

pub use router::EventRouter;
pub use subscriptions::{Subscription, SubscriptionWarning, Subscriptions};
