//! Verify, store, answer: the receiver's steps, with a sink at the end.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::time::Instant;
use tower_service::Service;

use super::{Accepted, Sink};
use crate::catch_panic::catch_panic_in;
use crate::config::ConfigError;
use crate::dedupe::{StoreError, StoreErrorKind};
#[cfg(feature = "metrics")]
use crate::layer;
use crate::layer::{
    LATE_STORE_CALL, ReceiverInner, Reply, RequestContext, ResponseBody, ResponseFuture, RunEnd,
    VerifiedBody, answer_of,
};
use crate::lookup::Keys;
use crate::observe::{Reason, Settled};
use crate::outcome::{Failure, Outcome, Refusal};
use crate::pipeline::{Delivery, Health};
#[cfg(doc)]
use crate::receiver::Receiver;
use crate::receiver::ReceiverBuilder;

/// Accepts deliveries: verifies each, puts it into a [`Sink`], and answers 2xx once the sink
/// reports that it is **durable**.
///
/// [`ReceiverBuilder::accept_into`] makes it. It is a tower service, in axum
/// `post_service(acceptor)`; for any other server there is [`handle`](Self::handle). Clones share
/// all state.
///
/// It takes the same steps as the [layer](crate::layer), with the same answers, hooks, metrics,
/// spans and log, up to the point where the layer would claim the event. [The page about
/// answers](crate::guide::answers) lists the answer to each result of the sink, and the report to
/// the operator.
///
/// At most [`max_runs`](ReceiverBuilder::max_runs) deliveries are in progress at a time. A sender
/// that closes its connection does not stop the call of the sink. Of copies that arrive together,
/// each calls the sink, and one call returns `New`.
///
/// ```
/// use std::time::Duration;
/// use bytes::Bytes;
/// use hookgate::{Delivery, MemoryStore, Receiver, Secret, sink::{PublishError, QueueSink}};
/// use http_body_util::Full;
/// # use hookgate::{
/// #     clock::{Clock, SystemClock},
/// #     verify::{Signature, Timestamp},
/// # };
/// # use http::Request;
///
/// async fn publish(delivery: Delivery) -> Result<(), PublishError> {
///     let _message = (delivery.to_stored().attributes(), delivery.body());
///     Ok(()) // once the queue has confirmed it
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// # let secret = Secret::new("whsec_made_up_for_this_example")?;
/// # let timestamp = Timestamp::at(SystemClock.now())?;
/// # let body = r#"{"id":"evt_1","type":"page.created"}"#;
/// # let signature = Signature::sign(&secret, &timestamp, body.as_bytes()).to_header_value();
/// # let request = Request::post("/webhooks")
/// #     .header("x-service-timestamp", timestamp.as_str())
/// #     .header("x-service-signature", &signature)
/// #     .body(Full::new(Bytes::from(body)))?;
/// let sink = QueueSink::new(MemoryStore::default(), publish);
/// let acceptor = Receiver::builder().secret(secret).accept_into(sink)?;
/// // In axum: Router::new().route("/webhooks", post_service(acceptor.clone()))
///
/// # let again = request.clone();
/// let first = acceptor.handle(request).await;
/// assert_eq!((first.status().as_u16(), first.headers().get("idempotent-replayed")), (200, None));
/// let copy = acceptor.handle(again).await;
/// assert_eq!(copy.headers()["idempotent-replayed"], "true");
///
/// acceptor.drain(Duration::from_secs(30)).await; // at shutdown
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// An acceptor claims nothing, so no handler can stand behind it: it has no `layer`.
///
/// ```compile_fail,E0599
/// fn guard(acceptor: &hookgate::sink::Acceptor) {
///     let _ = acceptor.layer();
/// }
/// ```
///
/// # Security
/// Only authentic and fresh deliveries reach the sink: callers without the secret cannot write to
/// it.
#[derive(Clone)]
pub struct Acceptor {
    shared: Arc<ReceiverInner<Storing>>,
}

