//! `hookgate log`: looks into a delivery log.

mod changes;
mod list;
mod show;
mod source;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::fault::Fault;
use crate::out::Out;

/// Look into a delivery log: list, show, curl, diff, import.
///
/// LOG is a file that a receiver has recorded, or `-` for standard input. Deliveries are named by the number of their line or
/// by their event's id. Bodies hold names and e-mail addresses: take care who can read the output.
#[derive(clap::Args)]
pub(crate) struct LogArgs {
    #[command(subcommand)]
    command: LogCommand,
}

#[derive(clap::Subcommand)]
enum LogCommand {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Curl(show::CurlArgs),
    Diff(changes::DiffArgs),
    Import(ImportArgs),
}

/// Make a log of payloads as the service's list of recent deliveries shows them.
///
/// JSON or JSON Lines with event id, type, request time, response status, retry count and payload, or bare events. The result
/// has no signatures; `hookgate replay` can sign it again.
#[derive(clap::Args)]
struct ImportArgs {
    /// The file, or `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: &LogArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    match &args.command {
        LogCommand::List(args) => list::run(args, out),
        LogCommand::Show(args) => show::show(args, out),
        LogCommand::Curl(args) => show::curl(args, out),
        LogCommand::Diff(args) => changes::run(args, out),
        LogCommand::Import(args) => import(args, out),
    }
}

fn import(args: &ImportArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    for delivery in source::imported(&args.file)? {
        out.json_text(&delivery.to_line())?;
    }
    Ok(ExitCode::SUCCESS)
}
