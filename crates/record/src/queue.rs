//! The queue between the callers that record and the thread that writes. It is bounded, and callers
//! never wait for it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::append::RecordError;
use crate::entry::LoggedDelivery;

/// A number of entries and the memory that they take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Amount {
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
}

/// The entries that wait to be written, and the state of the recorder.
pub(crate) struct Queue {
    /// The maximum that may wait to be written.
    most: Amount,
    state: Mutex<QueueState>,
    /// Signals that the writer has work to do.
    filled: Condvar,
    /// Signals that a delivery was settled, or that the writer has ended.
    done: Condvar,
}

#[derive(Default)]
pub(crate) struct QueueState {
    waiting: VecDeque<LoggedDelivery>,
    /// The sum over the entries that wait and those that the writer holds.
    held: Amount,
    accepted: u64,
    pub(crate) written: u64,
    pub(crate) dropped: u64,
    /// The number of these that the log does not mention yet.
    missing: u64,
    /// The number of failed writes.
    pub(crate) failures: u64,
    /// The error of the last write, if it has failed.
    pub(crate) last_error: Option<Arc<RecordError>>,
    closing: bool,
    over: bool,
}

impl QueueState {
    /// The number of accepted entries that were written or dropped.
    fn settled(&self) -> u64 {
        self.accepted - self.held.entries as u64
    }
}

impl Queue {
    pub(crate) fn new(most: Amount) -> Self {
        Self {
            most,
            state: Mutex::default(),
            filled: Condvar::new(),
            done: Condvar::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a delivery to the queue, or counts it as dropped. The lock is never held while anything
    /// is written, formatted or freed.
    pub(crate) fn push(&self, delivery: LoggedDelivery) {
        let bytes = weight(&delivery);
        let mut state = self.lock();
        let held = Amount {
            entries: state.held.entries + 1,
            bytes: state.held.bytes.saturating_add(bytes),
        };
        if state.over || held.entries > self.most.entries || held.bytes > self.most.bytes {
            state.dropped += 1;
            state.missing += 1;
            // The writer has to note this in the log. It may be asleep, if the delivery was larger
            // than the whole queue.
            let first = state.missing == 1 && state.waiting.is_empty();
            drop(state);
            if first {
                self.filled.notify_one();
            }
            return;
        }
        state.held = held;
        state.accepted += 1;
        // The writer sleeps only while no entry waits.
        let was_empty = state.waiting.is_empty();
        state.waiting.push_back(delivery);
        drop(state);
        if was_empty {
            self.filled.notify_one();
        }
    }

    /// Waits for entries to write. Returns them, and the number of dropped deliveries, to be noted
    /// in the log after them. `None` when all is written and no more will come.
    pub(crate) fn take(&self) -> Option<(VecDeque<LoggedDelivery>, u64)> {
        let idle = |state: &mut QueueState| {
            state.waiting.is_empty() && state.missing == 0 && !state.closing
        };
        let state = self.filled.wait_while(self.lock(), idle);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let waiting = std::mem::take(&mut state.waiting);
        (!waiting.is_empty() || state.missing > 0).then_some((waiting, state.missing))
    }

    /// Counts a delivery as written or as dropped.
    pub(crate) fn settle(&self, bytes: usize, written: bool) {
        let mut state = self.lock();
        state.held.entries -= 1;
        state.held.bytes -= bytes;
        if written {
            state.written += 1;
        } else {
            state.dropped += 1;
            state.missing += 1;
        }
        drop(state);
        self.done.notify_all();
    }

    /// The log now mentions this number of dropped deliveries.
    pub(crate) fn note_reported(&self, dropped: u64) {
        self.lock().missing -= dropped;
    }

    /// Lets the writer wait before it tries again. Returns at once when the recorder is closing.
    /// The result says whether it is closing.
    pub(crate) fn pause(&self, pause: Duration) -> bool {
        let open = |state: &mut QueueState| !state.closing;
        let waited = self.filled.wait_timeout_while(self.lock(), pause, open);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.closing
    }

    /// Waits until all entries that were accepted so far are written or dropped. Returns whether
    /// they are.
    pub(crate) fn flush(&self, limit: Duration) -> bool {
        let state = self.lock();
        let accepted = state.accepted;
        let under_way = |state: &mut QueueState| state.settled() < accepted && !state.over;
        let waited = self.done.wait_timeout_while(state, limit, under_way);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.settled() >= accepted
    }

    /// Closes the queue: no more entries will come. Waits until the writer has ended.
    pub(crate) fn close(&self, limit: Duration) {
        let mut state = self.lock();
        state.closing = true;
        self.filled.notify_all();
        let _ = self
            .done
            .wait_timeout_while(state, limit, |state| !state.over);
    }

    /// The writer ends. Entries that still wait or come later are dropped.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.over = true;
        let left = std::mem::take(&mut state.waiting);
        state.dropped += left.len() as u64;
        drop(state);
        self.done.notify_all();
    }
}

/// The approximate memory that a delivery takes.
pub(crate) fn weight(delivery: &LoggedDelivery) -> usize {
    const ITSELF: usize = size_of::<LoggedDelivery>();
    const HEADER: usize = size_of::<(String, bytes::Bytes)>();
    let headers = delivery.headers.iter();
    let headers = headers.map(|(name, value)| HEADER + name.len() + value.len());
    // The sender controls the length of the method; the error controls the length of the answer's
    // reason.
    let answer = delivery.answer.as_ref().map_or(0, |answer| {
        let subscription = &answer.claimed_subscription;
        let others = [&answer.reason, &answer.key, &answer.scope, subscription];
        let others = others.into_iter().flatten().map(String::len);
        answer.outcome.len() + others.sum::<usize>()
    });
    let texts = delivery.method.len() + delivery.target.len() + answer;
    let body = delivery.body.as_ref().map_or(0, bytes::Bytes::len);
    ITSELF + texts + body + headers.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use hookgate::clock::UnixSeconds;

    use super::*;
    use crate::LoggedAnswer;

    #[test]
    fn whatever_a_sender_or_an_error_can_lengthen_is_weighed() {
        const LONG: usize = 100_000;
        let long = || "x".repeat(LONG);
        let delivery = LoggedDelivery::new(UnixSeconds::new(1), [("x-a", "1")], "{}");
        let least = weight(&delivery);
        let answered = |change: fn(&mut LoggedAnswer, String)| {
            let mut answer = LoggedAnswer::new(204, "handled");
            change(&mut answer, "x".repeat(LONG));
            Some(answer)
        };
        for longer in [
            LoggedDelivery {
                method: long(),
                ..delivery.clone()
            },
            LoggedDelivery {
                target: long(),
                ..delivery.clone()
            },
            LoggedDelivery {
                headers: vec![(long(), "".into())],
                ..delivery.clone()
            },
            LoggedDelivery {
                headers: vec![("x-a".into(), long().into())],
                ..delivery.clone()
            },
            LoggedDelivery {
                body: Some(long().into()),
                ..delivery.clone()
            },
            LoggedDelivery {
                answer: answered(|it, long| it.reason = Some(long)),
                ..delivery.clone()
            },
            LoggedDelivery {
                answer: answered(|it, long| it.key = Some(long)),
                ..delivery.clone()
            },
            LoggedDelivery {
                answer: answered(|it, long| it.claimed_subscription = Some(long)),
                ..delivery.clone()
            },
            LoggedDelivery {
                answer: answered(|it, long| it.scope = Some(long)),
                ..delivery.clone()
            },
        ] {
            assert!(weight(&longer) >= least - 10 + LONG, "{longer:?}");
        }
    }
}
