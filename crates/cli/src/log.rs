//! `hookgate log`: looks into a delivery log.

mod list;
mod show;
mod source;

use std::process::ExitCode;

use crate::fault::Fault;
use crate::out::Out;
pub(crate) use show::camel_case;

/// Look into a delivery log: list, show, curl.
///
/// LOG is a file that a receiver has recorded, or `-` for standard input. Deliveries are named by
/// the number of their line or by their event's id. Bodies hold names and e-mail addresses: take
/// care who can read the output.
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
}

pub(crate) fn run(args: &LogArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    match &args.command {
        LogCommand::List(args) => list::run(args, out),
        LogCommand::Show(args) => show::show(args, out),
        LogCommand::Curl(args) => show::curl(args, out),
    }
}
