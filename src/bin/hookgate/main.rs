//! `hookgate`: a workbench for the webhooks of the Workspace Data Service.
//!
//! One file a command; what they know is in the library.
#![allow(missing_docs)] // a program has no API
#![allow(dead_code)] // until every command is there

mod duration;
mod fault;
mod harmless;
mod http_client;
mod listen;
mod out;
mod secrets;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use fault::Fault;
use out::Out;

/// Receives, signs, replays and explains the webhooks of the Workspace Data Service.
#[derive(Parser)]
#[command(name = "hookgate", version, arg_required_else_help = true)]
#[command(after_help = fault::EXIT_CODES)]
struct Cli {
    /// Print JSON in place of text: one value, or one a line where a command prints as it goes.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Receive deliveries on this machine and show them: interactive in a terminal, lines when piped.
    Listen(listen::Listen),
    /// Print the completions for a shell.
    Completions { shell: clap_complete::Shell },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = Out::new(cli.json);
    let ended = run(cli.command, &mut out).and_then(|code| {
        out.flush()?;
        Ok(code)
    });
    match ended {
        Ok(code) => code,
        Err(fault) => fault.report(cli.json),
    }
}

fn run(command: Command, out: &mut Out) -> Result<ExitCode, Fault> {
    match command {
        Command::Listen(args) => listen::run(args, out),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "hookgate", &mut script);
            out.bytes(&script)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
