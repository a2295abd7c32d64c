//! `hookgate inbox bury`: makes entries dead letters, so that no worker tries them again.

use std::process::ExitCode;

use super::choice::{Choice, entries};
use super::place::Place;
use crate::fault::Fault;
use crate::interrupt;
use crate::out::Out;

/// Make entries that wait dead letters: nobody tries them again, unless told to by retry.
///
/// Those that run, are done or dead are left alone.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("which").required(true).multiple(true).args(["entry", "event_id", "older_than"])))]
pub(crate) struct BuryArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    choice: Choice,
    /// Why: it is kept in the place of the last error
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub(crate) fn run(args: &BuryArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    interrupt::block_on(async {
        let inbox = args.place.open().await?;
        let buried = inbox.bury(args.choice.selection(), &args.reason).await;
        let buried = buried.map_err(|error| args.place.fault(&error))?;
        inbox.close().await;
        let text = format!("{} buried", entries(buried));
        out.say(&text, &serde_json::json!({ "buried": buried }))?;
        out.flush()?;
        Ok(args.choice.changed(buried))
    })
}
