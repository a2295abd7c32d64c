//! `hookgate`: tools for the webhooks of the Workspace Data Service.
//!
//! One file for each command; the rules themselves are in the library.
#![allow(missing_docs)] // a program has no API
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod address;
mod api;
mod delivery_input;
mod doctor;
mod durations;
mod emulate;
mod event_types;
mod explain;
mod fault;
mod http_client;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod inbox;
mod interrupt;
#[cfg(any(test, not(all(feature = "postgres", feature = "sqlite"))))]
mod left_out;
mod listen;
mod log;
mod out;
mod panics;
mod printable;
#[cfg(feature = "sqlite")]
mod reconcile;
mod replay;
mod secrets;
mod send;
mod sign;
mod simulate;
#[cfg(test)]
mod tests;
mod verify;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use console::Term;

use fault::{Class, Fault, without_secrets};
use out::Out;
use printable::{hanging, printable, printable_lines};

/// Receives, signs, replays and explains the webhooks of the Workspace Data Service.
#[derive(Parser)]
#[command(name = "hookgate", version, arg_required_else_help = true)]
#[command(after_help = fault::EXIT_CODES)]
struct Cli {
    /// Print JSON in place of text: one value, or one a line where a command prints as it goes
    #[arg(long, global = true, display_order = 1000)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[allow(clippy::large_enum_variant)] // there is one of it
enum Command {
    /// Receive deliveries on this machine and show them: a line a delivery, and a page with --page
    Listen(listen::Listen),
    Send(Box<send::SendArgs>),
    Simulate(Box<simulate::SimulateArgs>),
    Emulate(emulate::EmulateArgs),
    Api(api::ApiArgs),
    Rows(api::RowsArgs),
    #[cfg(feature = "sqlite")]
    Reconcile(reconcile::ReconcileArgs),
    /// Not in this build: brought by its feature `sqlite`
    #[cfg(not(feature = "sqlite"))]
    Reconcile(left_out::LeftOut),
    Sign(sign::SignArgs),
    Verify(verify::VerifyArgs),
    Explain(explain::ExplainArgs),
    Log(log::LogArgs),
    Replay(Box<replay::ReplayArgs>),
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    Inbox(inbox::InboxArgs),
    /// Not in this build: brought by its features `sqlite` (an inbox in a file) and `postgres`
    #[cfg(not(any(feature = "postgres", feature = "sqlite")))]
    Inbox(left_out::LeftOut),
    Doctor(doctor::Doctor),
    /// Print the completions for a shell
    ///
    /// bash: hookgate completions bash > ~/.local/share/bash-completion/completions/hookgate
    /// zsh:  hookgate completions zsh > DIR/_hookgate, where DIR is in $fpath before compinit runs
    /// fish: hookgate completions fish > ~/.config/fish/completions/hookgate.fish
    #[command(verbatim_doc_comment)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Clap has one heading for all commands.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Receive", &["listen"]),
    ("Send", &["send", "simulate", "replay", "emulate", "sign"]),
    ("Find out why", &["explain", "verify", "log", "doctor"]),
    ("Repair", &["inbox", "reconcile"]),
    ("The service's API", &["api", "rows"]),
];

/// Shows the commands in groups in the help of `hookgate` itself.
fn in_groups(hookgate: clap::Command) -> clap::Command {
    let columns = Term::stdout()
        .size_checked()
        .map_or(100, |(_, columns)| columns.into());
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    let others = ("Other", &["completions"][..]);
    for (group, names) in GROUPS.into_iter().chain([others]) {
        template += &format!("\n{group}:\n");
        for name in names {
            let command = hookgate.find_subcommand(name);
            let about = command.and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let line = hanging(&format!("  {name:<13}"), &about, columns);
            template += &format!("{line}\n");
        }
    }
    hookgate.help_template(template + "\nOptions:\n{options}{after-help}\n")
}

fn main() -> ExitCode {
    panics::install();
    let matches = in_groups(Cli::command()).try_get_matches();
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(mut error) => {
            hint(&mut error);
            return not_a_command(&error);
        }
    };
    if cli.json {
        fault::use_json();
    }
    let mut out = Out::new(cli.json);
    let ended = run(cli.command, &mut out).and_then(|code| {
        out.flush()?;
        Ok(code)
    });
    match ended {
        Ok(code) => code,
        Err(fault) => {
            // Output that was printed before counts, also where it can't be written any more.
            let _ = out.flush();
            fault.report()
        }
    }
}

