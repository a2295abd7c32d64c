//! Attempts: each begins at its time, goes its way with its fault, and its end decides about the
//! next one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hookgate::clock::UnixSeconds;
use hookgate::dedupe::RetrySchedule;
use hookgate_testing::sender::{AttemptEnd, Attempted, NetworkFault, Reading, Subscription};
use http::{HeaderValue, Request, header};

use super::engine::Inner;
use super::manage::as_millis;
use super::record::{Answer, Attempt, DeliveryState, KEPT, Number, Sent};
use super::route::Reset;
use super::state::State;
use super::subscription::made;
use crate::body::headers;
use crate::faults::Fault;
use crate::switches::Switch;
use crate::time::Moment;

/// The service's schedule of retries.
pub(super) const SCHEDULE: RetrySchedule = RetrySchedule::SERVICE;
/// The longest time that the fault `reordered` holds a delivery.
const HELD: Duration = Duration::from_secs(10);
/// What takes less than this counts as nothing in the schedule.
const PROMPT: Duration = Duration::from_secs(1);
/// What the fault `wrong-secret` signs with.
pub(super) const WRONG_SECRET: &str = "whsec_made_up_of_another_subscription";

impl Inner {
    fn reading(&self) -> Reading {
        if self.parts.switches.is(Switch::Attempts, "6") {
            Reading::EveryWait
        } else {
            Reading::FewestAttempts
        }
    }

    /// Begins every attempt whose time has come.
    pub(super) fn begin(self: &Arc<Self>, state: &mut State) {
        if state.stopped {
            return;
        }
        let one_by_one = self.parts.switches.is(Switch::DeliveryOrder, "oneByOne");
        loop {
            let now = self.parts.clock.moment();
            let started = state.begin(now, one_by_one);
            if started.is_empty() {
                break;
            }
            for (due, number) in started {
                // An attempt that begins a moment late counts as started in time, so that the
                // specification's sums of waits hold.
                let late = now.saturating_sub(due);
                let at = if late < PROMPT { due } else { now };
                self.begin_one(state, number, at);
            }
        }
        // Tasks at their end are removed now.
        while state.tasks.try_join_next().is_some() {}
    }

    fn begin_one(self: &Arc<Self>, state: &mut State, number: Number, at: Moment) {
        let clock = &self.parts.clock;
        let Some(delivery) = state.deliveries.get_mut(&number) else {
            return;
        };
        let attempt = u32::try_from(delivery.attempts.len() + 1).unwrap_or(u32::MAX);
        let held_before = std::mem::take(&mut delivery.reordered);
        let drawn = || {
            let faults = &self.parts.faults;
            faults.delivery(&delivery.subscription, &delivery.event_id, attempt)
        };
        let fault = (!held_before).then(drawn).flatten();
        let subscription = delivery.subscription.clone();
        if fault == Some(Fault::Reordered) {
            delivery.reordered = true;
            if let Some(lane) = state.lane(&subscription) {
                lane.flying -= 1;
                lane.held.insert(number);
            }
            state.wait_until(number, at + HELD);
            return;
        }
        delivery.due = None;
        let fresh = || (clock.signing_time().as_i64(), as_millis(clock.offset()));
        let (first, offset) = *delivery.first_signed.get_or_insert_with(fresh);
        let timestamp = if self.parts.switches.is(Switch::RetrySignatures, "first") {
            clock.aged(UnixSeconds::new(first), Duration::from_millis(offset))
        } else {
            clock.signing_time()
        };
        let (event_id, event_type) = (delivery.event_id.clone(), delivery.event_type.clone());
        let body = delivery.body.clone();
        self.tell(Some(delivery));
        let Some(lane) = state.lane(&subscription) else {
            return;
        };
        let wrong = || made(&lane.settings, WRONG_SECRET, &self.route).ok();
        let wrong = (fault == Some(Fault::WrongSecret)).then(wrong).flatten();
        let flight = Flight {
            sender: wrong.unwrap_or_else(|| lane.sender.clone()),
            epoch: state.epoch,
            number,
            at,
            event_id,
            event_type,
            body,
            timestamp,
            fault,
        };
        state.started += 1;
        state.flying.insert((at, number));
        let attempt = Arc::clone(self).attempt(flight);
        state.tasks.spawn_on(attempt, &self.runtime);
    }

