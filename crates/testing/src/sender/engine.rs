//! The delivery engine: each event has its own attempts and waits.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hookgate::clock::{Clock, SystemClock, UnixSeconds};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::faults::{NetworkFaults, Way};
use super::report::{Disposition, SenderReport, SentAttempt, SentEvent};
use super::settings::{RetryTimestamps, SenderBuilder};
use super::subscription::{Subscription, data_model};
use super::{SenderError, SenderErrorKind};
use crate::TokioClock;
use crate::factory::EventFactory;

/// The service's delivery engine. See the [module docs](super).
///
/// Dropping it ends all deliveries. It needs a tokio runtime with time.
#[must_use]
pub struct Sender {
    shared: Arc<Shared>,
    running: JoinSet<()>,
    test_events: EventFactory,
}

/// What all events share.
struct Shared {
    settings: SenderBuilder,
    clock: Arc<dyn Clock>,
    events: Mutex<Vec<SentEvent>>,
}

/// One event for one subscription: its attempts and waits.
struct EventAttempts {
    shared: Arc<Shared>,
    subscription: Subscription,
    /// The index of this event in the list of all.
    place: usize,
    id: String,
    event_type: String,
    body: Bytes,
    attempts: u32,
    emitted: Instant,
}

impl SenderBuilder {
    /// Builds the sender. No event is sent yet.
    pub fn build(mut self) -> Sender {
        let clock = self.clock.take();
        let clock = clock.unwrap_or_else(|| Arc::new(TokioClock::starting_at(SystemClock.now())));
        let test_events = EventFactory::seeded(clock.now().as_i64().unsigned_abs());
        Sender {
            test_events: test_events.with_clock(Arc::clone(&clock)),
            shared: Arc::new(Shared {
                settings: self,
                clock,
                events: Mutex::default(),
            }),
            running: JoinSet::new(),
        }
    }
}

impl Sender {
    /// Returns the service's settings, without a subscription yet.
    pub fn builder() -> SenderBuilder {
        SenderBuilder::new()
    }

    /// Sends an event to every subscription that takes it. Returns the number of these
    /// subscriptions.
    ///
    /// This method does not wait. The attempts are made while other futures are awaited, at the
    /// latest [`settle`](Self::settle).
    ///
    /// # Errors
    /// The body has no usable id and type at its head: the service sends no such events. The part
    /// behind the head is not checked.
    pub fn emit(&mut self, body: impl Into<Bytes>) -> Result<usize, hookgate::event::EventError> {
        let body = body.into();
        let delivery = crate::delivery(&body)?;
        let model = data_model(&body);
        let takes = |subscription: &&Subscription| {
            subscription.takes(delivery.event_type(), model.as_deref())
        };
        let settings = &self.shared.settings;
        let takers: Vec<_> = settings
            .subscriptions
            .iter()
            .filter(takes)
            .cloned()
            .collect();
        let attempts = settings.reading.attempts(&settings.schedule);
        for subscription in &takers {
            let (id, event_type) = (delivery.event_id(), delivery.event_type());
            self.begin(subscription, id, event_type, &body, attempts);
        }
        Ok(takers.len())
    }

    /// Sends this subscription a test event, like the button in the service's settings. The
    /// subscription's filters are not applied.
    ///
    /// The specification shows neither its payload nor whether it is retried. Here its type is
    /// `test`, its `data` is empty, and it has one attempt, because a user waits for the result.
    ///
    /// # Errors
    /// `UnknownSubscription`.
    pub fn send_test_event(&mut self, subscription: &str) -> Result<(), SenderError> {
        let of_id = |other: &&Subscription| other.id() == subscription;
        let found = self
            .shared
            .settings
            .subscriptions
            .iter()
            .find(of_id)
            .cloned();
        let found = found.ok_or_else(|| SenderError::new(SenderErrorKind::UnknownSubscription))?;
        let event = self.test_events.of_type("test");
        let id = format!("evt_test_{}", event.event_id().unwrap_or_default());
        let body = event.id(&id).body();
        self.begin(&found, &id, "test", &body, 1);
        Ok(())
    }

    /// Waits until every event is delivered or discarded, and reports the result of each.
    ///
    /// Dropping this future stops no attempt.
    ///
    /// # Panics
    /// Where a hook panicked, this panics with the same payload.
    pub async fn settle(&mut self) -> SenderReport {
        while let Some(ended) = self.running.join_next().await {
            pass_panic_on(ended);
        }
        self.report()
    }

