//! One run of a handler for a delivery that no request waits for.
//!
//! ```
//! use hookgate::{Event, MemoryStore, Receiver, Secret, receiver::StoredDelivery, run::Acknowledgement};
//!
//! async fn on_event(_: Event) {}
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), hookgate::ConfigError> {
//!     let receiver = Receiver::builder()
//!         .secret(Secret::new("whsec_made_up_for_this_example")?)
//!         .store(MemoryStore::default())
//!         .build()?;
//!     let message = StoredDelivery::from_attributes("{}", |_| None::<String>); // of a queue
//!     let run = receiver.run_stored(&message, on_event).await;
//!     match run.acknowledgement() {
//!         Acknowledgement::Done => println!("acknowledge it"),
//!         Acknowledgement::Retry => println!("return it to the queue"),
//!         Acknowledgement::DeadLetter => println!("put it to the dead letters: {run}"),
//!     }
//!     assert_eq!(run.acknowledgement(), Acknowledgement::DeadLetter); // nobody has signed it
//!     Ok(())
//! }
//! ```

use std::fmt;
use std::future::{Future, Pending, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response};
use tokio::task::unconstrained;
use tokio::time::{Instant, sleep_until};
use tower_service::Service;

use crate::catch_panic::catch_panic_in;
use crate::layer::{
    FromDelivery, HandlerError, HandlerService, IntoAnswer, Reason, VerifiedBody, outcome_of,
    request,
};
use crate::outcome::{Failure, Outcome, Refusal};
use crate::pipeline::{Delivery, TRACEPARENT};
use crate::readable::Chain;

/// Runs a delivery through a handler, for a consumer behind a queue or a store: the same handlers
/// as behind [`Receiver::layer`](crate::Receiver::layer) and
/// [`Receiver::handle`](crate::Receiver::handle), and the same meaning of their answers. The
/// workers of an inbox use it, and [`Receiver::run_stored`](crate::Receiver::run_stored), which
/// also verifies and claims.
///
/// A panic of the handler is caught. If the run's future is dropped, the handler is dropped with
/// it.
///
/// It claims nothing. Where an event must not run twice, claim it around the run, or in the
/// handler's own transaction.
///
/// ```
/// use std::time::Duration;
/// use hookgate::{DeadLetter, Event, EventData, run::{Acknowledgement, Run}};
/// # use hookgate::{clock::UnixSeconds, dangerous, receiver::StoredDelivery};
/// # let body = r#"{"id":"evt_1","type":"row.deleted","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","deletedBy":{"id":"usr_1","name":"Bo"}}}"#;
/// # let delivery = dangerous::restore(&StoredDelivery {
/// #     body: body.into(), timestamp: "1763690000".into(), signature: None, event_id: "evt_1".into(),
/// #     event_type: "row.deleted".into(), received_at: UnixSeconds::new(1_763_690_001), scope: "orders".into(),
/// #     key_name: "primary".into(), subscription_id: None, pinned_workspace: None, traceparent: None,
/// #     scheme: "workspace".into(),
/// # })?;
///
/// async fn on_event(event: Event) -> Result<(), DeadLetter> {
///     match event.data {
///         EventData::RowDeleted(row) if row.row_id == "row_1" => Err(DeadLetter::new("no such customer")),
///         _ => Ok(()),
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// // `delivery` comes from a queue, by `Receiver::verify_stored`.
/// let ran = Run::new(&delivery).limit(Duration::from_secs(60)).handler(on_event).await;
/// assert_eq!(ran.acknowledgement(), Acknowledgement::DeadLetter);
/// assert_eq!(ran.to_string(), "dead_lettered: no such customer");
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing runs before `handler` or `service` is awaited"]
pub struct Run<A = Pending<()>> {
    delivery: Delivery,
    limit: Option<Duration>,
    aborted: A,
}

/// The end of a [`Run`].
///
/// `Display` writes one line: the outcome, the status of a failed answer, and the reason with its
/// sources.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunReport {
    /// The outcome; [`acknowledgement`](Self::acknowledgement) says what follows from it. `Failed`
    /// may succeed later: the answer was no 2xx, or the handler panicked, exceeded its limit
    /// (`RunLimit`) or was aborted (`Drained`). `DeadLettered` can never succeed: unlike under the
    /// layer, no hook has stored the dead letter, and the caller does.
    pub outcome: Outcome,
    /// The reason, if the run failed, can never succeed, or no handler exists for the event.
    pub reason: Option<Reason>,
    /// From the beginning of the handler to its end.
    pub elapsed: Duration,
}

/// What a consumer does with the message of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// Acknowledge it: the event is done.
    Done,
    /// Return it to the queue, which delivers it again, or puts it to its dead letters after its
    /// own limit of deliveries.
    Retry,
    /// It can never succeed: put it to the dead letters with its reason, then acknowledge it.
    DeadLetter,
}

impl RunReport {
    /// Returns a run that did not begin, since the delivery was refused.
    pub(crate) fn refused(refusal: Refusal) -> Self {
        let outcome = Outcome::Refused(refusal.kind());
        Self {
            reason: Some(Arc::new(refusal)),
            ..Self::without_handler(outcome)
        }
    }

    pub(crate) fn without_handler(outcome: Outcome) -> Self {
        Self {
            outcome,
            reason: None,
            elapsed: Duration::ZERO,
        }
    }

