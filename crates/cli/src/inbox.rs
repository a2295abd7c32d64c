//! `hookgate inbox`: looks into a durable inbox, and repairs entries that are stuck in it.

mod change;
mod choice;
mod erase;
mod list;
mod place;
mod show;

use std::process::ExitCode;
use std::time::Duration;

use hookgate_inbox::InboxStats;

use crate::durations;
use crate::fault::Fault;
use crate::out::Out;
use place::InboxArg;

/// Look into a durable inbox while it is in use, and repair stuck entries: list, show, retry,
/// dead-letter, purge, erase, stats.
///
/// The inbox is a file of SQLite (`--db`), or a table of PostgreSQL, whose URL comes from the
/// environment or a file and never from an argument. Bodies hold names and e-mail addresses: take
/// care who can read the output.
#[derive(clap::Args)]
pub(crate) struct InboxArgs {
    #[command(subcommand)]
    command: InboxCommand,
}

#[derive(clap::Subcommand)]
enum InboxCommand {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Retry(change::RetryArgs),
    DeadLetter(change::DeadLetterArgs),
    Purge(change::PurgeArgs),
    Erase(erase::EraseArgs),
    Stats(StatsArgs),
}

pub(crate) fn run(args: &InboxArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    match &args.command {
        InboxCommand::List(args) => list::run(args, out),
        InboxCommand::Show(args) => show::run(args, out),
        InboxCommand::Retry(args) => change::retry(args, out),
        InboxCommand::DeadLetter(args) => change::dead_letter(args, out),
        InboxCommand::Purge(args) => change::purge(args, out),
        InboxCommand::Erase(args) => erase::run(args, out),
        InboxCommand::Stats(args) => stats(args, out),
    }
}

/// Show how many entries stand where, and how old the oldest is that waits or runs.
#[derive(clap::Args)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    place: InboxArg,
}

fn stats(args: &StatsArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let stats = args.place.call(async |inbox| inbox.stats().await)?;
    out.say(&text_of(&stats), &json(&stats))?;
    Ok(ExitCode::SUCCESS)
}

fn text_of(stats: &InboxStats) -> String {
    let oldest = stats.oldest.map_or_else(String::new, |oldest| {
        let whole = Duration::from_secs(oldest.as_secs());
        format!(", the oldest accepted {} ago", durations::show(whole))
    });
    format!(
        "{} queued ({} of them failed before), {} running, {} dead, {} done{oldest}",
        stats.queued, stats.retrying, stats.running, stats.dead, stats.done
    )
}

fn json(stats: &InboxStats) -> serde_json::Value {
    serde_json::json!({
        "queued": stats.queued,
        "retrying": stats.retrying,
        "running": stats.running,
        "dead": stats.dead,
        "done": stats.done,
        "oldestSeconds": stats.oldest.map(|oldest| oldest.as_secs()),
    })
}
