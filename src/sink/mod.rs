//! Storing in place of handling: a delivery is verified, **stored**, and answered 2xx only once it
//! is durable.
//!
//! ```
//! use hookgate::{Delivery, MemoryStore, Receiver, Secret, sink::{PublishError, QueueSink}};
//!
//! async fn publish(delivery: Delivery) -> Result<(), PublishError> {
//!     let _message = (delivery.to_stored().attributes(), delivery.body());
//!     Ok(()) // once the queue has confirmed it
//! }
//!
//! let acceptor = Receiver::builder()
//!     .secret(Secret::new("whsec_made_up_for_this_example")?)
//!     .accept_into(QueueSink::new(MemoryStore::default(), publish))?;
//! assert_eq!(acceptor.runs(), 0); // in axum: Router::new().route("/webhooks", post_service(acceptor))
//! # Ok::<(), hookgate::ConfigError>(())
//! ```
//!
//! A [`Sink`] stores deliveries, with one operation. A [`QueueSink`] makes a sink of any queue that
//! you run already. An [`Acceptor`] calls the sink;
//! [`ReceiverBuilder::accept_into`](crate::ReceiverBuilder::accept_into) makes the acceptor. The
//! package `hookgate-inbox` is a sink with workers, on SQLite or PostgreSQL.

mod acceptor;
mod queue_sink;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::dedupe::{ScopesInUse, StoreFuture};
use crate::pipeline::Delivery;

pub use acceptor::Acceptor;
pub use queue_sink::{PublishError, QueueSink};

/// Stores verified deliveries before they are answered.
///
/// 1. **The sink answers when the delivery is durable**, and not before: the sender then gets 2xx
///    and never sends the event again. This holds for a duplicate as well: the delivery that was
///    stored first is durable by then.
/// 2. **Each call is one atomic step.** Of any number of simultaneous copies, exactly one is
///    [`New`](Accepted::New).
/// 3. **An id is remembered for `retain`** at least, from its acceptance.
/// 4. **An error means unknown**: the delivery may or may not be stored. It is answered 503, and
///    the redelivery finds out. A future that is dropped, as happens after 30 s, also means
///    unknown.
///
/// [`Acceptor`] calls the sink. An inbox of `hookgate-inbox` is a sink, and any queue is one by
/// [`QueueSink`], which says where it is at least once. `SinkConformance` of `hookgate-testing`
/// checks a sink of your own. An `Arc` of a sink is a sink, so that several acceptors of one
/// process can share it.
pub trait Sink: fmt::Debug + Send + Sync + 'static {
    /// Stores the delivery, unless its [`key`](Delivery::key) is already known.
    fn accept<'a>(&'a self, delivery: &'a Delivery, retain: Duration) -> StoreFuture<'a, Accepted>;

    /// Returns the scopes of the acceptors that store here, so that an acceptor with a different
    /// secret is refused when it is built: see [`ScopesInUse`]. `None`, the default: nothing is
    /// compared, and each acceptor of this sink needs its own
    /// [scope](crate::ReceiverBuilder::scope).
    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        None
    }
}

/// The result of storing a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The delivery is stored, and durable.
    New,
    /// The event is known: it was stored before, and may be handled or not.
    Duplicate {
        /// Whether the body equals the stored one. True where the sink cannot compare them.
        same_body: bool,
    },
}

/// A shared sink is a sink.
impl<S: Sink + ?Sized> Sink for Arc<S> {
    fn accept<'a>(&'a self, delivery: &'a Delivery, retain: Duration) -> StoreFuture<'a, Accepted> {
        (**self).accept(delivery, retain)
    }

    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        (**self).scopes_in_use()
    }
}
