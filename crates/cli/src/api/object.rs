//! `hookgate api get`, `create`, `update` and `delete`.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;

use hookgate_client::{Client, Objects, Row};
use serde_json::Value;
use serde_json::value::RawValue;

use super::connect::ConnectArgs;
use super::connect::fault;
use super::rows::{ModelArgs, Shown};
use crate::delivery_input::bytes_of;
use crate::fault::{Class, Fault};
use crate::interrupt;
use crate::out::Out;
use crate::printable::printable;

/// The kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    Row,
    #[value(alias = "data-model")]
    Model,
    Page,
    Block,
    Workflow,
    Stat,
}

/// The objects without shown payloads.
fn objects(client: &Client, kind: Kind) -> Option<Objects> {
    match kind {
        Kind::Block => Some(client.blocks()),
        Kind::Workflow => Some(client.workflows()),
        Kind::Stat => Some(client.stats()),
        Kind::Row | Kind::Model | Kind::Page => None,
    }
}

fn impossible(what: &str, advice: &str) -> Fault {
    Fault::new(Class::Usage, format!("the API has no request that {what}")).advise(advice)
}

fn no_page(verb: &str, done: &str) -> Fault {
    let advice = format!("pages are {done} in the workspace");
    impossible(&format!("{verb} a page"), &advice)
}

/// Print an object: a data model with its properties, a page, a block, a workflow or a stat
#[derive(clap::Args)]
pub(crate) struct GetArgs {
    /// The kind of object
    kind: Kind,
    /// Its id
    id: String,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Create a row, a data model, a block, a workflow or a stat from JSON on standard input
#[derive(clap::Args)]
pub(crate) struct CreateArgs {
    /// The kind of object
    kind: Kind,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    input: InputArg,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Change an object by JSON on standard input: of a row, the properties that are named; null
/// empties one
#[derive(clap::Args)]
pub(crate) struct UpdateArgs {
    /// The kind of object
    kind: Kind,
    /// Its id
    id: String,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    input: InputArg,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Delete an object, at once and without a question
#[derive(clap::Args)]
pub(crate) struct DeleteArgs {
    /// The kind of object
    kind: Kind,
    /// Its id
    id: String,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) fn get(args: &GetArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let client = args.connect.client()?;
    let got = match (args.kind, objects(&client, args.kind)) {
        (_, Some(objects)) => ask(objects.get(&args.id))?,
        (Kind::Model, None) => serde_json::json!(ask(client.data_model(&args.id))?),
        (Kind::Page, None) => ask(client.page(&args.id))?,
        (Kind::Row, None) => {
            let advice = "list the rows: hookgate api list rows --model ID";
            return Err(impossible("gets one row", advice));
        }
        _ => return Err(impossible("gets it", "see hookgate api get --help")),
    };
    print(&got, out)
}

pub(crate) fn create(args: &CreateArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let client = args.connect.client()?;
    let json = args.input.json()?;
    let made = match (args.kind, objects(&client, args.kind)) {
        (_, Some(objects)) => ask(objects.create(&json))?,
        (Kind::Model, None) => ask(client.create_data_model(&json))?,
        (Kind::Row, None) => {
            let rows = args.model.rows::<Box<RawValue>>(&client)?;
            return print_row(&ask(rows.create(&json))?, out);
        }
        _ => return Err(no_page("creates", "made")),
    };
    print(&made, out)
}

pub(crate) fn update(args: &UpdateArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let client = args.connect.client()?;
    let json = args.input.json()?;
    let changed = match (args.kind, objects(&client, args.kind)) {
        (_, Some(objects)) => ask(objects.update(&args.id, &json))?,
        (Kind::Model, None) => ask(client.update_data_model(&args.id, &json))?,
        (Kind::Row, None) => {
            let rows = args.model.rows::<Box<RawValue>>(&client)?;
            return print_row(&ask(rows.update(&args.id, &json))?, out);
        }
        _ => return Err(no_page("changes", "changed")),
    };
    print(&changed, out)
}

pub(crate) fn delete(args: &DeleteArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let client = args.connect.client()?;
    match (args.kind, objects(&client, args.kind)) {
        (_, Some(objects)) => ask(objects.delete(&args.id))?,
        (Kind::Row, None) => ask(args.model.rows::<Value>(&client)?.delete(&args.id))?,
        (Kind::Model, None) => ask(client.delete_data_model(&args.id))?,
        _ => return Err(no_page("deletes", "deleted")),
    };
    let json = serde_json::json!({ "id": args.id, "deleted": true });
    out.say(&format!("deleted {}", printable(&args.id)), &json)?;
    Ok(ExitCode::SUCCESS)
}

/// Waits for the call to end. Ctrl-C ends the wait.
fn ask<T>(call: impl Future<Output = Result<T, hookgate_client::Error>>) -> Result<T, Fault> {
    interrupt::block_on(async { call.await.map_err(|error| fault(&error)) })
}

fn print(value: &Value, out: &mut Out) -> Result<ExitCode, Fault> {
    if out.is_json() {
        out.json_line(value)?;
    } else {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        for line in text.lines() {
            out.line(&printable(line))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_row(row: &Row<Box<RawValue>>, out: &mut Out) -> Result<ExitCode, Fault> {
    let shown = Shown::of(row);
    out.say(&shown.text(), &shown)?;
    Ok(ExitCode::SUCCESS)
}

/// Far more than a request needs.
const LONGEST: u64 = 64 << 20;

/// The JSON of a request.
#[derive(clap::Args)]
struct InputArg {
    /// Read the JSON from this file, in place of standard input
    #[arg(long, value_name = "PATH")]
    from: Option<PathBuf>,
}

impl InputArg {
    /// Returns the JSON as it was written, so that numbers keep their digits.
    #[expect(clippy::disallowed_methods, reason = "only a raw text is made of it")]
    fn json(&self) -> Result<Box<RawValue>, Fault> {
        let (name, bytes) = match &self.from {
            Some(path) => (path.display().to_string(), bytes_of("the JSON", path)?),
            None => ("standard input".to_owned(), standard_input()?),
        };
        serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!(
                "{name} is not JSON, at line {} column {}",
                error.line(),
                error.column()
            );
            Fault::new(Class::Input, message)
                .advise("a row is an object of values by property: {\"Customer\": \"Ada\"}")
        })
    }
}

fn standard_input() -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let read = std::io::stdin()
        .lock()
        .take(LONGEST)
        .read_to_end(&mut bytes);
    read.map_err(|error| Fault::caused_by(Class::Input, "standard input can't be read", &error))?;
    Ok(bytes)
}
