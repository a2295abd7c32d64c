//! Storing in place of handling: a delivery is verified, **stored**, and answered 2xx only once it is durable.
//!
//! A [`Sink`] stores deliveries, with one operation. A [`QueueSink`] makes a sink of any queue that you run already. An [`Acceptor`]
//! calls the sink; [`ReceiverBuilder::accept_into`](crate::ReceiverBuilder::accept_into) makes the acceptor. The package
//! `hookgate-inbox` is a sink with workers, on SQLite or PostgreSQL.

mod accept;
mod acceptor;
mod contract;
mod queue;

pub use acceptor::Acceptor;
pub use contract::{Accepted, Sink};
pub use queue::{PublishError, QueueSink};
