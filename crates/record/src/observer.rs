//! Makes a log entry of each request to a receiver.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hookgate::{
    clock::{Clock, UnixSeconds},
    dedupe::Attempt,
    layer::{Answer, ObservedRequest, RequestObserver},
};
use http::request::Parts;

use crate::entry::{LoggedAnswer, LoggedDelivery};
use crate::redact::target_as_logged;
use crate::redaction::header_as_logged;

/// Returns an observer that gives each delivery to a function, in place of a file.
///
/// The function gets each delivery that was answered, before the answer is sent, and each delivery
/// whose sender has hung up. It runs on the thread that answers, so it must not block. A panic in
/// it is caught and changes nothing.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use hookgate::{Delivery, MemoryStore, Receiver, Secret};
/// use hookgate_record::{LoggedDelivery, record_with};
/// use http::{Request, StatusCode};
/// use http_body_util::Full;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// // Keeps the deliveries that were refused or failed, for a test to look at.
/// let refused = Arc::new(Mutex::new(Vec::new()));
/// let kept = Arc::clone(&refused);
/// let receiver = Receiver::builder()
///     .secret(Secret::new("whsec_made_up_for_this_example")?)
///     .store(MemoryStore::default())
///     .observer(record_with(move |delivery: LoggedDelivery| {
///         if delivery.answer.as_ref().is_some_and(|answer| answer.status >= 400) {
///             kept.lock().expect("no panic within").push(delivery);
///         }
///     }))
///     .build()?;
///
/// let request = Request::post("/webhooks").body(Full::<bytes::Bytes>::from("forged"))?;
/// receiver.handle(request, async |_: Delivery| StatusCode::NO_CONTENT).await;
///
/// let refused = refused.lock().expect("no panic within");
/// assert_eq!(refused[0].target, "/webhooks");
/// assert_eq!(refused[0].answer.as_ref().map(|answer| answer.status), Some(401));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Security
/// The function gets whole bodies, which hold names and e-mail addresses. It gets them from every
/// client that reaches the address, authentic or not.
pub fn record_with<F>(record: F) -> impl RequestObserver + use<F>
where
    F: Fn(LoggedDelivery) + Send + Sync + 'static,
{
    Each(Arc::new(record))
}

struct Each<F>(Arc<F>);

impl<F: Fn(LoggedDelivery) + Send + Sync + 'static> RequestObserver for Each<F> {
    fn begin(&self, head: &Parts, clock: &dyn Clock) -> Option<Box<dyn ObservedRequest>> {
        let record = Arc::clone(&self.0);
        let keep = move |delivery| record(delivery);
        Some(Box::new(Recording::begin(head, clock, keep)))
    }
}

/// The entry of one request, until it is complete and given to `keep`.
pub(crate) struct Recording<K> {
    entry: LoggedDelivery,
    keep: K,
}

impl<K: FnOnce(LoggedDelivery) + Send + 'static> Recording<K> {
    pub(crate) fn begin(head: &Parts, clock: &dyn Clock, keep: K) -> Self {
        let headers = head.headers.iter();
        let headers = headers.map(|(name, value)| header_as_logged(name, value));
        // The check of the age reads the clock again. If it runs, `age_checked` replaces this time
        // with the later one.
        let mut entry = LoggedDelivery::new::<String, _>(clock.now(), headers, "");
        entry.body = None;
        head.method.as_str().clone_into(&mut entry.method);
        if let Some(target) = head.uri.path_and_query() {
            entry.target = target_as_logged(target.as_str());
        }
        Self { entry, keep }
    }

    fn end(self, complete: impl FnOnce(&mut LoggedDelivery)) {
        let Self { mut entry, keep } = self;
        complete(&mut entry);
        keep(entry);
    }
}

impl<K: FnOnce(LoggedDelivery) + Send + 'static> ObservedRequest for Recording<K> {
    fn age_checked(&mut self, now: UnixSeconds) {
        self.entry.received_at = now;
    }

    fn body_read(&mut self, body: &Bytes) {
        self.entry.body = Some(body.clone());
    }

    fn body_broke_off(&mut self, bytes: usize) {
        self.entry.cut_off_at = Some(bytes as u64);
    }

    fn answered(self: Box<Self>, answer: &Answer, attempt: Option<Attempt>) {
        self.end(|entry| entry.answer = Some(logged(answer, attempt)));
    }

    fn hung_up(self: Box<Self>, after: Duration) {
        self.end(|entry| entry.hung_up_after = Some(after));
    }
}

fn logged(answer: &Answer, attempt: Option<Attempt>) -> LoggedAnswer {
    let verified = answer.authentic();
    let mut logged = LoggedAnswer::new(answer.status, answer.outcome.name());
    logged.reason = answer.reason_line();
    logged.elapsed = answer.elapsed;
    logged.key = verified.map(|verified| verified.key_name().to_owned());
    logged.scope = verified.map(|verified| verified.scope().to_owned());
    logged.attempt = attempt.map(|attempt| attempt.number);
    let claimed = answer.claimed_subscription();
    logged.claimed_subscription = claimed.map(|id| id.as_str().to_owned());
    logged
}