    /// Makes an attempt, records its end, and plans the next one.
    async fn attempt(self: Arc<Self>, flight: Flight) {
        let clock = &self.parts.clock;
        let base = clock.base_moment();
        let received_at = clock.signing_time().as_i64();
        let request = flight.request();
        let changed = *request.body() != flight.body;
        let sent = Sent {
            url: request.uri().to_string(),
            headers: headers(request.headers(), KEPT, |_| false),
            body: changed.then(|| request.body().to_vec()),
            received_at,
        };
        let flown = flight.fly(request, SCHEDULE.attempt_timeout()).await;
        // Measured by the emulator's own clock: a clock that a test moves by hand stands still
        // meanwhile.
        let took = clock.base_moment().saturating_sub(base);
        let took = match flown.end {
            AttemptEnd::TimedOut => took.max(SCHEDULE.attempt_timeout()),
            _ if took < PROMPT => Duration::ZERO,
            _ => took,
        };

        let mut state = self.state();
        if state.epoch != flight.epoch {
            return;
        }
        state.flying.remove(&(flight.at, flight.number));
        if let Some(lane) = state.lane(flight.sender.id()) {
            lane.flying = lane.flying.saturating_sub(1);
        }
        let Some(delivery) = state.deliveries.get_mut(&flight.number) else {
            return;
        };
        let weight = delivery.weight();
        let is_answered = flown.answer.is_some();
        delivery.attempts.push(Attempt {
            at: clock.millis_at(flight.at),
            status: flown.end.status(),
            error: (!is_answered).then(|| flown.end.to_string()),
            duration_ms: as_millis(flown.elapsed),
            fault: flight.fault.map(|fault| fault.name().to_owned()),
            request: sent,
            answer: flown.answer.as_ref().map(Answer::of),
        });
        let grown = delivery.weight().saturating_sub(weight);
        let number = u32::try_from(delivery.attempts.len()).unwrap_or(u32::MAX);
        let wait = self.reading().wait_after(&SCHEDULE, number);
        let wait = wait.filter(|_| !delivery.once && delivery.state == DeliveryState::Pending);
        match wait {
            _ if flown.end.is_success() => state.end(flight.number, DeliveryState::Delivered),
            Some(wait) => state.wait_until(flight.number, flight.at + took + wait),
            None => state.end(flight.number, DeliveryState::Discarded),
        }
        self.tell(state.deliveries.get(&flight.number));
        state.grown(grown);
        state.release(flight.sender.id(), flight.number, clock.moment());
        self.begin(&mut state);
        drop(state);
        self.tell_changed();
    }
}

/// How far `stale` and `ahead` are off: twice the time that receivers accept.
const OFF: i64 = 600;

/// An attempt that is about to begin.
pub(super) struct Flight {
    /// Signs with another secret where that is the fault.
    pub(super) sender: Subscription,
    pub(super) epoch: u64,
    pub(super) number: Number,
    pub(super) at: Moment,
    pub(super) event_id: String,
    pub(super) event_type: String,
    pub(super) body: Bytes,
    pub(super) timestamp: UnixSeconds,
    pub(super) fault: Option<Fault>,
}

impl Flight {
    /// Makes the request as it is sent.
    pub(super) fn request(&self) -> Request<Bytes> {
        let off = match self.fault {
            Some(Fault::Stale) => -OFF,
            Some(Fault::Ahead) => OFF,
            _ => 0,
        };
        let at = UnixSeconds::new(self.timestamp.as_i64().saturating_add(off));
        let mut request = self
            .sender
            .signed(at, &self.event_id, &self.event_type, &self.body);
        match self.fault {
            Some(Fault::AlteredByte) => {
                let mut body = request.body().to_vec();
                let middle = body.len() / 2;
                if let Some(byte) = body.get_mut(middle) {
                    *byte ^= 1;
                }
                *request.body_mut() = body.into();
            }
            Some(Fault::Gzip) => {
                let body = gzip(request.body());
                *request.body_mut() = body.into();
                let encoding = HeaderValue::from_static("gzip");
                request
                    .headers_mut()
                    .insert(header::CONTENT_ENCODING, encoding);
            }
            Some(Fault::Reset) => {
                request.extensions_mut().insert(Reset);
            }
            _ => {}
        }
        request
    }

    pub(super) async fn fly(&self, request: Request<Bytes>, timeout: Duration) -> Attempted {
        let fault = match self.fault {
            Some(Fault::Duplicated) => Some(NetworkFault::Duplicated),
            Some(Fault::LostAnswer) => Some(NetworkFault::AnswerLost),
            Some(Fault::Slow) => Some(NetworkFault::Slow),
            _ => None,
        };
        self.sender.attempt(request, fault, timeout).await
    }
}

/// The longest stored block of deflate.
const BLOCK: usize = 0xffff;

/// Wraps bytes as gzip (RFC 1952) in stored blocks (RFC 1951, 3.2.4), without compression. Enough
/// for a receiver that must not decompress.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let blocks = bytes.len().div_ceil(BLOCK).max(1);
    for number in 0..blocks {
        let start = number * BLOCK;
        let block = &bytes[start..bytes.len().min(start + BLOCK)];
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.push(u8::from(number + 1 == blocks));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    out.extend(crc32(bytes).to_le_bytes());
    let length = u32::try_from(bytes.len() & 0xffff_ffff).unwrap_or_default();
    out.extend(length.to_le_bytes());
    out
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Read by Python: `gzip.decompress(bytes.fromhex(…))` is `b'{"id":"evt_1"}'`.
    #[test]
    fn the_stream_is_gzip() {
        let stream = gzip(br#"{"id":"evt_1"}"#);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(&stream[..3], [0x1f, 0x8b, 8]);
        assert_eq!(stream.len(), 10 + 5 + 14 + 8);
        assert_eq!(&stream[10..15], [1, 14, 0, 0xf1, 0xff]);
        assert_eq!(&stream[stream.len() - 4..], [14, 0, 0, 0]);
        let long = gzip(&vec![7; BLOCK + 1]);
        assert_eq!(long.len(), 10 + 5 + BLOCK + 5 + 1 + 8);
        assert_eq!((long[10], long[15 + BLOCK]), (0, 1));
        assert_eq!(gzip(b"").len(), 10 + 5 + 8);
    }
}
