//! `hookgate inbox dead-letter`: makes entries dead letters, so that no worker tries them again.

use std::process::ExitCode;

use super::choice::{SelectionArgs, entries};
use super::place::InboxArg;
use crate::fault::Fault;
use crate::interrupt;
use crate::out::Out;

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

pub(crate) fn run(args: &DeadLetterArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    interrupt::block_on(async {
        let inbox = args.place.open().await?;
        let dead_lettered = inbox
            .dead_letter(args.choice.selection(), &args.reason)
            .await;
        let dead_lettered = dead_lettered.map_err(|error| args.place.fault(&error))?;
        inbox.close().await;
        let text = format!("{} dead-lettered", entries(dead_lettered));
        out.say(&text, &serde_json::json!({ "deadLettered": dead_lettered }))?;
        out.flush()?;
        Ok(args.choice.changed(dead_lettered))
    })
}
