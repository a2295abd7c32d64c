//! `hookgate`: a workbench for the webhooks of the Workspace Data Service.
//!
//! One file a command; what they know is in the library.
#![allow(missing_docs)] // a program has no API

mod delivery_input;
mod doctor;
mod durations;
mod event_types;
mod explain;
mod fault;
mod harmless;
mod http_client;
mod interrupt;
mod listen;
mod log;
mod out;
mod panics;
mod replay;
mod request_text;
mod secrets;
mod send;
mod sign;
mod simulate;
#[cfg(test)]
mod tests;
mod verify;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use fault::{Class, Fault};
use out::Out;

/// Receives, signs, replays and explains the webhooks of the Workspace Data Service.
#[derive(Parser)]
#[command(name = "hookgate", version, arg_required_else_help = true)]
#[command(after_help = fault::EXIT_CODES)]
struct Cli {
    /// Print JSON in place of text: one value, or one a line where a command prints as it goes
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[allow(clippy::large_enum_variant)] // there is one of it
enum Command {
    Sign(sign::SignArgs),
    Verify(verify::VerifyArgs),
    Explain(explain::ExplainArgs),
    /// Receive deliveries on this machine and show them: interactive in a terminal, lines when piped
    Listen(listen::Listen),
    Log(log::LogArgs),
    Send(Box<send::SendArgs>),
    Simulate(Box<simulate::SimulateArgs>),
    Doctor(doctor::Doctor),
    Replay(Box<replay::ReplayArgs>),
    /// Print the completions for a shell.
    ///
    /// bash: hookgate completions bash > ~/.local/share/bash-completion/completions/hookgate
    #[command(verbatim_doc_comment)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    panics::install();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(told) => return not_a_command(&told),
    };
    let mut out = Out::new(cli.json);
    let ended = run(cli.command, &mut out).and_then(|code| {
        out.flush()?;
        Ok(code)
    });
    match ended {
        Ok(code) => code,
        Err(fault) => {
            // What was printed before counts, also where it can't be printed any more.
            let _ = out.flush();
            fault.report(cli.json)
        }
    }
}

fn run(command: Command, out: &mut Out) -> Result<ExitCode, Fault> {
    match command {
        Command::Send(args) => send::run(&args, out),
        Command::Simulate(args) => simulate::run(&args, out),
        Command::Sign(args) => sign::run(&args, out),
        Command::Verify(args) => verify::run(&args, out),
        Command::Explain(args) => explain::run(&args, out),
        Command::Listen(args) => listen::run(args, out),
        Command::Log(args) => log::run(&args, out),
        Command::Doctor(doctor) => doctor::run(&doctor, out),
        Command::Replay(args) => replay::run(&args, out),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "hookgate", &mut script);
            out.bytes(&script)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Help and version, which are asked for, and a command line that is wrong.
fn not_a_command(told: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|argument| argument == "--json");
    if told.use_stderr() && json {
        let text = told.render().to_string();
        let (message, advice) = text.split_once("\n").unwrap_or((&text, ""));
        let message = message.strip_prefix("error: ").unwrap_or(message);
        return Fault::new(Class::Usage, message)
            .advise(advice.trim())
            .report(true);
    }
    let told_all = told.print().and_then(|()| {
        use std::io::Write as _;
        std::io::stdout().flush()
    });
    match told_all {
        Ok(()) => ExitCode::from(u8::try_from(told.exit_code()).unwrap_or(Class::Usage as u8)),
        Err(error) => Fault::from(error).report(json),
    }
}