/// Accepting in place of handling (feature `tower`).
impl ReceiverBuilder {
    /// Builds an acceptor in place of a receiver with [`build`](Self::build): authentic and fresh
    /// deliveries go into `sink`, and are answered 2xx once they are durable there. See
    /// [`Acceptor`].
    ///
    /// The sink remembers the events that it has accepted. Therefore [`store`](Self::store) and
    /// [`without_deduplication`](Self::without_deduplication) are errors with a sink.
    /// [`retention`](Self::retention), passed with each delivery, is checked as for a store.
    /// `lease` has no meaning here, since nothing is claimed.
    ///
    /// # Errors
    /// As [`build`](Self::build), except for the store: `StoreUnused` if a store was given, or
    /// deduplication was switched off. See [`ConfigErrorKind`](crate::ConfigErrorKind).
    ///
    /// ```
    /// use hookgate::{ConfigErrorKind, MemoryStore, Receiver, Secret};
    /// # use hookgate::{
    /// #     Delivery,
    /// #     dedupe::StoreFuture,
    /// #     sink::{Accepted, Sink},
    /// # };
    /// # #[derive(Debug)]
    /// # struct Queue;
    /// # impl Sink for Queue {
    /// #     fn accept<'a>(&'a self, _: &'a Delivery, _: std::time::Duration) -> StoreFuture<'a, Accepted> {
    /// #         StoreFuture::ready(Ok(Accepted::New))
    /// #     }
    /// # }
    ///
    /// let secret = Secret::new("whsec_made_up_for_this_example")?;
    /// let both = Receiver::builder().secret(secret).store(MemoryStore::default()).accept_into(Queue);
    /// assert_eq!(both.err().map(|error| error.kind()), Some(ConfigErrorKind::StoreUnused));
    /// # Ok::<(), hookgate::ConfigError>(())
    /// ```
    pub fn accept_into(self, sink: impl Sink) -> Result<Acceptor, ConfigError> {
        let scopes = sink.scopes_in_use().cloned();
        let sink: Box<dyn Sink> = Box::new(sink);
        let receiver = self.build_to_accept(scopes, |retention| Storing { sink, retention })?;
        Ok(Acceptor {
            shared: Arc::new(receiver),
        })
    }
}

impl Acceptor {
    /// Takes a delivery from its request to its answer, for a server without tower services.
    ///
    /// [`Receiver::handle`] documents the request to pass, and the effect of dropping the future.
    /// The answer's extensions hold an [`Answer`](crate::layer::Answer).
    ///
    /// # Panics
    /// Without a tokio runtime that has its timers enabled.
    ///
    /// # Security
    /// As for [`Receiver::handle`]: pass method, headers and body exactly as they were received.
    pub fn handle<B: Body>(
        &self,
        request: Request<B>,
    ) -> impl Future<Output = Response<Bytes>> + use<B> {
        let answer = accept(&self.shared, request);
        async move { answer.await.map(ResponseBody::into_bytes) }
    }

    /// Refuses new deliveries with 503 and waits for the calls of the sink under way, as
    /// [`Receiver::drain`] does for runs. Calls that still go on after `limit` are dropped. Returns
    /// their number.
    pub async fn drain(&self, limit: Duration) -> usize {
        self.shared.drain(limit).await
    }

    /// Returns the health, for a readiness probe: see [`Receiver::health`]. The store is the sink.
    #[must_use]
    pub fn health(&self) -> Health {
        self.shared.auth.gate.health()
    }

    /// Returns the live keys, so that some can be replaced while deliveries arrive.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        self.shared.auth.keys()
    }

    /// Returns the number of calls of the sink under way.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.shared.auth.gate.runs()
    }

    /// Sets the gauges to the current values: see [`Receiver::record_metrics`]. The metrics of the
    /// sink are its own.
    #[cfg(feature = "metrics")]
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn record_metrics(&self) {
        let retention = Some(self.shared.backend.retention);
        layer::record_gauges(&self.shared, retention, || None);
    }
}

impl<B> Service<Request<B>> for Acceptor
where
    B: Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<ResponseBody<VerifiedBody>>;
    type Error = Infallible;
    type Future = ResponseFuture<VerifiedBody, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let answer = accept(&self.shared, request);
        ResponseFuture::new(async { Ok(answer.await) })
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor")
            .field("auth", &self.shared.auth)
            .field("sink", &self.shared.backend.sink)
            .finish()
    }
}

