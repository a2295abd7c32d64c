//! The choice of entries, and the fields that are shown of each.

use std::process::ExitCode;
use std::time::Duration;

use hookgate::clock::UnixSeconds;
use hookgate::dedupe::StoreError;
use hookgate_inbox::{EntryId, EntryState, Inbox, Listed, Page, Selection};
use hookgate_testing::iso8601;
use serde::Serialize;

use crate::durations;
use crate::fault::{answer, note};

/// Several options have to fit all.
#[derive(clap::Args)]
#[group(id = "choice", multiple = true)]
pub(crate) struct SelectionArgs {
    /// The entry with this number
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    entry: Option<EntryId>,
    /// Entries of the event with this id
    #[arg(long, value_name = "ID")]
    event_id: Option<String>,
    /// Entries that were accepted so long ago or longer: 30s, 2h, 7d
    #[arg(long, value_name = "DURATION", value_parser = durations::parse)]
    older_than: Option<Duration>,
}

impl SelectionArgs {
    pub(super) fn selection(&self, state: Option<EntryState>) -> Selection {
        let mut selection = Selection::all();
        if let Some(state) = state {
            selection = selection.state(state);
        }
        if let Some(entry) = self.entry {
            selection = selection.id(entry);
        }
        if let Some(event_id) = &self.event_id {
            selection = selection.event_id(event_id);
        }
        if let Some(age) = self.older_than {
            selection = selection.older_than(age);
        }
        selection
    }

    /// The answer of a command that has changed `count` entries, with the reason why it may be
    /// none.
    pub(super) fn changed(&self, count: u64) -> ExitCode {
        let is_no = count == 0 && self.names_one();
        if is_no {
            note(
                "there is no such entry, or its state does not allow this: hookgate inbox list shows its state",
            );
        }
        answer(!is_no)
    }

    /// Whether the arguments name one entry or event. If so, a count of zero is a "no": it does not
    /// exist, or the command can't change it.
    fn names_one(&self) -> bool {
        self.entry.is_some() || self.event_id.is_some()
    }
}

/// An entry's number, and not the id of its event.
pub(super) fn number(text: &str) -> Result<EntryId, &'static str> {
    text.parse()
        .map_err(|_| "a number is expected, as hookgate inbox list shows it: list --event-id ID finds that of an event")
}

/// The word of a state.
pub(super) fn word(state: EntryState) -> &'static str {
    match state {
        EntryState::Queued => "queued",
        EntryState::Running => "running",
        EntryState::Done => "done",
        EntryState::Dead => "dead",
    }
}

/// The state of a word.
pub(super) fn state(text: &str) -> Result<EntryState, &'static str> {
    use EntryState::{Dead, Done, Queued, Running};
    let mut states = [Queued, Running, Done, Dead].into_iter();
    let found = states.find(|state| word(*state) == text);
    found.ok_or("write queued, running, done or dead")
}

/// Gives each entry of a selection to `take`, page by page.
pub(super) async fn each<E>(
    inbox: &Inbox,
    selection: Selection,
    unreadable: impl Fn(StoreError) -> E,
    mut take: impl AsyncFnMut(Listed) -> Result<(), E>,
) -> Result<(), E> {
    const PAGE: usize = 1_000;
    let mut page = Page::first(PAGE);
    loop {
        let listed = inbox.list(selection.clone(), page).await;
        let listed = listed.map_err(&unreadable)?;
        let last = listed.last().map(|last| last.id);
        let is_full = listed.len() == PAGE;
        for one in listed {
            take(one).await?;
        }
        match last {
            Some(last) if is_full => page = Page::after(last, PAGE),
            _ => return Ok(()),
        }
    }
}

/// An entry without its body.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EntrySummary {
    pub(super) entry: String,
    pub(super) state: String,
    pub(super) accepted_at: String,
    pub(super) age_seconds: u64,
    pub(super) tries: u32,
    pub(super) event_type: String,
    pub(super) event_id: String,
    scope: String,
    /// When it is due, its lease ends, or its id is forgotten.
    pub(super) until: Option<String>,
    pub(super) last_error: Option<String>,
    body_bytes: u64,
}

impl EntrySummary {
    pub(super) fn of(listed: &Listed, now: UnixSeconds) -> Self {
        let accepted_at = seconds(listed.accepted_at);
        Self {
            entry: listed.id.to_string(),
            state: word(listed.state).to_owned(),
            accepted_at: iso8601(accepted_at),
            age_seconds: now.since(accepted_at).unwrap_or_default().as_secs(),
            tries: listed.tries,
            event_type: listed.event_type.as_str().to_owned(),
            event_id: listed.event_id.as_str().to_owned(),
            scope: listed.scope.clone(),
            until: listed.until.map(|until| iso8601(seconds(until))),
            last_error: listed.last_error.clone(),
            body_bytes: listed.body_bytes,
        }
    }
}

fn seconds(millis: u64) -> UnixSeconds {
    UnixSeconds::new(i64::try_from(millis / 1_000).unwrap_or(i64::MAX))
}

/// The number of entries, as text.
pub(super) fn entries(count: u64) -> String {
    match count {
        1 => "1 entry".into(),
        _ => format!("{count} entries"),
    }
}
