//! `hookgate api`: reads and changes what the service holds, and `hookgate rows`: what belongs to rows of a data model.

mod connect;
mod input;
mod object;
mod rows;
mod structs;

use std::process::ExitCode;

use hookgate_client::{Error, ErrorKind};

use crate::fault::{Class, Fault, chain};
use crate::out::Out;
use object::{CreateArgs, GetArgs};

#[cfg(feature = "sqlite")]
pub(crate) use connect::ConnectArgs;
pub(crate) use structs::RowsArgs;
pub(crate) use structs::run as run_rows;

/// Read and change rows, data models, pages, blocks, workflows and stats through the service's API
///
/// Rows are written and printed by the names of their properties. The API's address is in HOOKGATE_API_URL, or given as --url; the key is in
/// HOOKGATE_API_KEY, or in another variable or a file. Rows may hold personal data: take care who can read the output.
#[derive(clap::Args)]
pub(crate) struct ApiArgs {
    #[command(subcommand)]
    command: ApiCommand,
}

#[derive(clap::Subcommand)]
enum ApiCommand {
    List(rows::ListArgs),
    Get(GetArgs),
    Create(CreateArgs),
    Update(object::UpdateArgs),
    Delete(object::DeleteArgs),
}

pub(crate) fn run(args: &ApiArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    match &args.command {
        ApiCommand::List(args) => rows::list(args, out),
        ApiCommand::Get(args) => object::get(args, out),
        ApiCommand::Create(args) => object::create(args, out),
        ApiCommand::Update(args) => object::update(args, out),
        ApiCommand::Delete(args) => object::delete(args, out),
    }
}

/// The fault of a request, with its exit code.
pub(crate) fn fault(error: &Error) -> Fault {
    let class = match error.kind() {
        ErrorKind::Key | ErrorKind::Unauthorized | ErrorKind::Forbidden => Class::Secret,
        ErrorKind::Config => Class::Usage,
        ErrorKind::Connection | ErrorKind::Timeout | ErrorKind::RateLimited | ErrorKind::Server => {
            Class::Network
        }
        _ => Class::Input,
    };
    let advice = match error.kind() {
        _ if error.is_outcome_unknown() => "look whether the change was made before you repeat it",
        ErrorKind::Key => "set HOOKGATE_API_KEY, or use --key-env or --key-file",
        ErrorKind::Unauthorized => "is the key of this workspace, not expired and not disabled?",
        ErrorKind::Forbidden => "use a key with this scope",
        ErrorKind::NotFound => {
            "check the id, and that the address ends in /api/v1; hookgate api list models shows the data models, and so for rows, blocks, workflows and stats"
        }
        ErrorKind::Connection | ErrorKind::Timeout => {
            "check the address, and that the service runs"
        }
        ErrorKind::RateLimited | ErrorKind::Server => "try again later",
        ErrorKind::AmbiguousProperty => {
            "--by-id takes the ids of properties in place of their names"
        }
        ErrorKind::UnknownProperty => "hookgate api get model ID lists the properties",
        ErrorKind::Config => "write the whole address: https://service.example/api/v1",
        _ => "check the values against the data model: hookgate api get model ID",
    };
    Fault::new(class, chain(error)).advise(advice)
}
