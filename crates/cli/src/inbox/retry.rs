//! `hookgate inbox retry`: makes entries due now, with all tries again.

use std::process::ExitCode;

use hookgate_inbox::EntryState;

use super::choice::{SelectionArgs, State, entries};
use super::place::InboxArg;
use crate::fault::{Class, Fault};
use crate::interrupt;
use crate::out::Out;

/// Make entries that wait, and dead letters, due now and with all their tries before them.
///
/// Those that run or are done are left alone. Repair the cause of the failure first.
///
/// Workers run no entry whose first run began longer ago than the handler's claims are kept (48 h unless set): its effect may
/// be there, and nothing would show it any more. It becomes a dead letter again, unless --even-if-older-than-claims is given.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("which").required(true).multiple(true).args(["entry", "event_id", "older_than", "state", "all"])))]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    place: InboxArg,
    #[command(flatten)]
    choice: SelectionArgs,
    /// Entries that stand there: queued or dead
    #[arg(long, value_name = "STATE")]
    state: Option<State>,
    /// All that wait, and all dead letters
    #[arg(long)]
    all: bool,
    /// Run them however long ago their first run began. THE EFFECT MAY HAPPEN TWICE: look first whether it is there
    #[arg(long)]
    even_if_older_than_claims: bool,
}

pub(crate) fn run(args: &RetryArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    if let Some(state @ State(EntryState::Running | EntryState::Done)) = args.state {
        let message = format!("entries that are {state} are never tried again");
        return Err(Fault::new(Class::Usage, message)
            .advise("write queued or dead; a running entry is tried again by itself if it fails or its process dies"));
    }
    interrupt::block_on(async {
        let inbox = args.place.open().await?;
        let mut selection = args.choice.selection();
        if let Some(State(state)) = args.state {
            selection = selection.state(state);
        }
        let retried = if args.even_if_older_than_claims {
            inbox.retry_even_if_older_than_claims(selection).await
        } else {
            inbox.retry(selection).await
        };
        let retried = retried.map_err(|error| args.place.fault(&error))?;
        inbox.close().await;
        let text = format!("{} due now", entries(retried));
        out.say(&text, &serde_json::json!({ "retried": retried }))?;
        out.flush()?;
        Ok(args.choice.changed(retried))
    })
}
