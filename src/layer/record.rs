//! Gives each delivery to a recorder, if the feature `record` is on and a recorder is set.

#[cfg(feature = "record")]
pub(crate) use on::{PendingEntry, Recording};

#[cfg(not(feature = "record"))]
pub(crate) use off::{PendingEntry, Recording};

#[cfg(feature = "record")]
mod on {
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

    use http::request::Parts;
    use tokio::time::Instant;

    use crate::clock::{Clock, UnixSeconds};
    use crate::dedupe::Attempt;
    use crate::layer::catch::caught;
    use crate::layer::hooks::Answer;
    use crate::outcome::Refusal;
    use crate::readable::Chain;
    use crate::record::{LoggedAnswer, LoggedDelivery, Record, header_as_logged, target_as_logged};
    use crate::verify::{Intake, Verified};
    use crate::walk::Delivery;

    /// The recorder that was set.
    #[derive(Default)]
    pub(crate) struct Recording(pub(crate) Option<Arc<dyn Record>>);

    /// The data of one request so far. Without a recorder it is empty and costs nothing.
    pub(crate) struct PendingEntry(Option<Box<Running>>);

    struct Running {
        recorder: Arc<dyn Record>,
        started: Instant,
        delivery: Mutex<Option<LoggedDelivery>>,
    }

    impl PendingEntry {
        pub(crate) fn begin(recording: &Recording, started: Instant) -> Self {
            let recorder = recording.0.as_ref();
            Self(recorder.map(|recorder| {
                Box::new(Running {
                    recorder: Arc::clone(recorder),
                    started,
                    delivery: Mutex::new(None),
                })
            }))
        }

        pub(crate) fn head(&self, clock: &dyn Clock, parts: &Parts) {
            let Some(running) = &self.0 else { return };
            let headers = parts.headers.iter();
            let headers = headers.map(|(name, value)| header_as_logged(name, value));
            // If the age is checked, it is checked by another reading of the clock, which then replaces this one.
            let now = clock.now();
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

        pub(crate) fn answered(
            &self,
            answer: &Answer,
            attempt: impl FnOnce(&Verified) -> Option<Attempt>,
        ) {
            let Some(running) = &self.0 else { return };
            running.tell(|delivery| delivery.answer = Some(LoggedAnswer::of(answer, attempt)));
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
        fn of(answer: &Answer, attempt: impl FnOnce(&Verified) -> Option<Attempt>) -> Self {
            let reason = answer.reason.as_ref();
            let refusal = || reason?.downcast_ref::<Refusal>()?.authentic();
            let verified = answer.delivery.as_ref().map(Delivery::verified);
            let verified = verified.or_else(refusal);
            let attempt = verified.and_then(attempt);
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
}

#[cfg(not(feature = "record"))]
mod off {
    use http::request::Parts;
    use tokio::time::Instant;

    use crate::clock::{Clock, UnixSeconds};
    use crate::dedupe::Attempt;
    use crate::layer::hooks::Answer;
    use crate::verify::{Intake, Verified};

    #[derive(Default)]
    pub(crate) struct Recording {}

    pub(crate) struct PendingEntry;

    #[allow(clippy::unused_self)] // takes the place of the type that records
    impl PendingEntry {
        pub(crate) fn begin(_: &Recording, _: Instant) -> Self {
            Self
        }

        pub(crate) fn head(&self, _: &dyn Clock, _: &Parts) {}

        pub(crate) fn passed_on(&self) {}

        pub(crate) fn judged_at(&self, _: UnixSeconds) {}

        pub(crate) fn broke_off(&self, _: &Intake) {}

        pub(crate) fn whole(&self, _: &mut Intake) {}

        pub(crate) fn answered(&self, _: &Answer, _: impl FnOnce(&Verified) -> Option<Attempt>) {}
    }
}
