//! `hookgate inbox`: looks into a durable inbox, and repairs entries that are stuck in it.

mod choice;
mod dead_letter;
mod erase;
mod list;
mod place;
mod purge;
mod retry;
mod show;
mod stats;

use std::process::ExitCode;

use crate::fault::Fault;
use crate::out::Out;

/// Look into a durable inbox while it is in use, and repair stuck entries: list, show, retry, dead-letter, purge, erase, stats.
///
/// The inbox is a file of SQLite (`--db`), or a table of PostgreSQL, whose URL comes from the environment or a file and never
/// from an argument. Bodies hold names and e-mail addresses: take care who can read the output.
#[derive(clap::Args)]
pub(crate) struct InboxArgs {
    #[command(subcommand)]
    command: InboxCommand,
}

#[derive(clap::Subcommand)]
enum InboxCommand {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Retry(retry::RetryArgs),
    DeadLetter(dead_letter::DeadLetterArgs),
    Purge(purge::PurgeArgs),
    Erase(erase::EraseArgs),
    Stats(stats::StatsArgs),
}

pub(crate) fn run(args: &InboxArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    match &args.command {
        InboxCommand::List(args) => list::run(args, out),
        InboxCommand::Show(args) => show::run(args, out),
        InboxCommand::Retry(args) => retry::run(args, out),
        InboxCommand::DeadLetter(args) => dead_letter::run(args, out),
        InboxCommand::Purge(args) => purge::run(args, out),
        InboxCommand::Erase(args) => erase::run(args, out),
        InboxCommand::Stats(args) => stats::run(args, out),
    }
}
