//! Deliveries as lines, one a delivery, and the queue to them: it never waits, and counts the
//! reports that did not fit.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hookgate_record::LoggedDelivery;
use hookgate_testing::iso8601;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::filter::Filter;
use super::item::Item;
use crate::log::camel_case;
use crate::out::Out;
use crate::printable::claimed_subscription;

/// The deliveries to print.
pub(crate) struct Lines {
    pub(crate) out: Out,
    pub(crate) filter: Filter,
    pub(crate) deliveries: Receiver<LoggedDelivery>,
    pub(crate) dropped: Arc<AtomicU64>,
}

impl Lines {
    /// Prints until no more lines come, or until the reader has closed the pipe.
    pub(crate) fn print(self) -> io::Result<()> {
        let Self {
            mut out,
            filter,
            mut deliveries,
            dropped,
        } = self;
        let (mut number, mut reported) = (0, 0);
        while let Some(delivery) = deliveries.blocking_recv() {
            number += 1;
            let item = Item::new(number, delivery);
            if filter.takes(&item) {
                if out.is_json() {
                    out.json_line(&value(&item))?;
                } else {
                    out.line(&text(&item, &out))?;
                }
            }
            let now = dropped.load(Ordering::Relaxed);
            if now > reported {
                let text = format!(
                    "{} deliveries not shown: they came faster than the output is read",
                    now - reported
                );
                out.say(&text, &json!({ "notShown": now - reported }))?;
                reported = now;
            }
            out.flush()?;
        }
        Ok(())
    }
}

/// `2026-11-21T09:30:00Z 204 handled  row.created  evt_1  0.4 ms`, and the reason where there is
/// one, with what the forwarded server answered. On a terminal the outcome has the colour of its
/// verdict.
fn text(item: &Item, out: &Out) -> String {
    let or_dash = |text: &'_ str| {
        if text.is_empty() {
            "-".to_owned()
        } else {
            text.to_owned()
        }
    };
    let status = if item.status == 0 {
        "---".to_owned()
    } else {
        item.status.to_string()
    };
    let claimed = Some(&*item.claimed).filter(|id| !id.is_empty());
    let claimed = claimed.map(claimed_subscription).unwrap_or_default();
    let outcome = format!("{:<18}", item.outcome);
    // What the server said of a failure is its reason.
    let answered = item.answered();
    let answered = answered.map(|text| format!(": {text}")).unwrap_or_default();
    let line = format!(
        "{} {status} {} {:<14} {:<20} {:>7.1} ms  {}{answered}{claimed}",
        iso8601(item.delivery.received_at),
        out.painted(&outcome, item.verdict.style()),
        or_dash(&item.event_type),
        or_dash(&item.event_id),
        item.elapsed_ms,
        item.short_reason(),
    );
    line.trim_end().to_owned()
}

/// The same, with what a delivery log has: `jq -c .delivery` extracts a line that a log may have.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'i> {
    received_at: String,
    status: Option<u16>,
    outcome: &'i str,
    event_type: Option<&'i str>,
    event_id: Option<&'i str>,
    elapsed_ms: f64,
    reason: Option<&'i str>,
    /// Unproven: any client can send any id.
    claimed_subscription: Option<&'i str>,
    authentic: bool,
    delivery: Value,
}

fn value(item: &Item) -> Line<'_> {
    let answer = item.delivery.answer.as_ref();
    let some = |text: &'_ str| !text.is_empty();
    Line {
        received_at: iso8601(item.delivery.received_at),
        status: answer.map(|answer| answer.status),
        outcome: &item.outcome,
        event_type: Some(&*item.event_type).filter(|text| some(text)),
        event_id: Some(&*item.event_id).filter(|text| some(text)),
        elapsed_ms: item.elapsed_ms,
        reason: Some(&*item.reason).filter(|text| some(text)),
        claimed_subscription: Some(&*item.claimed).filter(|text| some(text)),
        authentic: item.authentic,
        delivery: camel_case(json!(item.delivery)),
    }
}

/// The number of reports that may wait to be shown.
const MAX_WAITING: usize = 1_024;

#[derive(Clone, Debug)]
pub(crate) struct DisplayQueue {
    sender: Sender<LoggedDelivery>,
    dropped: Arc<AtomicU64>,
}

impl DisplayQueue {
    /// Returns also the number of deliveries that were answered without being shown.
    pub(crate) fn new() -> (Self, Receiver<LoggedDelivery>, Arc<AtomicU64>) {
        let (sender, receiver) = channel(MAX_WAITING);
        let dropped = Arc::new(AtomicU64::new(0));
        let queue = Self {
            sender,
            dropped: Arc::clone(&dropped),
        };
        (queue, receiver, dropped)
    }

    /// Called on the thread that answers, so it does not wait for a screen or a pipe.
    pub(crate) fn push(&self, delivery: LoggedDelivery) {
        if self.sender.try_send(delivery).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::item::tests::handled;
    use super::*;

    #[test]
    fn a_full_queue_drops_and_counts_without_waiting() {
        let (queue, mut receiver, dropped) = DisplayQueue::new();
        (0..MAX_WAITING + 3).for_each(|_| queue.push(handled("evt_1")));
        assert_eq!(dropped.load(Ordering::Relaxed), 3);
        assert!(receiver.try_recv().is_ok());
        queue.push(handled("evt_1"));
        assert_eq!(dropped.load(Ordering::Relaxed), 3);
    }
}
