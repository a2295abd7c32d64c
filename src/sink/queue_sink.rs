//! Any queue as a sink: a store of claims remembers the ids, and one call publishes.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use super::{Accepted, Sink};
use crate::dedupe::{
    ClaimToken, Claimed, DedupeStore, ScopesInUse, StoreError, StoreErrorKind, StoreFuture,
};
use crate::layer::under_lease;
use crate::pipeline::Delivery;

/// The name of this sink's records in a store: see
/// [`EventKey::named`](crate::dedupe::EventKey::named).
const NAME: &str = "published";

/// Makes any queue a [`Sink`]: a [`DedupeStore`] remembers the ids, which a queue such as Kafka,
/// RabbitMQ or SQS cannot.
///
/// Each delivery is claimed, published and committed. `publish` returns when the queue has
/// **confirmed** that the message is durable. [The page about queues](crate::guide::queues) has the
/// form of a message and the consumer's side.
///
/// | `publish` | the record | the answer |
/// |---|---|---|
/// | `Ok` | committed for the retention, which begins here | `New`: 2xx |
/// | [`Failed`](PublishError::Failed) | released: the next delivery is published at once | the error: 503 |
/// | [`Unknown`](PublishError::Unknown), dropped, or the process died | stays claimed until the lease ends | the error: 503 |
/// | is under way, by another copy | not changed | [`Conflict`](StoreErrorKind::Conflict): 503, and the sender asks again |
/// | takes longer than a third of the lease | the lease is renewed | |
///
/// The records have keys of their own: a consumer may claim the same events in the same store.
///
/// So a message is published **at least once**. It comes twice if the first outcome was unknown, if
/// the commit failed or came after the lease had ended, or if the store has forgotten the event.
/// Rule 3 of [`Sink`] is kept for as long as the store keeps its records.
///
/// [`Acceptor`](crate::sink::Acceptor) has an example.
pub struct QueueSink<S, P> {
    store: S,
    publish: P,
    lease: Duration,
}

/// The reason why a message was not confirmed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PublishError {
    /// The queue has refused the message, or it was never sent: it is **not** stored.
    #[error("the message was not published")]
    Failed(#[source] StoreError),
    /// There was no answer, or the connection broke: the message may be stored. Any doubt belongs
    /// here.
    #[error("it is not known whether the message was published")]
    Unknown(#[source] StoreError),
}

impl<S, P> QueueSink<S, P> {
    /// Returns a sink that calls `publish` for each event that `store` does not know yet.
    pub fn new(store: S, publish: P) -> Self {
        let lease = Duration::from_secs(30);
        Self {
            store,
            publish,
            lease,
        }
    }

    /// Sets the time for which an event stays claimed without renewal, and so the time for which it
    /// is refused after an unknown outcome. Choose it longer than the store and the client's own
    /// retries take, and shorter than the sender's first wait. Default: 30 s.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }
}

impl<S, P, F> Sink for QueueSink<S, P>
where
    S: DedupeStore,
    P: Fn(Delivery) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), PublishError>> + Send + 'static,
{
    fn accept<'a>(&'a self, delivery: &'a Delivery, retain: Duration) -> StoreFuture<'a, Accepted> {
        StoreFuture::boxed(async move {
            // A consumer claims the same event, perhaps in the same store: the two records must not
            // be one.
            let (store, key) = (&self.store, &delivery.key().named(NAME));
            let token = ClaimToken::new(delivery.body());
            let asked = Instant::now();
            let published = match store.claim(key, token, self.lease).await {
                // The lease has ended: another copy may have the event by now.
                Ok(Claimed::Fresh) if asked.elapsed() >= self.lease => {
                    let late = StoreError::new(StoreErrorKind::TimedOut);
                    Err(PublishError::Failed(late))
                }
                Ok(Claimed::Fresh) => {
                    let publish = (self.publish)(delivery.clone());
                    let renew = || store.renew(key, token, self.lease);
                    under_lease(publish, self.lease, asked, renew).await.0
                }
                Ok(Claimed::Running { .. }) => {
                    let message = "another copy of the event is being published";
                    return Err(StoreError::saying(StoreErrorKind::Conflict, message));
                }
                Ok(Claimed::Done { body_mark }) => {
                    let same_body = body_mark == token.body_mark();
                    return Ok(Accepted::Duplicate { same_body });
                }
                // There may be a claim. A release with a token that holds none changes nothing.
                Err(error) => Err(PublishError::Failed(error)),
            };
            match published {
                Ok(()) => {
                    // The message is durable, so it is accepted, even if that cannot be recorded:
                    // an error would ask for a second one.
                    if store.commit(key, token, retain).await.is_err() {
                        let _ = store.commit(key, token, retain).await;
                    }
                    Ok(Accepted::New)
                }
                Err(PublishError::Failed(error)) => {
                    let _ = store.release(key, token).await;
                    Err(error)
                }
                Err(PublishError::Unknown(error)) => Err(error),
            }
        })
    }

    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        self.store.scopes_in_use()
    }
}

impl<S: fmt::Debug, P> fmt::Debug for QueueSink<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueSink")
            .field("store", &self.store)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}
