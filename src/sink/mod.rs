//! Storing in place of handling: a delivery is verified, **stored**, and answered 2xx only once it is durable.
//!
//! A [`Sink`] stores deliveries. It has one operation, so that a queue that you run already can be a sink, if it keeps the sink's
//! rules. An [`Acceptor`] calls the sink; [`ReceiverBuilder::accept_into`](crate::ReceiverBuilder::accept_into) makes the acceptor.
//! The package `hookgate-inbox` is a sink with workers, on SQLite or PostgreSQL.

mod accept;
mod acceptor;
mod contract;

pub use acceptor::Acceptor;
pub use contract::{Accepted, Sink};
