//! The settings that need the layer: deadlines, which need timers, and hooks, which need an answer.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;

use super::ReceiverBuilder;
use crate::layer::{
    Answer, BodyBudget, DeadLetter, Failed, RequestObserver, Settled, WaitingCopies,
};
use crate::outcome::Outcome;
use crate::pipeline::Delivery;

/// Settings of the layer (feature `tower`).
impl ReceiverBuilder {
    /// Calls `hook` once for each delivery, when its answer is known. A panic in it does no harm.
    pub fn on_answer(mut self, hook: impl Fn(&Answer) + Send + Sync + 'static) -> Self {
        self.layer.observers.on_answer = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` once for each run, at its end. It differs from [`on_answer`](Self::on_answer) for runs that outlive their
    /// request. A panic in it does no harm.
    pub fn on_settled(mut self, hook: impl Fn(&Settled) + Send + Sync + 'static) -> Self {
        self.layer.observers.on_settled = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` for each authentic delivery that was not handled, with its raw bytes, the reason and the probable number of
    /// the attempt. So the operator can see an attempt that may be the last before the sender discards the event. The hook is
    /// also called if the sender hung up while the store was asked for the claim. A panic in it does no harm.
    pub fn on_failed(mut self, hook: impl Fn(&Failed) + Send + Sync + 'static) -> Self {
        self.layer.observers.on_failed = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` with the first delivery that each key has signed since the receiver was built: in a rotation of a secret, the first
    /// one under the new secret. Keys are told apart by their names and scopes, so give each key a name of its own. Replacing a ring
    /// does not begin anew. Of more than 16,384 keys the others are not told. A panic in it does no harm.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use hookgate::{KeyRing, MemoryStore, Receiver, Secret};
    /// # use hookgate::{
    /// #     Delivery,
    /// #     clock::{Clock, SystemClock},
    /// #     verify::{Signature, Timestamp},
    /// # };
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let old = Secret::new("whsec_made_up_old_secret")?;
    /// let new = Secret::new("whsec_made_up_new_secret")?;
    /// let used = Arc::new(Mutex::new(Vec::new()));
    /// let names = Arc::clone(&used);
    /// let receiver = Receiver::builder()
    ///     .secrets(KeyRing::named("2026-05", old.clone())?)
    ///     .store(MemoryStore::default())
    ///     .on_key_first_used(move |delivery| {
    ///         names.lock().expect("no panic within").push(delivery.verified().key_name().to_owned());
    ///     })
    ///     .build()?;
    /// # let deliver = async |secret: &Secret, body: &'static str| {
    /// #     let now = Timestamp::at(SystemClock.now()).unwrap();
    /// #     let signature = Signature::sign(secret, &now, body.as_bytes()).to_header_value();
    /// #     let request = http::Request::post("/").header("x-service-timestamp", now.as_str());
    /// #     let request = request.header("x-service-signature", signature);
    /// #     let body = http_body_util::Full::new(bytes::Bytes::from(body));
    /// #     receiver.handle(request.body(body).unwrap(), async |_: Delivery| ()).await.status()
    /// # };
    /// assert_eq!(deliver(&old, r#"{"id":"evt_1","type":"page.created"}"#).await, 200);
    /// receiver.keys().replace(KeyRing::named("2026-11", new.clone())?.with_key("2026-05", old.clone())?)?;
    /// assert_eq!(deliver(&old, r#"{"id":"evt_2","type":"page.created"}"#).await, 200);
    /// assert_eq!(*used.lock().expect("no panic within"), ["2026-05"]);
    /// assert_eq!(deliver(&new, r#"{"id":"evt_3","type":"page.created"}"#).await, 200);
    /// assert_eq!(deliver(&new, r#"{"id":"evt_4","type":"page.created"}"#).await, 200);
    /// assert_eq!(*used.lock().expect("no panic within"), ["2026-05", "2026-11"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_key_first_used(mut self, hook: impl Fn(&Delivery) + Send + Sync + 'static) -> Self {
        self.layer.observers.on_key_first_used = Some(Arc::new(hook));
        self
    }

    /// Adds an observer, which is told each step of each request: its head, its body, its answer. Further calls add further observers,
    /// which are told in this order, after the hooks. [`RequestObserver`] has an example.
    ///
    /// An acceptor tells its observers as a receiver does. Code that calls the steps of a receiver itself tells none. An observer counts
    /// as one that shows the errors of a store, as a hook does: they are then not written to stderr.
    ///
    /// # Security
    /// An observer gets whole bodies and all headers, from every client that reaches the address, authentic or not. Bodies hold names and
    /// e-mail addresses.
    pub fn observer(mut self, observer: impl RequestObserver) -> Self {
        self.layer.observers.of_requests.push(Box::new(observer));
        self
    }

    /// Awaits `hook` with each delivery that the handler answered with [`DeadLetter`], and with that answer. If the hook succeeds, the delivery is
    /// answered 200 and committed; if it fails, 500 and released.
    pub fn on_dead_letter<F>(
        mut self,
        hook: impl Fn(Delivery, DeadLetter) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        self.layer.dead_letter = Some(Arc::new(move |delivery, letter| {
            Box::pin(hook(delivery, letter))
        }));
        self
    }

    /// Sets the time within which a request is answered, counted from the layer's `call`: look-up, body, claim, waiting and
    /// handler. Default: 4.5 s, because the sender gives up at 5 s. More than 100 ms, and not longer than the sender waits.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.layer.answer_within = budget;
        self
    }

    /// Sets the time within which a body must have arrived, counted from the layer's `call`, or from the end of the look-up if
    /// the subscription's keys had to be looked up. Default: 2 s. It is never longer than the rest of the budget.
    pub fn body_deadline(mut self, deadline: Duration) -> Self {
        self.layer.body_deadline = deadline;
        self
    }

    /// Sets the most bytes that all bodies together hold while they arrive. Default: 64 MiB. It must
    /// not be less than [`max_body`](Self::max_body).
    ///
    /// A body whose next bytes would exceed the budget is answered 503 with `Retry-After`, and its buffer is freed. A body that
    /// arrives in one piece, as small bodies do, takes no part of the budget. A body that is complete and verified has given its
    /// part back, and so has one whose [deadline](Self::body_deadline) has ended. The budget counts the memory of the
    /// buffers, at most twice the bytes that have arrived or 1 KiB, and never an announced length. It does not limit the server's
    /// own buffers, such as the windows of HTTP/2.
    ///
    /// # Security
    /// Clients that hold bodies back can fill the budget. While they do, each delivery in pieces is answered 503; it passes again
    /// within one body deadline after they stop.
    pub fn body_budget(mut self, bytes: usize) -> Self {
        self.layer.bodies = BodyBudget::new(bytes);
        self
    }

    /// Sets the time after which a run is aborted and released. Default: 10 min. At most 30 days.
    pub fn run_limit(mut self, limit: Duration) -> Self {
        self.layer.run_limit = limit;
        self
    }

    /// Shapes the answers that the receiver makes itself. The function gets the outcome and the default response, which has the
    /// service's error envelope and all headers, and returns the response to send. If it panics, the default response is sent.
    ///
    /// ```
    /// use hookgate::Receiver;
    ///
    /// let settings = Receiver::builder().with_answers(|outcome, response| {
    ///     response.map(|json| outcome.error().map_or(json, |(code, _)| code.to_lowercase().into()))
    /// });
    /// # let _ = settings;
    /// ```
    pub fn with_answers(
        mut self,
        shape: impl Fn(Outcome, Response<Bytes>) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        self.layer.shape = Some(Arc::new(shape));
        self
    }

    /// Sets the most copies that wait for a running copy, in all and for one event. Further copies are answered 503. Default:
    /// 64 and 4. With 0, a copy never waits.
    pub fn max_waiting(mut self, in_all: usize, for_one_event: usize) -> Self {
        self.layer.waiting = Arc::new(WaitingCopies::new(in_all, for_one_event));
        self
    }
}

/// Settings of the log lines (feature `tracing`).
#[cfg(feature = "tracing")]
#[cfg_attr(docsrs, doc(cfg(feature = "tracing")))]
impl ReceiverBuilder {
    /// Logs each handled delivery once at INFO: `delivery answered`, or `run ended late` if the answer came before the end.
    /// Without this setting, these lines are at DEBUG. For an acceptor the same holds for each accepted delivery. Duplicates stay
    /// at DEBUG. [The page about tracing](crate::guide::tracing) lists all lines.
    pub fn log_handled_at_info(mut self) -> Self {
        self.layer.observers.tracing.handled_at_info = true;
        self
    }
}

/// Settings of the metrics (feature `metrics`).
#[cfg(feature = "metrics")]
impl ReceiverBuilder {
    /// Sets the label `receiver` of this receiver's metrics. Default: `default`. Two receivers in one program need two names;
    /// otherwise the gauges of one overwrite those of the other.
    pub fn metrics_name(mut self, name: &str) -> Self {
        self.layer.observers.metrics.receiver = name.to_owned().into();
        self
    }

    /// Sets the number of pairs of scope and key name that get their own labels, in the order of their first authentic
    /// delivery. Pairs beyond that number are counted together, as `other`. Default: 64. With 0, no pair has its own label.
    ///
    /// Scopes and key names are the operator's, so no sender can add one. But there may be many, for example if secrets come
    /// from a database, or if keys are named by the day. A pair keeps its label until the process ends.
    pub fn metrics_keys(mut self, most: usize) -> Self {
        self.layer.observers.metrics.keys = crate::observe::metrics::NamedKeys::up_to(most);
        self
    }
}

impl ReceiverBuilder {
    /// Calls the hooks `on_answer`, `on_settled`, `on_failed` and `on_key_first_used` only while `holds` returns true. Use it in a
    /// test that ends a process: then no hook of that process is called.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use hookgate::Receiver;
    ///
    /// let ended = Arc::new(AtomicBool::new(false));
    /// let settings = Receiver::builder().on_answer(|answer| println!("{answer}"));
    /// let settings = settings.hooks_while({
    ///     let ended = Arc::clone(&ended);
    ///     move || !ended.load(Ordering::SeqCst)
    /// });
    /// # let _ = settings;
    /// ```
    pub fn hooks_while(mut self, holds: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.layer.observers.hooks_while = Some(Arc::new(holds));
        self
    }
}