    /// Reports the current result of every event.
    pub fn report(&self) -> SenderReport {
        SenderReport {
            seed: self
                .shared
                .settings
                .faults
                .as_ref()
                .map(NetworkFaults::seed),
            events: self.shared.events().clone(),
        }
    }

    fn begin(
        &mut self,
        subscription: &Subscription,
        id: &str,
        event_type: &str,
        body: &Bytes,
        attempts: u32,
    ) {
        let shared = Arc::clone(&self.shared);
        let mut events = shared.events();
        events.push(SentEvent {
            subscription: subscription.id().to_owned(),
            id: id.to_owned(),
            event_type: event_type.to_owned(),
            emitted_at: shared.clock.now(),
            disposition: Disposition::UnderWay,
            attempts: Vec::new(),
            next_wait: None,
        });
        let event = EventAttempts {
            shared: Arc::clone(&shared),
            subscription: subscription.clone(),
            place: events.len() - 1,
            id: id.to_owned(),
            event_type: event_type.to_owned(),
            body: body.clone(),
            attempts,
            emitted: Instant::now(),
        };
        drop(events);
        // Removes the finished tasks now: otherwise they would be kept until `settle`.
        while let Some(ended) = self.running.try_join_next() {
            pass_panic_on(ended);
        }
        self.running.spawn(event.run());
    }
}

impl Shared {
    fn events(&self) -> MutexGuard<'_, Vec<SentEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an attempt, and calls the hook.
    fn note(
        &self,
        place: usize,
        attempt: SentAttempt,
        disposition: Disposition,
        wait: Option<Duration>,
    ) {
        let told = {
            let event = &mut self.events()[place];
            event.attempts.push(attempt);
            event.disposition = disposition;
            event.next_wait = wait;
            self.settings.on_attempt.is_some().then(|| event.clone())
        };
        if let (Some(call), Some(event)) = (&self.settings.on_attempt, told) {
            call(&event);
        }
    }
}

impl EventAttempts {
    async fn run(self) {
        let settings = &self.shared.settings;
        let mut first_timestamp = None;
        for number in 1..=self.attempts {
            let wait = settings.reading.wait_after(&settings.schedule, number);
            let wait = wait.filter(|_| number < self.attempts);
            let wait = wait.map(|wait| wait / settings.speed);
            let ended = self.attempt(number, &mut first_timestamp, wait).await;
            let (Some(wait), Some(ended)) = (wait, ended) else {
                return;
            };
            sleep_until(ended + wait).await;
        }
    }

    /// Makes one attempt. Returns the time of its end where it failed, and `None` where it was
    /// delivered.
    async fn attempt(
        &self,
        number: u32,
        first_timestamp: &mut Option<UnixSeconds>,
        wait: Option<Duration>,
    ) -> Option<Instant> {
        let Shared {
            settings, clock, ..
        } = &*self.shared;
        // A semaphore that is never closed always gives a permit.
        let place = self.subscription.places.acquire().await.ok();
        let (started, at) = (Instant::now(), clock.now());
        let timestamp = match settings.timestamps {
            RetryTimestamps::Fresh => at,
            RetryTimestamps::First => *first_timestamp.get_or_insert(at),
        };
        let (id, event_type) = (&*self.id, &*self.event_type);
        let request = self
            .subscription
            .signed(timestamp, id, event_type, &self.body);
        let faults = settings.faults.as_ref();
        let way = faults.map_or(Way::Sound, |faults| {
            faults.draw(self.subscription.id(), &self.id, number)
        });
        let limit = settings.schedule.attempt_timeout();
        let began = Instant::now();
        let ended = self.subscription.attempt_by(request, way, limit).await;
        let over = began + ended.elapsed;
        drop(place);

        let disposition = match (ended.end.is_success(), wait) {
            (true, _) => Disposition::Delivered,
            (false, Some(_)) => Disposition::UnderWay,
            (false, None) => Disposition::Discarded,
        };
        let attempt = SentAttempt {
            number,
            at,
            since_emitted: started - self.emitted,
            timestamp,
            end: ended.end,
            elapsed: over - started,
            replayed: ended
                .answer
                .is_some_and(|answer| answer.headers().contains_key("idempotent-replayed")),
            fault: way.fault(),
            copy: ended.copy,
        };
        let wait = wait.filter(|_| disposition == Disposition::UnderWay);
        self.shared.note(self.place, attempt, disposition, wait);
        (disposition != Disposition::Delivered).then_some(over)
    }
}

fn pass_panic_on(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("settings", &self.shared.settings)
            .field("events", &self.shared.events().len())
            .finish_non_exhaustive()
    }
}
