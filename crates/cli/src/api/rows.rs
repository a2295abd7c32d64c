//! `hookgate api list`, and the rows of a data model.

use std::process::ExitCode;

use hookgate_client::{Client, DataModel, Direction, Row, Rows};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::connect::ConnectArgs;
use super::connect::fault;
use crate::fault::{Class, Fault};
use crate::interrupt;
use crate::out::Out;
use crate::printable::printable;

/// The kinds of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Lists {
    Rows,
    #[value(alias = "data-models")]
    Models,
    Blocks,
    Workflows,
    Stats,
}

/// List rows of a data model, or data models, blocks, workflows or stats: one a line
#[derive(clap::Args)]
pub(crate) struct ListArgs {
    /// What to list
    kind: Lists,
    /// The data model of the rows, as --model
    #[arg(value_name = "MODEL", conflicts_with = "model")]
    of: Option<String>,
    #[command(flatten)]
    model: ModelArgs,
    /// No more than this. Without it, all
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,
    /// Order rows by this property; a minus before its name puts the greatest first. May be given
    /// several times
    #[arg(long, value_name = "PROPERTY", allow_hyphen_values = true)]
    order_by: Vec<String>,
    /// Only those that match this text. Rows can't be searched
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// The data model of rows.
#[derive(clap::Args)]
pub(crate) struct ModelArgs {
    /// The data model of the rows
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// Take and print the ids of properties in place of their names
    #[arg(long)]
    by_id: bool,
}

impl ModelArgs {
    pub(crate) fn rows<R>(&self, client: &Client) -> Result<Rows<R>, Fault> {
        self.rows_of(self.model.as_deref(), client)
    }

    fn rows_of<R>(&self, model: Option<&str>, client: &Client) -> Result<Rows<R>, Fault> {
        let model = model.ok_or_else(|| {
            Fault::new(Class::Usage, "the data model of the rows is not given")
                .advise("name it: --model ID; hookgate api list models shows them")
        })?;
        let rows = client.rows(model);
        Ok(if self.by_id { rows.by_id() } else { rows })
    }
}

/// A row as it is printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shown<'r> {
    id: &'r str,
    properties: &'r RawValue,
    created_at: Option<&'r str>,
    updated_at: Option<&'r str>,
}

impl<'r> Shown<'r> {
    pub(crate) fn of(row: &'r Row<Box<RawValue>>) -> Self {
        Self {
            id: &row.id,
            properties: &row.properties,
            created_at: row.created_at.as_deref(),
            updated_at: row.updated_at.as_deref(),
        }
    }

    pub(crate) fn text(&self) -> String {
        format!(
            "{}  {}",
            printable(self.id),
            printable(self.properties.get())
        )
    }
}

pub(crate) fn list(args: &ListArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    if args.of.is_some() && args.kind != Lists::Rows {
        let message = "rows alone are listed by data model";
        return Err(Fault::new(Class::Usage, message).advise("hookgate api list rows MODEL"));
    }
    let client = args.connect.client()?;
    interrupt::block_on(async {
        match args.kind {
            Lists::Rows => rows(args, &client, out).await,
            Lists::Models => models(args, &client, out).await,
            Lists::Blocks => objects(args, client.blocks(), out).await,
            Lists::Workflows => objects(args, client.workflows(), out).await,
            Lists::Stats => objects(args, client.stats(), out).await,
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn rows(args: &ListArgs, client: &Client, out: &mut Out) -> Result<(), Fault> {
    if args.search.is_some() {
        let message = "the API can't search rows";
        return Err(
            Fault::new(Class::Usage, message).advise("list them, and search what is printed")
        );
    }
    let model = args.model.model.as_deref().or(args.of.as_deref());
    let mut rows = args.model.rows_of::<Box<RawValue>>(model, client)?;
    for property in &args.order_by {
        rows = match property.strip_prefix('-') {
            Some(property) => rows.order_by(property, Direction::Descending),
            None => rows.order_by(property, Direction::Ascending),
        };
    }
    if let Some(limit) = args.limit {
        rows = rows.page_size(u32::try_from(limit).unwrap_or(u32::MAX));
    }
    let mut list = rows.list();
    let mut left = args.limit.unwrap_or(usize::MAX);
    while left > 0
        && let Some(row) = list.next().await
    {
        let row = row.map_err(|error| fault(&error))?;
        let shown = Shown::of(&row);
        out.say(&shown.text(), &shown)?;
        left -= 1;
    }
    Ok(())
}

async fn models(args: &ListArgs, client: &Client, out: &mut Out) -> Result<(), Fault> {
    let mut models = client.data_models();
    if let Some(search) = &args.search {
        models = models.search(search);
    }
    let models = models.list().await.map_err(|error| fault(&error))?;
    for model in models.iter().take(args.limit.unwrap_or(usize::MAX)) {
        let DataModel { id, title, .. } = model;
        out.say(&format!("{}  {}", printable(id), printable(title)), model)?;
    }
    Ok(())
}

async fn objects(
    args: &ListArgs,
    objects: hookgate_client::Objects,
    out: &mut Out,
) -> Result<(), Fault> {
    let objects = match &args.search {
        Some(search) => objects.search(search),
        None => objects,
    };
    let mut list = objects.list();
    let mut left = args.limit.unwrap_or(usize::MAX);
    while left > 0
        && let Some(object) = list.next().await
    {
        let object: Value = object.map_err(|error| fault(&error))?;
        let id = object.get("id").and_then(Value::as_str).unwrap_or_default();
        let text = format!("{}  {}", printable(id), printable(&object.to_string()));
        out.say(&text, &object)?;
        left -= 1;
    }
    Ok(())
}
