//! The settings that need the layer: deadlines, which need timers, and hooks, which need an answer.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;

use super::builder::ReceiverBuilder;
use crate::layer::{Answer, BodyBudget, DeadLetter, Failed, RequestObserver, Settled};
use crate::outcome::Outcome;
use crate::pipeline::Delivery;

/// Settings of the layer (feature `tower`).
impl ReceiverBuilder {
    /// Calls `hook` once for each delivery, when its answer is known. A panic in it does no harm.
    pub fn on_answer(mut self, hook: impl Fn(&Answer) + Send + Sync + 'static) -> Self {
        self.layer.observers.on_answer = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` once for each run, at its end. It differs from [`on_answer`](Self::on_answer)
    /// for runs that outlive their request. A panic in it does no harm.
    pub fn on_settled(mut self, hook: impl Fn(&Settled) + Send + Sync + 'static) -> Self {
        self.layer.observers.on_settled = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` for each authentic delivery that was not handled, with its raw bytes, the
    /// reason and the probable number of the attempt. So the operator can see an attempt that may
    /// be the last before the sender discards the event. The hook is also called if the sender hung
    /// up while the store was asked for the claim. A panic in it does no harm.
    pub fn on_failed(mut self, hook: impl Fn(&Failed) + Send + Sync + 'static) -> Self {
        self.layer.observers.on_failed = Some(Arc::new(hook));
        self
    }

    /// Adds an observer, which is told each step of each request: its head, its body, its answer.
    /// Further calls add further observers, which are told in this order, after the hooks.
    /// [`RequestObserver`] has an example.
    ///
    /// An acceptor tells its observers as a receiver does. Code that calls the steps of a receiver
    /// itself tells none. An observer counts as one that shows the errors of a store, as a hook
    /// does: they are then not written to stderr.
    ///
    /// # Security
    /// An observer gets whole bodies and all headers, from every client that reaches the address,
    /// authentic or not. Bodies hold names and e-mail addresses.
    pub fn observer(mut self, observer: impl RequestObserver) -> Self {
        self.layer.observers.of_requests.push(Box::new(observer));
        self
    }

    /// Awaits `hook` with each delivery that the handler answered with [`DeadLetter`], and with
    /// that answer. If the hook succeeds, the delivery is answered 200 and committed; if it fails,
    /// 500 and released.
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

    /// Sets the time within which a request is answered, counted from the layer's `call`: look-up,
    /// body, claim, waiting and handler. Default: 4.5 s, because the sender gives up at 5 s, or
    /// nine tenths of the time that the [scheme](Self::scheme)'s sender waits, if that is less.
    /// More than 100 ms, and not longer than the sender waits.
    pub fn answer_within(mut self, limit: Duration) -> Self {
        self.answer_within = Some(limit);
        self
    }

    /// Sets the time within which a body must have arrived, counted from the layer's `call`, or
    /// from the end of the look-up if the subscription's keys had to be looked up. Default: 2 s. It
    /// is never longer than the rest of the time for the answer.
    pub fn body_deadline(mut self, deadline: Duration) -> Self {
        self.layer.body_deadline = deadline;
        self
    }

    /// Sets the most bytes that all bodies together hold while they arrive. Default: 64 MiB. It
    /// must not be less than [`max_body`](Self::max_body).
    ///
    /// A body whose next bytes would exceed the budget is answered 503 with `Retry-After`, and its
    /// buffer is freed. A body that arrives in one piece, as small bodies do, takes no part of the
    /// budget. A body that is complete and verified has given its part back, and so has one whose
    /// [deadline](Self::body_deadline) has ended. The budget counts the memory of the buffers, at
    /// most twice the bytes that have arrived or 1 KiB, and never an announced length. It does not
    /// limit the server's own buffers, such as the windows of HTTP/2.
    ///
    /// # Security
    /// Clients that hold bodies back can fill the budget. While they do, each delivery in pieces is
    /// answered 503; it passes again within one body deadline after they stop.
    pub fn body_budget(mut self, bytes: usize) -> Self {
        self.layer.bodies = BodyBudget::new(bytes);
        self
    }

    /// Sets the time after which a run is aborted and released. Default: 10 min. At most 30 days.
    pub fn run_limit(mut self, limit: Duration) -> Self {
        self.layer.run_limit = limit;
        self
    }

    /// Shapes the answers that the receiver makes itself. The function gets the outcome and the
    /// default response, which has the service's error envelope and all headers, and returns the
    /// response to send. If it panics, the default response is sent.
    ///
    /// ```
    /// use hookgate::Receiver;
    ///
    /// let settings = Receiver::builder().map_own_responses(|outcome, response| {
    ///     response.map(|json| outcome.error().map_or(json, |(code, _)| code.to_lowercase().into()))
    /// });
    /// # let _ = settings;
    /// ```
    pub fn map_own_responses(
        mut self,
        shape: impl Fn(Outcome, Response<Bytes>) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        self.layer.shape = Some(Arc::new(shape));
        self
    }
}

/// Settings of the metrics (feature `metrics`).
#[cfg(feature = "metrics")]
impl ReceiverBuilder {
    /// Sets the label `receiver` of this receiver's metrics. Default: `default`. Two receivers in
    /// one program need two names; otherwise the gauges of one overwrite those of the other.
    pub fn metrics_name(mut self, name: &str) -> Self {
        self.layer.observers.metrics.receiver = name.to_owned().into();
        self
    }
}
