//! A receiver behind a server: the tower layer, the same in one call, shutdown and metrics (feature
//! `tower`).

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::time::{Instant, timeout};

use super::Receiver;
use crate::layer::{
    self, FromDelivery, IntoAnswer, LATE_STORE_CALL, ReceiverInner, Settled, WebhookLayer,
    commit_again, settle_once, under_lease,
};
use crate::outcome::{Outcome, Refusal, RefusalKind};
#[cfg(feature = "metrics")]
use crate::pipeline::Claims;
#[cfg(doc)]
use crate::pipeline::Delivery;
use crate::pipeline::{Admission, StoredDelivery};
use crate::run::{Run, RunReport};

impl Receiver {
    /// Returns a layer that guards a route, or any tower service. See the [module
    /// docs](crate::layer).
    ///
    /// All layers of one receiver share its store, permits and hooks.
    #[must_use]
    pub fn layer(&self) -> WebhookLayer {
        WebhookLayer {
            receiver: Arc::clone(&self.shared),
        }
    }

    /// Takes a delivery from its request to its answer. Calls `handler` if the delivery is
    /// authentic, fresh and not handled yet.
    ///
    /// It does the same as the layer, with the same guarantees, for a server without tower
    /// services. Turn the server's request into an [`http::Request`], and the returned response
    /// into the server's answer. The handler is a function of one argument, an
    /// [`Event<R>`](crate::Event) or a [`Delivery`], and answers with a
    /// [`StatusCode`](http::StatusCode) or more: see [`FromDelivery`] and [`IntoAnswer`].
    ///
    /// Pass all headers unchanged, repeated ones too, and the body as it arrives, not decoded. The
    /// head is refused before a byte of the body is read, and the limit and the deadline apply
    /// while the body is read. The body need not be [`Send`], and the future is `Send` if the body
    /// is. A body that is already complete also works.
    ///
    /// The handler runs on the tokio runtime that polls the future. If the server drops the future,
    /// for example because its client hangs up, a run that has begun continues. If a server stops
    /// such runtimes, as actix-web does with its workers, call [`drain`](Self::drain) first.
    ///
    /// The answer's extensions hold an [`Answer`](crate::layer::Answer).
    ///
    /// # Panics
    /// Panics without a tokio runtime that has its timers enabled, as tokio's timers do.
    ///
    /// # Security
    /// The method and the headers must be those of the request, and the body its raw bytes. A body
    /// that was decoded, re-encoded or cut does not verify. A repeated header that is passed on
    /// only once hides a forgery.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use hookgate::{Event, EventData, MemoryStore, Receiver, Secret};
    /// use http::{Request, StatusCode};
    /// use http_body_util::Full;
    /// # use hookgate::{
    /// #     clock::{Clock, SystemClock},
    /// #     verify::{Signature, Timestamp},
    /// # };
    ///
    /// async fn on_event(event: Event) -> StatusCode {
    ///     if let EventData::RowDeleted(row) = event.data {
    ///         assert_eq!(row.row_id, "row_1");
    ///     }
    ///     StatusCode::NO_CONTENT
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// # let secret = Secret::new("whsec_made_up_for_this_example")?;
    /// # let timestamp = Timestamp::at(SystemClock.now())?;
    /// # let body = r#"{"id":"evt_1","type":"row.deleted","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","deletedBy":{"id":"usr_1","name":"Bo"}}}"#;
    /// # let signature = Signature::sign(&secret, &timestamp, body.as_bytes()).to_header_value();
    /// let receiver = Receiver::builder().secret(secret).store(MemoryStore::default()).build()?;
    /// // For each request of the server:
    /// let request = Request::post("/webhooks")
    ///     .header("x-service-timestamp", timestamp.as_str())
    ///     .header("x-service-signature", &signature)
    ///     .body(Full::new(Bytes::from(body)))?;
    /// # let again = request.clone();
    /// let answer = receiver.handle(request, on_event).await;
    /// assert_eq!(answer.status(), 204);
    /// # assert_eq!(receiver.handle(again, on_event).await.headers()["idempotent-replayed"], "true");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn handle<B, D, H, F>(
        &self,
        request: Request<B>,
        handler: H,
    ) -> impl Future<Output = Response<Bytes>> + use<B, D, H, F>
    where
        B: Body,
        D: FromDelivery + 'static,
        H: FnOnce(D) -> F + Send + 'static,
        F: Future<Output: IntoAnswer> + Send + 'static,
    {
        layer::handle(Arc::clone(&self.shared), request, handler)
    }

    /// Takes a delivery from a queue to its end, for a consumer: [verifies](Self::verify_stored)
    /// it, claims it in the receiver's store, and [runs](crate::run::Run) the handler, within
    /// [`run_limit`](crate::ReceiverBuilder::run_limit) and under a lease that is renewed.
    ///
    /// With a store, an event that a message brings twice runs once, as behind the layer: a copy of
    /// a done event is `Replayed`, and one of a running event is to be delivered again. A dead
    /// letter is released, so that it can be run again from there. Receivers with
    /// `without_deduplication` run each message.
    ///
    /// The run is reported to [`on_settled`](crate::ReceiverBuilder::on_settled), `on_failed` and
    /// the metrics. [`drain`](Self::drain) waits for it. If the future is dropped, the handler is
    /// dropped with it, and the event stays claimed until the lease ends.
    ///
    /// ```
    /// use hookgate::{
    ///     Event, MemoryStore, Receiver, Secret, receiver::StoredDelivery, run::Acknowledgement,
    /// };
    ///
    /// async fn on_event(_: Event) {}
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let secret = Secret::new("whsec_made_up_for_this_example")?;
    /// let receiver = Receiver::builder().secret(secret).store(MemoryStore::default()).build()?;
    /// # struct Message { body: &'static str }
    /// # impl Message { fn attribute(&self, _: &str) -> Option<&str> { None } }
    /// # for message in [Message { body: "{}" }] {
    /// // For each message of the queue:
    /// let stored = StoredDelivery::from_attributes(message.body, |name| message.attribute(name));
    /// let ran = receiver.run_stored(&stored, on_event).await;
    /// match ran.acknowledgement() {
    ///     Acknowledgement::Done => {}  // acknowledge
    ///     Acknowledgement::Retry => {} // return it to the queue
    ///     Acknowledgement::DeadLetter => eprintln!("{ran}"), // to the dead letters, with this reason
    /// }
    /// # assert_eq!(ran.to_string(), "not_authentic: delivery refused: not authentic or not fresh: header x-service-signature is missing");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// Without a tokio runtime that has its timers enabled.
    ///
    /// # Security
    /// As for [`verify_stored`](Self::verify_stored). Without a store, whoever can write to the
    /// queue can make an old event run again.
    pub async fn run_stored<D, H, F>(&self, stored: &StoredDelivery, handler: H) -> RunReport
    where
        D: FromDelivery + 'static,
        H: FnOnce(D) -> F + Send + 'static,
        F: Future<Output: IntoAnswer> + Send + 'static,
    {
        let delivery = match self.verify_stored(stored).await {
            Ok(delivery) => delivery,
            Err(refusal) => return RunReport::refused(refusal),
        };
        let ReceiverInner {
            settings, backend, ..
        } = &*self.shared;
        let called = Instant::now();
        let claim = match self.admit(&delivery).await {
            Ok(Admission::Fresh(claim)) => claim,
            Ok(Admission::Replayed { same_body }) => {
                return RunReport::without_handler(Outcome::Replayed { same_body });
            }
            Ok(Admission::Running { retry_after }) => {
                let running = Refusal::new(RefusalKind::StillRunning);
                return RunReport::refused(running.retry_after_lease(retry_after));
            }
            Err(refusal) => return RunReport::refused(refusal),
        };
        let run = Run::new(&delivery).limit(settings.run_limit);
        let run = run
            .abort_on(settings.abort_runs.cancelled())
            .handler(handler);
        let (mut ran, lease_ends) = under_lease(run, backend.lease, called, || claim.renew()).await;
        // A dead letter is released: it can be run again from where the caller puts it.
        if ran.outcome == Outcome::DeadLettered {
            let _ = timeout(LATE_STORE_CALL, claim.release()).await;
        } else {
            let settled = settle_once(&self.shared, &claim, ran.outcome).await;
            let again = commit_again(&self.shared, &claim, lease_ends, ran.outcome, settled);
            ran.outcome = again.await;
        }
        self.shared.report_run(&Settled {
            outcome: ran.outcome,
            delivery,
            reason: ran.reason.clone(),
            elapsed: ran.elapsed,
            late: false,
        });
        ran
    }

    /// Refuses new deliveries with 503 and waits for the runs under way. Runs that still go on
    /// after `limit` are aborted and their claims released, so that a retry can claim the events at
    /// once. `Duration::MAX` waits without a limit.
    ///
    /// Returns the number of runs that were aborted; zero if all ended by themselves. An aborted
    /// run has one more second to release its claim; a claim that is not released by then ends with
    /// its lease.
    ///
    /// Call it at shutdown, when the server takes no more connections: runs that outlived their
    /// requests still go on then. It cannot be undone: a drained receiver stays shut.
    ///
    /// **Limit the server's own end.** `axum::serve` with a graceful shutdown returns when its last
    /// connection has ended, and a client that sends half a request never ends it. Every delivery
    /// is answered within the [time for the answer](crate::ReceiverBuilder::answer_within), so half
    /// a second more is enough for the server. The example has Ctrl-C as its signal; a container
    /// gets SIGTERM, as in `examples/receiver.rs`.
    ///
    /// ```no_run
    /// # async fn end(receiver: hookgate::Receiver, app: axum::Router, listener: tokio::net::TcpListener) -> std::io::Result<()> {
    /// use tokio::time::{Duration, sleep};
    ///
    /// let stop = async || drop(tokio::signal::ctrl_c().await);
    /// let server = axum::serve(listener, app).with_graceful_shutdown(stop());
    /// tokio::select! {
    ///     served = server.into_future() => served?,
    ///     () = async { stop().await; sleep(Duration::from_secs(5)).await } => {}
    /// }
    /// let aborted = receiver.drain(Duration::from_secs(10)).await;
    /// println!("{aborted} runs aborted");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn drain(&self, limit: Duration) -> usize {
        self.shared.drain(limit).await
    }

    /// Sets the gauges to the current values, and describes all metrics to the recorder the first
    /// time. Call it **before each rendering**, in the route that serves `/metrics`, or every few
    /// seconds where metrics are pushed.
    ///
    /// Counters and histograms are updated at each event, and gauges only by this call. So the
    /// gauges of an idle receiver are right too. A store in memory may do some housekeeping first.
    /// Other stores report no numbers, unless they implement
    /// [`DedupeStore::observe`](crate::DedupeStore::observe).
    ///
    /// Install the recorder first; without a recorder nothing happens.
    ///
    /// ```
    /// use hookgate::{MemoryStore, Receiver, Secret};
    ///
    /// let receiver = Receiver::builder()
    ///     .secret(Secret::new("whsec_made_up_for_this_example")?)
    ///     .store(MemoryStore::default())
    ///     .metrics_name("orders")
    ///     .build()?;
    /// receiver.record_metrics();
    /// assert!(receiver.health().is_ready()); // the gauge `hookgate_ready{receiver="orders"}` is 1
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "metrics")]
    pub fn record_metrics(&self) {
        let Claims {
            store, retention, ..
        } = &self.shared.backend;
        let retention = store.is_some().then_some(*retention);
        layer::record_gauges(&self.shared, retention, || store.as_ref()?.observe());
    }
}