/// The step of an acceptor after the signature: the sink, and the time for which it remembers an
/// event.
#[derive(Debug)]
struct Storing {
    sink: Box<dyn Sink>,
    retention: Duration,
}

/// Takes a delivery from its request to its answer. No copy waits for another copy: each calls the
/// sink, whose answer is one indivisible step.
///
/// Not an `async fn`: the time for the answer counts from this call, not from the first poll.
fn accept<B, R>(
    acceptor: &Arc<ReceiverInner<Storing>>,
    request: Request<B>,
) -> impl Future<Output = Response<ResponseBody<R>>> + use<B, R>
where
    B: Body,
    R: Send + 'static,
{
    let (head, body) = request.into_parts();
    let mut context = RequestContext::begin(Arc::clone(acceptor), &head);
    context.observation.span.clone().around(async move {
        let delivery = match context.take_in(&head, pin!(body)).await {
            Ok(delivery) => delivery,
            Err(refused) => return refused,
        };
        let (receiver, stored) = (Arc::clone(&context.receiver), delivery.clone());
        let end = answer_of(context.answer_due(), |reply| store(receiver, stored, reply)).await;
        if end.outcome == Outcome::RunsOn {
            // The sink has used up the time for the answer, so it counts as failed. Its late answer
            // does not show that it works again.
            context.receiver.auth.gate.health_signs.store_failed();
        }
        match context.respond::<R, Infallible>(end, delivery) {
            Ok(response) => response,
            Err(never) => match never {},
        }
    })
}

/// Calls the sink, and reports the end like that of any run. It holds a permit, so that a drain
/// waits.
async fn store<R>(
    receiver: Arc<ReceiverInner<Storing>>,
    delivery: Delivery,
    mut reply: Reply<R, Infallible>,
) {
    let permit = match receiver.auth.gate.enter() {
        Ok(permit) => permit,
        Err(kind) => {
            let refusal = Refusal::new(kind);
            let (outcome, reason) = (Outcome::Refused(kind), Arc::new(refusal.clone()));
            receiver.report_failure(delivery.verified(), Some(&delivery), outcome, Some(reason));
            return reply.send(RunEnd::refused(refusal));
        }
    };
    let started = Instant::now();
    let Storing { sink, retention } = &receiver.backend;
    let call =
        async { catch_panic_in(pin!(async { sink.accept(&delivery, *retention).await })).await };
    let longest = receiver.settings.run_limit.min(LATE_STORE_CALL);
    let answer = tokio::select! {
        biased;
        answer = call => Ok(answer.unwrap_or_else(|panicked| {
            let below = format!("the sink panicked: {panicked}");
            Err(StoreError::new(StoreErrorKind::Unavailable).caused_by(below))
        })),
        failure = reply.answer_when_due_until_abort(&receiver.settings.abort_runs, started + longest) => match failure {
            Failure::RunLimit => {
                let below = format!("the sink has not answered for {} ms", longest.as_millis());
                Ok(Err(StoreError::new(StoreErrorKind::TimedOut).caused_by(below)))
            }
            failure => Err(failure),
        },
    };
    let health_signs = &receiver.auth.gate.health_signs;
    if let Ok(answer) = &answer
        && !reply.is_sent()
    {
        health_signs.record_store_answer(answer);
    }
    let (outcome, refusal) = match answer {
        Ok(Ok(accepted)) => {
            health_signs.accepted();
            let outcome = match accepted {
                Accepted::New => Outcome::Accepted,
                Accepted::Duplicate { same_body } => Outcome::Replayed { same_body },
            };
            (outcome, None)
        }
        Ok(Err(error)) => {
            let refusal = Refusal::from(error);
            (Outcome::Refused(refusal.kind()), Some(refusal))
        }
        Err(failure) => (Outcome::Failed(failure), None),
    };
    receiver.report_run(&Settled {
        outcome,
        delivery,
        reason: refusal.clone().map(|refusal| Arc::new(refusal) as Reason),
        elapsed: started.elapsed(),
        late: !reply.is_awaited(),
    });
    // Before the answer: when the sender has it, the permit is free.
    drop(permit);
    reply.send(refusal.map_or_else(|| RunEnd::own(outcome), RunEnd::refused));
}