    /// Returns what to do with the message.
    #[must_use]
    pub fn acknowledgement(&self) -> Acknowledgement {
        match self.outcome {
            Outcome::DeadLettered => Acknowledgement::DeadLetter,
            // Not authentic, or no event: a second look finds the same.
            Outcome::Refused(kind) if kind.status() != 503 => Acknowledgement::DeadLetter,
            Outcome::Refused(_) | Outcome::Failed(_) | Outcome::RunsOn => Acknowledgement::Retry,
            Outcome::Replayed { .. }
            | Outcome::Accepted
            | Outcome::Handled
            | Outcome::Unhandled
            | Outcome::HandledUnrecorded(_) => Acknowledgement::Done,
        }
    }
}

impl Run {
    /// Returns a run of this delivery, without a limit.
    pub fn new(delivery: &Delivery) -> Self {
        Self {
            delivery: delivery.clone(),
            limit: None,
            aborted: pending(),
        }
    }
}

impl<A: Future> Run<A> {
    /// Drops the handler after this time: the outcome is then `Failed(RunLimit)`. A handler that
    /// blocks its thread cannot be stopped.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Drops the handler when this future is ready: the outcome is then `Failed(Drained)`.
    pub fn abort_on<B: Future>(self, aborted: B) -> Run<B> {
        Run {
            delivery: self.delivery,
            limit: self.limit,
            aborted,
        }
    }

    /// Calls a function of one argument, as [`Receiver::handle`](crate::Receiver::handle) takes it:
    /// an [`Event<R>`](crate::Event), a [`Delivery`], or your own type. See [`FromDelivery`] and
    /// [`IntoAnswer`].
    ///
    /// # Panics
    /// With a [`limit`](Self::limit), without a tokio runtime that has its timers enabled.
    pub fn handler<D, H, F>(self, handler: H) -> impl Future<Output = RunReport> + use<A, D, H, F>
    where
        D: FromDelivery + 'static,
        H: FnOnce(D) -> F + Send + 'static,
        F: Future<Output: IntoAnswer> + Send + 'static,
    {
        let mut handler = Some(handler);
        self.service(HandlerService::<_, D>::new(move || handler.take()))
    }

    /// Calls a tower service once it is ready: the one that the layer would guard, without the
    /// layer, such as an axum route.
    ///
    /// Its request is a POST to `/` with the bytes that were signed, and has the delivery in its
    /// extensions. Its headers are the content type and the values that the delivery knows:
    /// timestamp, subscription, event id and type, and the trace. The signature is left out, since
    /// the request must not be verified again.
    ///
    /// # Panics
    /// As [`handler`](Self::handler).
    pub fn service<S, R>(self, mut service: S) -> impl Future<Output = RunReport> + use<A, S, R>
    where
        S: Service<Request<VerifiedBody>, Response = Response<R>>,
    {
        let Self {
            delivery,
            limit,
            aborted,
        } = self;
        async move {
            let began = Instant::now();
            let called = pin!(async move {
                poll_fn(|context| service.poll_ready(context)).await?;
                service.call(request(head(&delivery), &delivery)).await
            });
            let called = catch_panic_in(called);
            let ends = limit.and_then(|limit| began.checked_add(limit));
            let over = async {
                match ends {
                    Some(ends) => sleep_until(ends).await,
                    None => pending().await,
                }
            };
            let classified = tokio::select! {
                biased;
                mut handled = called => outcome_of(&mut handled),
                // A handler that uses up the task's budget of polls must not stop these two.
                _ = unconstrained(aborted) => Ok((Outcome::Failed(Failure::Drained), None)),
                () = unconstrained(over) => Ok((Outcome::Failed(Failure::RunLimit), None)),
            };
            let (outcome, reason) = classified.unwrap_or_else(|letter| {
                let reason = HandlerError::from(letter.reason());
                (Outcome::DeadLettered, Some(reason.into_reason()))
            });
            RunReport {
                outcome,
                reason,
                elapsed: began.elapsed(),
            }
        }
    }
}

/// Returns the head of a request that brings this delivery.
fn head(delivery: &Delivery) -> Parts {
    let (mut head, ()) = Request::new(()).into_parts();
    head.method = Method::POST;
    let json = HeaderValue::from_static("application/json");
    head.headers.insert(CONTENT_TYPE, json);
    let verified = delivery.verified();
    let values = [
        verified.timestamp().map(|timestamp| timestamp.as_str()),
        verified.subscription_id(),
        Some(delivery.event_id()),
        Some(delivery.event_type()),
    ];
    let known = verified.scheme().map(|scheme| scheme.headers_of(values));
    let trace = delivery.traceparent().map(|trace| (TRACEPARENT, trace));
    for (name, value) in known.into_iter().flatten().chain(trace) {
        // An id may be any text. If it cannot be the value of a header, the header is left out.
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            head.headers.insert(HeaderName::from_static(name), value);
        }
    }
    head
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.outcome.name())?;
        if let Outcome::Failed(Failure::Status(status)) = self.outcome {
            write!(f, " {status}")?;
        }
        match &self.reason {
            Some(reason) => write!(f, ": {}", Chain(reason)),
            None => Ok(()),
        }
    }
}

impl<A> fmt::Debug for Run<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("delivery", &self.delivery)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
