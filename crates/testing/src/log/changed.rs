//! The events that two logs answered differently.

use std::collections::BTreeMap;

use super::ext::LoggedDeliveryExt;
use super::file::DeliveryLog;

/// An event whose deliveries were answered differently in two logs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedEvent {
    /// The event's id.
    pub event_id: String,
    /// The answers to its deliveries, in their order: status and outcome.
    pub before: Vec<String>,
    /// The same in the other log.
    pub after: Vec<String>,
}

impl DeliveryLog {
    /// Returns the events that were answered differently in another log, by their ids: for example before and after a change
    /// of your code. An event that only one of the logs has is included. A delivery without an id is not compared.
    #[must_use]
    pub fn changed_events(&self, other: &Self) -> Vec<ChangedEvent> {
        let [mut before, mut after] = [self, other].map(answers_by_event);
        let mut ids: Vec<_> = before.keys().chain(after.keys()).cloned().collect();
        ids.sort();
        ids.dedup();
        let changed = ids.into_iter().filter_map(|event_id| {
            let before = before.remove(&event_id).unwrap_or_default();
            let after = after.remove(&event_id).unwrap_or_default();
            (before != after).then_some(ChangedEvent {
                event_id,
                before,
                after,
            })
        });
        changed.collect()
    }
}

fn answers_by_event(log: &DeliveryLog) -> BTreeMap<String, Vec<String>> {
    let mut events = BTreeMap::<_, Vec<_>>::new();
    for delivery in log {
        if let Some(id) = delivery.event_id() {
            let answer = match &delivery.answer {
                Some(answer) => format!("{} {}", answer.status, answer.outcome),
                None if delivery.hung_up_after.is_some() => "hung up".into(),
                None => "not answered".into(),
            };
            events.entry(id).or_default().push(answer);
        }
    }
    events
}
