//! `hookgate inbox purge`: deletes entries, and forgets their ids.

use std::process::ExitCode;

use hookgate::dedupe::StoreError;
use hookgate_inbox::{EntryState, Inbox, Page, Selection};

use super::choice::{SelectionArgs, State, entries};
use super::place::InboxArg;
use crate::fault::{Class, Fault};
use crate::interrupt;
use crate::out::Out;

/// Delete dead letters, with their ids: where the sender delivers such an event again, it is handled again. Without --yes, only
/// count them.
///
/// Entries that wait or run are never deleted.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("which").required(true).multiple(true).args(["entry", "event_id", "older_than", "all"])))]
pub(crate) struct PurgeArgs {
    #[command(flatten)]
    place: InboxArg,
    #[command(flatten)]
    choice: SelectionArgs,
    /// Entries that stand there: dead, or done, whose copies would run again
    #[arg(long, value_name = "STATE", default_value = "dead")]
    state: State,
    /// All of that state
    #[arg(long)]
    all: bool,
    /// Delete them
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(args: &PurgeArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    if !matches!(args.state.0, EntryState::Dead | EntryState::Done) {
        let message = format!("entries that are {} are never deleted", args.state);
        return Err(Fault::new(Class::Usage, message).advise(
            "make queued entries dead letters first: hookgate inbox dead-letter, then purge; running entries end by themselves",
        ));
    }
    interrupt::block_on(async {
        let inbox = args.place.open().await?;
        let selection = args.choice.selection().state(args.state.0);
        let purged = match args.yes {
            true => inbox.purge(selection).await,
            false => count(&inbox, selection).await,
        };
        let purged = purged.map_err(|error| args.place.fault(&error))?;
        inbox.close().await;
        let text = match args.yes {
            true => format!("{} deleted", entries(purged)),
            false => format!("nothing deleted yet, --yes deletes {}", entries(purged)),
        };
        let value = serde_json::json!({ "dryRun": !args.yes, "purged": purged });
        out.say(&text, &value)?;
        Ok(args.choice.changed(purged))
    })
}

async fn count(inbox: &Inbox, selection: Selection) -> Result<u64, StoreError> {
    const PAGE: usize = 1_000;
    let (mut found, mut page) = (0, Page::first(PAGE));
    loop {
        let listed = inbox.list(selection.clone(), page).await?;
        found += listed.len() as u64;
        match listed.last() {
            Some(last) if listed.len() == PAGE => page = Page::after(last.id, PAGE),
            _ => return Ok(found),
        }
    }
}
