//! One entry in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use hookgate::{
    dedupe::ClaimToken,
    event::{EventId, EventType},
};

use crate::engine::Listed;
use crate::entry::{Entry, EntryId, EntryState};
use crate::selection::Selection;

/// 35 years: an unlimited time is cut to this, so that additions cannot overflow.
const FAR: Duration = Duration::from_secs(35 * 365 * 24 * 3_600);

#[derive(Clone)]
pub(super) struct Row {
    pub(super) entry: Entry,
    pub(super) state: EntryState,
    pub(super) tries: u32,
    pub(super) retain: Duration,
    pub(super) accepted: Duration,
    pub(super) first_leased: Option<Duration>,
    /// When it is due, when its lease ends, or when its id is forgotten.
    pub(super) until: Duration,
    pub(super) token: Option<ClaimToken>,
    /// The token of the last settlement, so that the settlement can be repeated.
    pub(super) settled: Option<ClaimToken>,
    pub(super) error: Option<String>,
}

pub(super) fn forget(rows: &mut BTreeMap<EntryId, Row>, now: Duration) {
    rows.retain(|_, row| row.state != EntryState::Done || row.until > now);
}

impl Row {
    pub(super) fn is_due(&self, now: Duration) -> bool {
        matches!(self.state, EntryState::Queued | EntryState::Running) && self.until <= now
    }

    pub(super) fn is(&self, id: EntryId, which: &Selection, now: Duration) -> bool {
        let age = now.saturating_sub(self.accepted);
        which.id.is_none_or(|wanted| wanted == id)
            && which
                .event_id
                .as_ref()
                .is_none_or(|wanted| *wanted == self.entry.event_id)
            && which.state.is_none_or(|wanted| wanted == self.state)
            && which.older_than.is_none_or(|wanted| age >= wanted)
    }

    pub(super) fn listed(&self, id: EntryId) -> Listed {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap();
        Listed {
            id,
            event_id: EventId::parse(&self.entry.event_id).unwrap(),
            event_type: EventType::parse(&self.entry.event_type).unwrap(),
            scope: self.entry.scope.clone(),
            state: self.state,
            tries: self.tries,
            accepted_at: millis(self.accepted),
            until: (self.state != EntryState::Dead).then(|| millis(self.until)),
            last_error: self.error.clone(),
            body_bytes: self.entry.body.len() as u64,
        }
    }

    pub(super) fn erase(&mut self, now: Duration, keeps_row: bool) {
        self.state = EntryState::Done;
        self.until = after(self.accepted, self.retain).max(now);
        self.token = None;
        self.settled = None;
        self.error = None;
        self.entry.body = bytes::Bytes::new();
        self.entry.traceparent = None;
        self.entry.row = self.entry.row.filter(|_| keeps_row);
    }

    pub(super) fn dead_letter(&mut self, error: &str) {
        self.state = EntryState::Dead;
        self.token = None;
        self.settled = None;
        self.error = Some(bounded(error));
    }
}

pub(super) fn bounded(error: &str) -> String {
    let mut end = error.len().min(2_048);
    while !error.is_char_boundary(end) {
        end -= 1;
    }
    error[..end].to_owned()
}

pub(super) fn after(now: Duration, time: Duration) -> Duration {
    now + time.min(FAR)
}
