//! Entries, requests and settlements of the tests.

use super::*;
pub(super) fn entry(name: &str) -> Entry {
    let body = Bytes::from(format!("{{\"id\":\"{name}\",\"type\":\"row.created\"}}"));
    Entry {
        key: EventKey::new("contract", name),
        row: None,
        digest: body_digest(&body),
        event_id: name.to_owned(),
        event_type: "row.created".to_owned(),
        timestamp: "1700000000".to_owned(),
        received_at: UnixSeconds::new(1_700_000_001),
        scope: "contract".to_owned(),
        key_name: "key-1".to_owned(),
        subscription_id: None,
        pinned_workspace: None,
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
        body,
    }
}

/// Returns an entry for the event of this name, which names this row.
pub(super) fn entry_of(row: &str, name: &str) -> Entry {
    Entry {
        row: Some(EventKey::new("row", row)),
        ..entry(name)
    }
}

pub(super) fn request(most: usize) -> LeaseRequest {
    LeaseRequest {
        most,
        lease: LONG,
        max_tries: 1_000,
        run_within: None,
        serial_by_row: false,
        except: Vec::new(),
    }
}

pub(super) fn request_for(most: usize, lease: Duration) -> LeaseRequest {
    LeaseRequest {
        lease,
        ..request(most)
    }
}

pub(super) fn serial(most: usize) -> LeaseRequest {
    LeaseRequest {
        serial_by_row: true,
        ..request(most)
    }
}

pub(super) fn retry(after: Duration) -> End {
    End::Retry {
        after,
        error: "the database is away".to_owned(),
    }
}

pub(super) fn dead() -> End {
    End::Dead {
        error: "no such row".to_owned(),
    }
}

pub(super) fn by_hand() -> Change {
    let reason = "by hand".to_owned();
    Change::DeadLetter { reason }
}

pub(super) fn of(event: &str) -> Selection {
    Selection::all().event_id(event)
}

pub(super) fn by(id: EntryId) -> Selection {
    Selection::all().id(id)
}

pub(super) fn in_state(state: EntryState) -> Selection {
    Selection::all().state(state)
}

pub(super) fn events(jobs: &[Job]) -> Vec<&str> {
    jobs.iter().map(|job| job.entry.event_id.as_str()).collect()
}
