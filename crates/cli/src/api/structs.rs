//! `hookgate rows struct`: the Rust struct of a data model.

use std::process::ExitCode;

use super::connect::ConnectArgs;
use super::fault::fault;
use super::rust_struct::rust_struct;
use crate::fault::Fault;
use crate::interrupt;
use crate::out::Out;

/// Write what a program needs for the rows of a data model: struct
#[derive(clap::Args)]
pub(crate) struct RowsArgs {
    #[command(subcommand)]
    command: RowsCommand,
}

#[derive(clap::Subcommand)]
enum RowsCommand {
    Struct(StructArgs),
}

/// Print the Rust struct of a data model, a field for each property, for events and for rows of the API
#[derive(clap::Args)]
struct StructArgs {
    /// The id of the data model
    model: String,
    /// The struct's name [default: the data model's title]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Make the field of this property no Option, since it is never empty. May be given several times
    #[arg(long, value_name = "PROPERTY")]
    required: Vec<String>,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) fn run(args: &RowsArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let RowsCommand::Struct(args) = &args.command;
    let client = args.connect.client()?;
    let model = interrupt::block_on(async {
        let model = client.data_model(&args.model).await;
        model.map_err(|error| fault(&error))
    })?;
    let code = rust_struct(&model, args.name.as_deref(), &args.required)?;
    out.say(code.trim_end(), &serde_json::json!({ "rust": code }))?;
    Ok(ExitCode::SUCCESS)
}
