//! `hookgate api`: reads and changes what the service holds, and `hookgate rows`: what belongs to
//! rows of a data model.

mod connect;
mod object;
mod rows;
mod rust_struct;

use std::process::ExitCode;

use crate::fault::Fault;
use crate::out::Out;
use object::{CreateArgs, GetArgs};

#[cfg(feature = "sqlite")]
pub(crate) use connect::ConnectArgs;
#[cfg(feature = "sqlite")]
pub(crate) use connect::fault;
pub(crate) use rust_struct::RowsArgs;
pub(crate) use rust_struct::run as run_rows;

/// Read and change rows, data models, pages, blocks, workflows and stats through the service's API
///
/// Rows are written and printed by the names of their properties. The API's address is in
/// HOOKGATE_API_URL, or given as --url; the key is in HOOKGATE_API_KEY, or in another variable or a
/// file. Rows may hold personal data: take care who can read the output.
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
