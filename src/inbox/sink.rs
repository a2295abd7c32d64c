//! The one operation on the hot path: store a delivery so that it outlives everything but its disk.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::dedupe::{ScopesInUse, StoreFuture};
use crate::delivery::Delivery;

/// Where verified deliveries are put before they are answered.
///
/// 1. **The answer comes when the delivery is durable**, and not before: the sender hears 2xx on it, and never sends again. That holds
///    for a duplicate as well: what it doubles is durable by then.
/// 2. **Each call is one indivisible step.** Of any number of copies at a time, one is [`New`](Accepted::New).
/// 3. **An id is remembered for `retain`** at least, counted from its acceptance, and for as long as its delivery is not handled.
/// 4. **An error means unknown**: the delivery may or may not be stored. It is answered 503, and the retry finds out. A future that is
///    dropped, as happens after 30 s, says no more than an error does.
///
/// [`Acceptor`](crate::Acceptor) asks it, and has an example. An [inbox](crate::inbox) is one, and a queue that you run already can be one:
/// `examples/jetstream` shows it. Where many workers of one process accept, an `Arc` of a sink is a sink.
pub trait Sink: fmt::Debug + Send + Sync + 'static {
    /// Stores the delivery, unless its [`key`](Delivery::key) is known.
    fn accept<'a>(&'a self, delivery: &'a Delivery, retain: Duration) -> StoreFuture<'a, Accepted>;

    /// The acceptors that store here, so that one whose secret differs is refused when it is built: see [`ScopesInUse`]. `None`, the
    /// default: nothing is compared, and the acceptors of this sink each need a [scope](crate::ReceiverBuilder::scope) of their own.
    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        None
    }
}

/// What became of a delivery that was to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is stored, and durable.
    New,
    /// Its event is known: stored before, handled or not.
    Duplicate {
        /// Whether the body is the one that was stored. True where the sink can't tell.
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
