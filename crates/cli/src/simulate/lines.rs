//! The output while events are delivered, and at the end.

use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;

use hookgate_testing::iso8601;
use hookgate_testing::sender::{Disposition, SenderReport, SentEvent};

use crate::durations;
use crate::fault::Fault;
use crate::out::Out;
use crate::printable::printable;

/// The place where reports go.
pub(super) struct Lines {
    pub(super) progress: UnboundedReceiver<SentEvent>,
    /// The number of attempts before an event is discarded.
    pub(super) attempts: u32,
}

impl Lines {
    pub(super) fn print(&self, event: &SentEvent, out: &mut Out) -> Result<(), Fault> {
        out.say(&text(event, self.attempts), &value(event))?;
        Ok(out.flush()?)
    }
}

/// The last attempt, as a line.
fn text(event: &SentEvent, attempts: u32) -> String {
    let Some(last) = event.attempts.last() else {
        return String::new();
    };
    let day = iso8601(last.at);
    let time = day.get(11..19).unwrap_or(&day);
    let (id, event_type) = (printable(&event.id), printable(&event.event_type));
    let end = last.end.to_string();
    let millis = last.elapsed.as_millis();
    let mut line = format!(
        "{time} {id} {event_type}: {} in {millis} ms",
        printable(&end)
    );
    if last.replayed {
        line += ", handled before";
    }
    if let Some(fault) = last.fault {
        line += &format!(" ({fault})");
    }
    let number = last.number;
    match (event.disposition, event.next_wait) {
        (Disposition::Delivered, _) if number == 1 => {}
        (Disposition::Delivered, _) => line += &format!(", delivered at attempt {number}"),
        (Disposition::Discarded, _) => line += &format!(", DISCARDED after attempt {number}"),
        (_, Some(wait)) => {
            let wait = durations::show(wait);
            line += &format!(", attempt {number} of {attempts}, again in {wait}");
        }
        (_, None) => {}
    }
    line
}

fn value(event: &SentEvent) -> serde_json::Value {
    let last = event.attempts.last();
    json!({
        "kind": "attempt",
        "eventId": event.id,
        "eventType": event.event_type,
        "subscription": event.subscription,
        "disposition": disposition(event.disposition),
        "attempt": last.map(|last| last.number),
        "at": last.map(|last| iso8601(last.at)),
        "timestamp": last.map(|last| last.timestamp.as_i64()),
        "status": last.and_then(|last| last.end.status()),
        "end": last.map(|last| last.end.to_string()),
        "elapsedMs": last.map(|last| last.elapsed.as_millis()),
        "replayed": last.map(|last| last.replayed),
        "fault": last.and_then(|last| last.fault).map(|fault| fault.to_string()),
        "nextWaitMs": event.next_wait.map(|wait| wait.as_millis()),
    })
}

fn disposition(disposition: Disposition) -> &'static str {
    match disposition {
        Disposition::Delivered => "delivered",
        Disposition::Discarded => "discarded",
        _ => "under_way",
    }
}

/// `made_up`: the events follow from the seed, and are of no file.
pub(super) fn summary(
    report: &SenderReport,
    seed: u64,
    made_up: bool,
    elapsed: Duration,
    out: &mut Out,
) -> Result<(), Fault> {
    let count = |events: &mut dyn Iterator<Item = &SentEvent>| events.count();
    let value = json!({
        "kind": "summary",
        "seed": seed,
        "events": report.events().len(),
        "delivered": count(&mut report.delivered()),
        "discarded": report.discarded().map(|event| &event.id).collect::<Vec<_>>(),
        "underWay": report.under_way().map(|event| &event.id).collect::<Vec<_>>(),
        "attempts": report.attempts(),
        "elapsedMs": elapsed.as_millis(),
    });
    let took = durations::show(Duration::from_secs(elapsed.as_secs()));
    let mut text = format!("\n{report}\n{took}");
    if made_up {
        text += &format!("; the same events again: --seed {seed}");
    }
    if report.under_way().next().is_some() {
        text += "\nwhat is under way stays undelivered: the retries ended with this program";
    }
    // The causes come from the system and the names from the sender. They are escaped line by line, so that the line breaks stay.
    let lines: Vec<_> = text
        .lines()
        .map(|line| printable(line).into_owned())
        .collect();
    out.say(&lines.join("\n"), &value)?;
    Ok(out.flush()?)
}
