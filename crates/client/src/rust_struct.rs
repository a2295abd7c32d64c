//! The Rust struct of a data model, for `Event<R>` and for rows.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::error::{Error, ErrorKind};
use crate::model::{DataModel, Property, PropertyType};

/// The words that can't be names of fields as they are.
const KEYWORDS: &str = " abstract as async await become box break const continue do dyn else enum extern false final fn for gen if \
    impl in let loop macro match mod move mut override priv pub ref return static struct trait true try type typeof unsafe \
    unsized use virtual where while yield ";
/// Those that no prefix makes names.
const RESERVED: &str = " crate self super ";

/// Writes the Rust struct of a data model, with a field for each property. `hookgate rows struct` prints it.
///
/// A field is an `Option`, because each property can be empty; [`required`](Self::required) names a property that is never empty. Dates,
/// numbers, files and relations have types of the crate `hookgate`.
///
/// ```
/// use hookgate_client::{DataModel, RustStruct};
///
/// let model: DataModel = serde_json::from_str(r#"{"id": "dm_1", "title": "Orders",
///     "properties": [{"id": "prop_1", "name": "Due on", "type": "DATE"}]}"#)?;
/// let written = RustStruct::of(&model).name("Order").write()?;
/// assert!(written.contains("#[serde(rename = \"Due on\")]\n    pub due_on: Option<hookgate::event::Date>,"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct RustStruct<'m> {
    model: &'m DataModel,
    name: Option<String>,
    required: Vec<String>,
}

impl<'m> RustStruct<'m> {
    /// Takes a data model with its properties, from [`Client::data_model`](crate::Client::data_model).
    pub fn of(model: &'m DataModel) -> Self {
        Self {
            model,
            name: None,
            required: Vec::new(),
        }
    }

    /// Names the struct. The default is the data model's title.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Writes the field of this property without `Option`.
    pub fn required(mut self, property: &str) -> Self {
        self.required.push(property.to_owned());
        self
    }

    /// Writes the struct.
    ///
    /// # Errors
    /// `AmbiguousProperty`: two properties have one name. `UnknownProperty`: a required property does not exist. `Config`: the name
    /// of the struct is not valid for a Rust type.
    pub fn write(&self) -> Result<String, Error> {
        let model = self.model;
        let name = match &self.name {
            Some(name) if is_type_name(name) => name.clone(),
            Some(name) => {
                let message = format!("{name:?} is not the name of a Rust type");
                return Err(Error::new(ErrorKind::Config, message));
            }
            None => type_name(&model.title),
        };
        let mut properties: Vec<_> = model.properties.iter().collect();
        properties.sort_by_key(|property| property.order);
        let mut names = HashSet::new();
        for property in &properties {
            if !names.insert(&*property.name) {
                let message = format!(
                    "several properties of {} are named {:?}",
                    model.id, property.name
                );
                return Err(Error::new(ErrorKind::AmbiguousProperty, message));
            }
        }
        if let Some(missing) = self
            .required
            .iter()
            .find(|name| !names.contains(name.as_str()))
        {
            let message = format!("the data model {} has no property {missing:?}", model.id);
            return Err(Error::new(ErrorKind::UnknownProperty, message));
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
            self.field(&mut text, property, &mut fields);
        }
        text.push_str("}\n");
        Ok(text)
    }

    fn field(&self, text: &mut String, property: &Property, fields: &mut HashSet<String>) {
        let name = field_name(&property.name, fields);
        doc(text, "    ", &about(property));
        if name.trim_start_matches("r#") != property.name {
            line(text, &format!("    #[serde(rename = {:?})]", property.name));
        }
        let of = rust_type(&property.r#type);
        if self.required.contains(&property.name) {
            line(text, &format!("    pub {name}: {of},"));
        } else {
            line(text, &format!("    pub {name}: Option<{of}>,"));
        }
    }
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
        PropertyType::Other(_) => "hookgate::event::Json",
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

/// Characters that show code in another order than the compiler reads it, which rustc refuses in comments.
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
