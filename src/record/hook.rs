//! Gives each delivery that was answered to the recorder that is set.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::request::Parts;
use tokio::time::Instant;

use super::Record;
use super::entry::{LoggedAnswer, LoggedDelivery};
use super::redact::{header_as_logged, target_as_logged};
use crate::caught::caught;
use crate::clock::UnixSeconds;
use crate::delivery::Delivery;
use crate::layer::{Answer, Chain};
use crate::outcome::Refusal;
use crate::receiver::{Receiver, ReceiverBuilder};
use crate::verify::Intake;

/// The recorder that was set.
#[derive(Default)]
pub(crate) struct Recording(Option<Arc<dyn Record>>);

/// Settings of the delivery log (feature `record`).
impl ReceiverBuilder {
    /// Gives `recorder` every delivery that the layer or [`Receiver::handle`] has answered, and every delivery whose sender
    /// hung up first. A recorder is a [`Record`]: a closure, or a type that writes a file. The last call wins.
    ///
    /// [`record`](crate::record) describes the contents of an entry. A panic in the recorder does no harm.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use hookgate::record::LoggedDelivery;
    /// use hookgate::{Clock, Delivery, MemoryStore, Receiver, Secret, Signature, SystemClock, Timestamp};
    /// use http::{Request, StatusCode};
    /// use http_body_util::Full;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let (logged, log) = mpsc::channel();
    /// let secret = Secret::new("whsec_made_up_for_this_example")?;
    /// let receiver = Receiver::builder()
    ///     .secret(secret.clone())
    ///     .store(MemoryStore::default())
    ///     .record(move |delivery: LoggedDelivery| { let _ = logged.send(delivery); })
    ///     .build()?;
    ///
    /// let body = r#"{"id":"evt_1","type":"page.created"}"#;
    /// let now = Timestamp::at(SystemClock.now())?;
    /// let signature = Signature::sign(&secret, &now, body.as_bytes()).to_header_value();
    /// let request = Request::post("/webhooks")
    ///     .header("x-service-timestamp", now.as_str())
    ///     .header("x-service-signature", signature)
    ///     .body(Full::<bytes::Bytes>::from(body))?;
    /// receiver.handle(request, async |_: Delivery| StatusCode::NO_CONTENT).await;
    /// let delivery = log.recv()?;
    /// assert_eq!(delivery.body.as_deref(), Some(body.as_bytes()));
    /// let answer = delivery.answer.expect("nobody hung up");
    /// assert_eq!((answer.status, &*answer.outcome), (204, "handled"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Security
    /// A recorder gets whole bodies, which hold names and e-mail addresses. It gets them from every client that reaches the
    /// address, authentic or not.
    #[cfg_attr(docsrs, doc(cfg(feature = "record")))]
    pub fn record(mut self, recorder: impl Record) -> Self {
        self.layer.recording = Recording(Some(Arc::new(recorder)));
        self
    }
}

/// The data of one request so far. Without a recorder it is empty and costs nothing.
pub(crate) struct Tape(Option<Box<Running>>);

struct Running {
    recorder: Arc<dyn Record>,
    started: Instant,
    delivery: Mutex<Option<LoggedDelivery>>,
}

impl Tape {
    pub(crate) fn begin(receiver: &Receiver, started: Instant) -> Self {
        let recorder = receiver.shared.layer.recording.0.as_ref();
        Self(recorder.map(|recorder| {
            Box::new(Running {
                recorder: Arc::clone(recorder),
                started,
                delivery: Mutex::new(None),
            })
        }))
    }

    pub(crate) fn head(&self, receiver: &Receiver, parts: &Parts) {
        let Some(running) = &self.0 else { return };
        let headers = parts.headers.iter();
        let headers = headers.map(|(name, value)| header_as_logged(name, value));
        // If the age is checked, it is checked by another reading of the clock, which then replaces this one.
        let now = receiver.shared.clock.now();
        let mut delivery = LoggedDelivery::new::<String, _>(now, headers, "");
        delivery.body = None;
        parts.method.as_str().clone_into(&mut delivery.method);
        if let Some(target) = parts.uri.path_and_query() {
            delivery.target = target_as_logged(target.as_str());
        }
        *running.lock() = Some(delivery);
    }

    /// This layer does not record the request; the outer layer does.
    pub(crate) fn passed_on(&self) {
        drop(self.0.as_ref().and_then(|running| running.lock().take()));
    }

    pub(crate) fn judged_at(&self, now: UnixSeconds) {
        self.note(|delivery| delivery.received_at = now);
    }

    /// The body was not read to its end.
    pub(crate) fn broke_off(&self, intake: &Intake) {
        self.note(|delivery| delivery.cut_off_at = Some(intake.taken() as u64));
    }

    /// The body was read to its end. It is recorded before the signature is compared, because a body that does not verify
    /// is the one that an operator will look at.
    pub(crate) fn whole(&self, intake: &mut Intake) {
        self.note(|delivery| delivery.body = Some(intake.bytes()));
    }

    pub(crate) fn answered(&self, receiver: &Receiver, answer: &Answer) {
        let Some(running) = &self.0 else { return };
        running.tell(|delivery| delivery.answer = Some(LoggedAnswer::of(receiver, answer)));
    }

    fn note(&self, note: impl FnOnce(&mut LoggedDelivery)) {
        if let Some(running) = &self.0
            && let Some(delivery) = running.lock().as_mut()
        {
            note(delivery);
        }
    }
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, Option<LoggedDelivery>> {
        self.delivery.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the delivery to the recorder, once.
    fn tell(&self, complete: impl FnOnce(&mut LoggedDelivery)) {
        let Some(mut delivery) = self.lock().take() else {
            return;
        };
        // A panic in a recorder does no harm.
        let _ = caught(|| {
            complete(&mut delivery);
            self.recorder.record(delivery);
        });
    }
}

/// No answer was sent: the sender hung up, or the server was stopped.
impl Drop for Running {
    fn drop(&mut self) {
        self.tell(|delivery| delivery.hung_up_after = Some(self.started.elapsed()));
    }
}

impl LoggedAnswer {
    fn of(receiver: &Receiver, answer: &Answer) -> Self {
        let reason = answer.reason.as_ref();
        let refusal = || reason?.downcast_ref::<Refusal>()?.authentic();
        let verified = answer.delivery.as_ref().map(Delivery::verified);
        let verified = verified.or_else(refusal);
        let attempt = verified.and_then(|verified| receiver.attempt(verified));
        let mut logged = Self::new(answer.status, answer.outcome.name());
        // If the reason panics while it is written, only the reason is lost.
        logged.reason = reason.and_then(|reason| caught(|| Chain(reason).to_string()).ok());
        logged.elapsed = answer.elapsed;
        logged.key = verified.map(|verified| verified.key_name().to_owned());
        logged.scope = verified.map(|verified| verified.scope().to_owned());
        logged.attempt = attempt.map(|attempt| attempt.number);
        logged
    }
}
