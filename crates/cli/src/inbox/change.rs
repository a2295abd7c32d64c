//! `hookgate inbox retry`, `dead-letter` and `purge`: change the entries that are chosen.

use std::process::ExitCode;

use hookgate_inbox::EntryState;
use serde_json::json;

use super::choice::{SelectionArgs, each, entries, state, word};
use super::place::InboxArg;
use crate::fault::{Class, Fault};
use crate::out::Out;

/// Make entries that wait, and dead letters, due now and with all their tries before them.
///
/// Those that run or are done are left alone. Repair the cause of the failure first.
///
/// Workers run no entry whose first run began longer ago than the handler's claims are kept (48 h
/// unless set): its effect may be there, and nothing would show it any more. It becomes a dead
/// letter again, unless --even-if-older-than-claims is given.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("which").required(true).multiple(true).args(["entry", "event_id", "older_than", "state", "all"])))]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    place: InboxArg,
    #[command(flatten)]
    choice: SelectionArgs,
    /// Entries that stand there: queued or dead
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Option<EntryState>,
    /// All that wait, and all dead letters
    #[arg(long)]
    all: bool,
    /// Run them however long ago their first run began. THE EFFECT MAY HAPPEN TWICE: look first
    /// whether it is there
    #[arg(long)]
    even_if_older_than_claims: bool,
}

pub(super) fn retry(args: &RetryArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    if let Some(state @ (EntryState::Running | EntryState::Done)) = args.state {
        let message = format!("entries that are {} are never tried again", word(state));
        return Err(Fault::new(Class::Usage, message)
            .advise("write queued or dead; a running entry is tried again by itself if it fails or its process dies"));
    }
    let selection = args.choice.selection(args.state);
    let retried = args
        .place
        .call(async |inbox| match args.even_if_older_than_claims {
            true => inbox.retry_even_if_older_than_claims(selection).await,
            false => inbox.retry(selection).await,
        })?;
    let text = format!("{} due now", entries(retried));
    out.say(&text, &json!({ "retried": retried }))?;
    out.flush()?;
    Ok(args.choice.changed(retried))
}

/// Make entries that wait dead letters: they are not tried again until `retry` makes them due.
///
/// Those that run, are done or dead are left alone.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("which").required(true).multiple(true).args(["entry", "event_id", "older_than"])))]
pub(crate) struct DeadLetterArgs {
    #[command(flatten)]
    place: InboxArg,
    #[command(flatten)]
    choice: SelectionArgs,
    /// Why: it is kept in the place of the last error
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub(super) fn dead_letter(args: &DeadLetterArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let selection = args.choice.selection(None);
    let call =
        async |inbox: &hookgate_inbox::Inbox| inbox.dead_letter(selection, &args.reason).await;
    let dead_lettered = args.place.call(call)?;
    let text = format!("{} dead-lettered", entries(dead_lettered));
    out.say(&text, &json!({ "deadLettered": dead_lettered }))?;
    out.flush()?;
    Ok(args.choice.changed(dead_lettered))
}

/// Delete dead letters, with their ids: where the sender delivers such an event again, it is
/// handled again. Without --yes, only count them.
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
    #[arg(long, value_name = "STATE", default_value = "dead", value_parser = state)]
    state: EntryState,
    /// All of that state
    #[arg(long)]
    all: bool,
    /// Delete them
    #[arg(long)]
    yes: bool,
}

pub(super) fn purge(args: &PurgeArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    if !matches!(args.state, EntryState::Dead | EntryState::Done) {
        let message = format!("entries that are {} are never deleted", word(args.state));
        return Err(Fault::new(Class::Usage, message).advise(
            "make queued entries dead letters first: hookgate inbox dead-letter, then purge; running entries end by themselves",
        ));
    }
    let selection = args.choice.selection(Some(args.state));
    let purged = args.place.call(async |inbox| {
        if args.yes {
            return inbox.purge(selection).await;
        }
        let mut found = 0;
        let count = async |_| {
            found += 1;
            Ok(())
        };
        each(inbox, selection, |error| error, count).await?;
        Ok(found)
    })?;
    let text = match args.yes {
        true => format!("{} deleted", entries(purged)),
        false => format!("nothing deleted yet, --yes deletes {}", entries(purged)),
    };
    out.say(&text, &json!({ "dryRun": !args.yes, "purged": purged }))?;
    out.flush()?;
    Ok(args.choice.changed(purged))
}
