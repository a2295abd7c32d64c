//! `hookgate inbox list`: a line for each entry.

use std::process::ExitCode;
use std::time::Duration;

use hookgate::clock::{Clock, SystemClock};
use hookgate_inbox::{EntryId, EntryState, Page};

use super::choice::{EntrySummary, SelectionArgs, number, state};
use super::place::InboxArg;
use crate::durations;
use crate::fault::{Fault, note};
use crate::out::Out;
use crate::printable::table_row;

/// List entries, the longest accepted first: number, state, age, tries, type, id and last error.
#[derive(clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    place: InboxArg,
    #[command(flatten)]
    choice: SelectionArgs,
    /// Only entries that stand there: queued, running, done or dead
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Option<EntryState>,
    /// Only entries behind this one: the last that the list before has shown
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    after: Option<EntryId>,
    /// No more entries than this
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    limit: u16,
}

pub(crate) fn run(args: &ListArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let most = usize::from(args.limit);
    let page = match args.after {
        Some(last) => Page::after(last, most),
        None => Page::first(most),
    };
    let selection = args.choice.selection(args.state);
    let listed = args
        .place
        .call(async |inbox| inbox.list(selection, page).await)?;
    if !out.is_json() {
        out.line(&row(&HEAD))?;
    }
    let now = SystemClock.now();
    for entry in &listed {
        let shown = EntrySummary::of(entry, now);
        out.say(&text(&shown), &shown)?;
    }
    if let Some(last) = listed.last().filter(|_| listed.len() == most) {
        out.flush()?;
        note(&format!("there may be more: --after {}", last.id));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) const HEAD: [&str; 7] = ["ENTRY", "STATE", "AGE", "TRIES", "TYPE", "ID", "LAST ERROR"];

pub(super) fn text(shown: &EntrySummary) -> String {
    row(&[
        &shown.entry,
        &shown.state,
        &durations::show(Duration::from_secs(shown.age_seconds)),
        &shown.tries.to_string(),
        &shown.event_type,
        &shown.event_id,
        shown.last_error.as_deref().unwrap_or_default(),
    ])
}

pub(super) fn row(cells: &[&str; 7]) -> String {
    const WIDTHS: [usize; 7] = [6, 7, 17, 5, 14, 16, 0];
    table_row(cells, WIDTHS)
}
