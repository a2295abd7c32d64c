//! `hookgate rows struct`: the Rust struct of a data model, for `Event<R>` and for rows of the API.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::process::ExitCode;

use hookgate_client::{DataModel, Property, PropertyType};

use super::connect::ConnectArgs;
use super::connect::fault;
use crate::fault::{Class, Fault};
use crate::interrupt;
use crate::out::Out;

/// The words that can't be names of fields as they are.
const KEYWORDS: &str = " abstract as async await become box break const continue do dyn else enum extern false final fn for gen if \
    impl in let loop macro match mod move mut override priv pub ref return static struct trait true try type typeof unsafe \
    unsized use virtual where while yield ";
/// Those that no prefix makes names.
const RESERVED: &str = " crate self super ";

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

/// Print the Rust struct of a data model, a field for each property, for events and for rows of the
/// API
#[derive(clap::Args)]
struct StructArgs {
    /// The id of the data model
    model: String,
    /// The struct's name [default: the data model's title]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Make the field of this property no Option, since it is never empty. May be given several
    /// times
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

/// Writes the Rust struct of a data model, with a field for each property. Its name is the data
/// model's title where none is given.
///
/// A field is an `Option`, because each property can be empty; `required` names properties that are
/// never empty. Dates, numbers, files and relations have types of the crate `hookgate`.
fn rust_struct(
    model: &DataModel,
    name: Option<&str>,
    required: &[String],
) -> Result<String, Fault> {
    let name = match name {
        Some(name) if is_type_name(name) => name.to_owned(),
        Some(name) => {
            let message = format!("{name:?} is not the name of a Rust type");
            return Err(Fault::new(Class::Usage, message).advise("begin it with a capital: Order"));
        }
        None => type_name(&model.title),
    };
    let mut properties: Vec<_> = model.properties.iter().collect();
    properties.sort_by_key(|property| property.order);
    let mut names = HashSet::new();
    for property in &properties {
        let name = &property.name;
        if !names.insert(&**name) {
            let message = format!("several properties of {} are named {name:?}", model.id);
            return Err(Fault::new(Class::Input, message).advise("give each its own name first"));
        }
    }
    if let Some(missing) = required.iter().find(|name| !names.contains(name.as_str())) {
        let message = format!("the data model {} has no property {missing:?}", model.id);
        let advice = "hookgate api get model ID lists the properties";
        return Err(Fault::new(Class::Input, message).advise(advice));
    }
    let mut text = String::new();
    doc(&mut text, "", &format!("{} (`{}`).", model.title, model.id));
    if let Some(description) = model.description.as_deref().filter(|text| !text.is_empty()) {
        text.push_str("///\n");
        doc(&mut text, "", description);
    }
    text.push_str("#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]\n");
    line(&mut text, &format!("pub struct {name} {{"));
    let mut fields = HashSet::new();
    for property in properties {
        let is_required = required.contains(&property.name);
        write_field(&mut text, property, is_required, &mut fields);
    }
    text.push_str("}\n");
    Ok(text)
}

fn write_field(
    text: &mut String,
    property: &Property,
    is_required: bool,
    fields: &mut HashSet<String>,
) {
    let name = field_name(&property.name, fields);
    doc(text, "    ", &about(property));
    if name.trim_start_matches("r#") != property.name {
        line(text, &format!("    #[serde(rename = {:?})]", property.name));
    }
    let of = rust_type(&property.r#type);
    let of = match is_required {
        true => of.to_owned(),
        false => format!("Option<{of}>"),
    };
    line(text, &format!("    pub {name}: {of},"));
}

fn rust_type(of: &PropertyType) -> &'static str {
    match of {
        PropertyType::Text | PropertyType::Select => "String",
        PropertyType::Number | PropertyType::Currency => "hookgate::event::Number",
        PropertyType::Date => "hookgate::event::Date",
        PropertyType::MultiSelect => "Vec<String>",
        PropertyType::Checkbox => "bool",
        PropertyType::Relation => "Vec<hookgate::event::RowId>",
        PropertyType::File => "Vec<hookgate::event::File>",
        _ => "hookgate::event::Json",
    }
}

/// Name, type, options or target.
fn about(property: &Property) -> String {
    let mut about = format!("{}: {}", property.name, property.r#type);
    let options = property.options.iter().flatten();
    let options: Vec<_> = options
        .map(|option| format!("`{}`", option.value))
        .collect();
    if !options.is_empty() {
        let _ = write!(about, ", one of {}", options.join(", "));
    }
    if let Some(relation) = &property.relation_config {
        let _ = write!(about, " of rows of `{}`", relation.target_data_model_id);
    }
    about.push('.');
    about
}

/// Writes comments in one line each, whatever the text has.
fn doc(text: &mut String, indent: &str, comment: &str) {
    let is_plain = |char: char| !char.is_control() && !is_bidirectional(char);
    let comment: String = comment
        .chars()
        .map(|char| if is_plain(char) { char } else { ' ' })
        .collect();
    line(text, &format!("{indent}/// {}", comment.trim()));
}

/// Characters that show code in another order than the compiler reads it, which rustc refuses in
/// comments.
fn is_bidirectional(char: char) -> bool {
    matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// `Due on` is `due_on`. A name that is taken, or has no letter of ASCII, gets a number.
fn field_name(name: &str, taken: &mut HashSet<String>) -> String {
    let mut field = String::new();
    let mut before_is_lower = false;
    for char in name.chars() {
        if char.is_ascii_alphanumeric() {
            if char.is_ascii_uppercase() && before_is_lower {
                field.push('_');
            }
            field.push(char.to_ascii_lowercase());
        } else if !field.is_empty() && !field.ends_with('_') {
            field.push('_');
        }
        before_is_lower = char.is_ascii_lowercase() || char.is_ascii_digit();
    }
    let mut field = field.trim_end_matches('_').to_owned();
    let word = format!(" {field} ");
    if field.is_empty() {
        field.push_str("property");
    } else if field.starts_with(|char: char| char.is_ascii_digit()) {
        field.insert(0, '_');
    } else if KEYWORDS.contains(&word) {
        field.insert_str(0, "r#");
    } else if RESERVED.contains(&word) {
        field.push('_');
    }
    let mut unique = field.clone();
    let mut number = 2;
    while !taken.insert(unique.clone()) {
        unique = format!("{}_{number}", field.trim_start_matches("r#"));
        number += 1;
    }
    unique
}

/// `Open orders` is `OpenOrders`.
fn type_name(title: &str) -> String {
    let words = title.split(|char: char| !char.is_ascii_alphanumeric());
    let mut name = String::new();
    for word in words {
        let mut chars = word.chars();
        name.extend(chars.next().map(|char| char.to_ascii_uppercase()));
        name.extend(chars);
    }
    if is_type_name(&name) {
        name
    } else {
        format!("Row{name}")
    }
}

fn is_type_name(name: &str) -> bool {
    name != "Self"
        && name.starts_with(|char: char| char.is_ascii_uppercase())
        && name
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || char == '_')
}

#[cfg(test)]
mod tests {
    use hookgate_client::{ApiKey, Client};
    use hookgate_emulator::{Emulator, Seed};
    use serde_json::json;

    use super::*;

    /// What `hookgate rows struct dm_orders --name Order --required Customer` prints.
    #[rustfmt::skip]
    #[allow(unreachable_pub, dead_code)]
    mod order {
        include!("../../tests/it/written/order.rs");
    }
    /// Names that are not names of Rust, and a type that the specification does not show.
    #[rustfmt::skip]
    #[allow(unreachable_pub)]
    mod odd {
        include!("../../tests/it/written/odd.rs");
    }

    /// Compares with a file that is compiled in. `WRITE_STRUCTS=1` writes it again.
    #[track_caller]
    fn compare(file: &str, written: &str, compiled: &str) {
        if std::env::var_os("WRITE_STRUCTS").is_some() {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/written");
            std::fs::write(format!("{folder}/{file}"), written).unwrap();
        }
        assert_eq!(written, compiled);
    }

    #[tokio::test]
    async fn the_struct_of_nine_types_is_compiled_and_reads_the_rows_that_it_is_for() {
        let emulator = Emulator::start(Seed::orders()).await.unwrap();
        let key = ApiKey::new("tk_test_admin").unwrap();
        let client = Client::new(&emulator.base_url(), key).unwrap();
        let model = client.data_model("dm_orders").await.unwrap();
        let written = rust_struct(&model, Some("Order"), &["Customer".to_owned()]).unwrap();
        let compiled = include_str!("../../tests/it/written/order.rs");
        compare("order.rs", &written, compiled);

        let rows = client.rows::<order::Order>("dm_orders");
        let read = rows.list().all().await.unwrap();
        let first = &read[0].properties;
        assert_eq!(first.customer, "Harbour Books");
        assert!(first.due.as_ref().unwrap().is_date_only());
        assert_eq!(first.client.as_ref().unwrap()[0], "row_client_1");
        assert_eq!(first.invoice.as_ref().unwrap()[0].name, "invoice-1.pdf");
        assert_eq!(first.tags.as_ref().map(Vec::len), Some(1));
        assert_eq!(first.gift, Some(false));
        assert!(read[2].properties.due.is_none());
        // It is written as it is read.
        let made = rows.create(first).await.unwrap();
        let stored = emulator.rows("dm_orders");
        assert_eq!(stored.get(&made.id), stored.get("row_order_1"));
    }

    fn odd() -> DataModel {
        let names = [
            "type",
            "Type",
            "self",
            "2nd \"try\"",
            "日付",
            "名前",
            "a\nb\u{202e}",
            "camelCase",
            "ok",
        ];
        let properties = names.iter().enumerate().map(|(at, name)| {
            let of = if at == 8 { "FORMULA" } else { "TEXT" };
            json!({ "id": format!("prop_{at}"), "name": name, "type": of, "order": at })
        });
        let properties: Vec<_> = properties.collect();
        let model = json!({ "id": "dm_odd", "title": "2 odd */ things", "properties": properties });
        serde_json::from_value(model).unwrap()
    }

    #[test]
    fn odd_names_become_names_of_fields_and_keep_their_renames() {
        let written = rust_struct(&odd(), None, &[]).unwrap();
        let compiled = include_str!("../../tests/it/written/odd.rs");
        compare("odd.rs", &written, compiled);
        let values = json!({ "type": "a", "Type": "b", "self": "c", "2nd \"try\"": "d", "日付": "e", "名前": "f",
            "a\nb\u{202e}": "g", "camelCase": "h", "ok": [1.50] });
        let read: odd::Row2OddThings = serde_json::from_str(&values.to_string()).unwrap();
        let texts = [
            &read.r#type,
            &read.type_2,
            &read.self_,
            &read._2nd_try,
            &read.property,
            &read.property_2,
            &read.a_b,
            &read.camel_case,
        ];
        let texts: String = texts.into_iter().flatten().map(String::as_str).collect();
        assert_eq!(texts, "abcdefgh");
        assert_eq!(read.ok.as_ref().unwrap().as_str(), "[1.5]");
        assert_eq!(serde_json::to_value(&read).unwrap(), values);
    }

    #[test]
    fn a_struct_that_cannot_be_is_refused() {
        let mut model = odd();
        assert!(rust_struct(&model, Some("order"), &[]).is_err());
        assert!(rust_struct(&model, None, &["Size".to_owned()]).is_err());
        assert!(rust_struct(&model, None, &["ok".to_owned()]).is_ok());
        model.properties[1].name = "type".to_owned();
        assert!(rust_struct(&model, None, &[]).is_err());
    }
}