fn run(command: Command, out: &mut Out) -> Result<ExitCode, Fault> {
    match command {
        Command::Listen(args) => listen::run(args, out),
        Command::Send(args) => send::run(&args, out),
        Command::Simulate(args) => simulate::run(&args, out),
        Command::Emulate(args) => emulate::run(&args, out),
        Command::Api(args) => api::run(&args, out),
        Command::Rows(args) => api::run_rows(&args, out),
        #[cfg(feature = "sqlite")]
        Command::Reconcile(args) => reconcile::run(&args, out),
        #[cfg(not(feature = "sqlite"))]
        Command::Reconcile(_) => Err(left_out::left_out("the command reconcile", "sqlite")),
        Command::Sign(args) => sign::run(&args, out),
        Command::Verify(args) => verify::run(&args, out),
        Command::Explain(args) => explain::run(&args, out),
        Command::Log(args) => log::run(&args, out),
        Command::Replay(args) => replay::run(&args, out),
        #[cfg(any(feature = "postgres", feature = "sqlite"))]
        Command::Inbox(args) => inbox::run(&args, out),
        #[cfg(not(any(feature = "postgres", feature = "sqlite")))]
        Command::Inbox(_) => Err(left_out::left_out("the command inbox", "sqlite")),
        Command::Doctor(doctor) => doctor::run(&doctor, out),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "hookgate", &mut script);
            out.bytes(&script)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Options that people try and no command has, with what to give in their place.
const TRIED: [(&str, &str); 2] = [
    (
        "--port",
        "host and port are one option: --addr 127.0.0.1:8787",
    ),
    (
        "--secret",
        "a secret never comes as an argument, which the list of processes shows: set WEBHOOK_SECRET, or name a file with --secret-file",
    ),
];

/// Adds a hint to the error if the user tried an option that no command has.
fn hint(error: &mut clap::Error) {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return;
    };
    let tried = TRIED.iter().find(|(tried, _)| tried == option);
    if let (ErrorKind::UnknownArgument, Some((_, meant))) = (error.kind(), tried) {
        error.remove(ContextKind::SuggestedArg);
        let meant = ContextValue::StyledStrs(vec![(*meant).into()]);
        error.insert(ContextKind::Suggested, meant);
    }
}

/// Help and version, which are asked for, and a command line that is wrong.
fn not_a_command(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|argument| argument == "--json");
    if error.use_stderr() && json {
        fault::use_json();
        let text = error.render().to_string();
        let (message, advice) = text.split_once("\n").unwrap_or((&text, ""));
        let message = message.strip_prefix("error: ").unwrap_or(message);
        return Fault::new(Class::Usage, message)
            .advise(advice.trim())
            .report();
    }
    let printed = print(error);
    match printed {
        Ok(()) => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Class::Usage as u8)),
        Err(error) => Fault::from(error).report(),
    }
}

/// Prints clap's message as clap does, in colour. But the arguments that it repeats may hold
/// anything, a secret in the wrong place included.
fn print(error: &clap::Error) -> io::Result<()> {
    let asks_for_json = |argument: std::ffi::OsString| match argument.to_str() {
        Some(text) => without_secrets(&printable(text)) != text,
        None => true,
    };
    if error.use_stderr() && std::env::args_os().any(asks_for_json) {
        let text = error.render().to_string();
        let shown = printable_lines(&without_secrets(&text));
        return io::stderr().write_all(shown.as_bytes());
    }
    error.print()?;
    io::stdout().flush()
}
