//! What the form of a seed does not say: ids that occur twice, values of another type than their property's, dates that are none.

use std::collections::BTreeSet;

use hookgate::event::Date;
use serde_json::{Map, Value};

use super::SeedFile;
use super::file::{SeedKey, SeedModel};
use super::position::{Step, Wrong};
use crate::model::{KEY_FORMS, check_value};
use crate::{switches, trigger};

use Step::{Field, Item};

/// Checks everything but the form.
///
/// # Errors
/// The first wrong value, by its path.
pub(super) fn check(file: &SeedFile) -> Result<(), Wrong<'_>> {
    for (name, value) in &file.switches {
        switches::parse(name, value)
            .map_err(|message| wrong(&[Field("switches"), Field(name)], message))?;
    }
    for (at, key) in file.keys.iter().enumerate() {
        check_key(key).map_err(|wrong| below(&[Field("keys"), Item(at)], wrong))?;
    }
    once(
        "keys",
        "name",
        file.keys.iter().filter_map(|key| key.name.as_deref()),
    )?;
    once(
        "keys",
        "key",
        file.keys.iter().filter_map(|key| key.key.as_deref()),
    )?;
    once(
        "members",
        "id",
        file.members.iter().map(|member| &*member.id),
    )?;
    once(
        "dataModels",
        "id",
        file.data_models.iter().map(|model| &*model.id),
    )?;
    for (at, model) in file.data_models.iter().enumerate() {
        check_model(model).map_err(|wrong| below(&[Field("dataModels"), Item(at)], wrong))?;
    }
    once(
        "subscriptions",
        "id",
        file.subscriptions.iter().map(|other| &*other.id),
    )?;
    for (at, subscription) in file.subscriptions.iter().enumerate() {
        subscription.check().map_err(|(field, message)| {
            wrong(&[Field("subscriptions"), Item(at), Field(field)], message)
        })?;
    }
    trigger::checked(&file.triggers).map_err(|(at, field, message)| {
        wrong(&[Field("triggers"), Item(at), Field(field)], message)
    })?;
    things("pages", &file.pages)?;
    things("blocks", &file.blocks)?;
    things("workflows", &file.workflows)?;
    things("stats", &file.stats)
}

fn wrong<'a>(path: &[Step<'a>], message: impl Into<String>) -> Wrong<'a> {
    let (path, message) = (path.to_vec(), message.into());
    Wrong { path, message }
}

fn below<'a>(path: &[Step<'a>], mut wrong: Wrong<'a>) -> Wrong<'a> {
    wrong.path.splice(0..0, path.iter().copied());
    wrong
}

/// Each value once in a list.
fn once<'a>(
    list: &'a str,
    field: &'a str,
    values: impl Iterator<Item = &'a str>,
) -> Result<(), Wrong<'a>> {
    let mut seen = BTreeSet::new();
    for (at, value) in values.enumerate() {
        if value.is_empty() {
            let path = [Field(list), Item(at), Field(field)];
            return Err(wrong(
                &path,
                "an empty text, expected at least one character",
            ));
        }
        if !seen.insert(value) {
            let path = [Field(list), Item(at), Field(field)];
            // A key is a secret.
            let shown = if field == "key" { "a key" } else { value };
            let message = format!("{shown:?} occurs twice in `{list}`, expected each {field} once");
            return Err(wrong(&path, message));
        }
    }
    Ok(())
}

fn check_key(key: &SeedKey) -> Result<(), Wrong<'_>> {
    if let Some(text) = &key.key
        && !KEY_FORMS.iter().any(|form| text.starts_with(form))
    {
        let message = format!(
            "a key of another form, expected one of {}",
            KEY_FORMS.join(", ")
        );
        return Err(wrong(&[Field("key")], message));
    }
    date("expiresAt", key.expires_at.as_deref())
}

fn check_model(model: &SeedModel) -> Result<(), Wrong<'_>> {
    date("createdAt", model.created_at.as_deref())?;
    date("updatedAt", model.updated_at.as_deref())?;
    once(
        "properties",
        "id",
        model.properties.iter().map(|property| &*property.id),
    )?;
    for (at, property) in model.properties.iter().enumerate() {
        property.check().map_err(|(field, message)| {
            wrong(&[Field("properties"), Item(at), Field(field)], message)
        })?;
    }
    once("rows", "id", model.rows.iter().map(|row| &*row.id))?;
    for (at, row) in model.rows.iter().enumerate() {
        let of_row = |wrong| below(&[Field("rows"), Item(at)], wrong);
        date("createdAt", row.created_at.as_deref()).map_err(of_row)?;
        date("updatedAt", row.updated_at.as_deref()).map_err(of_row)?;
        for (id, value) in row.data.iter() {
            let path = [Field("rows"), Item(at), Field("data"), Field(id)];
            check_value(&model.id, &model.properties, id, value)
                .map_err(|message| wrong(&path, message))?;
        }
    }
    Ok(())
}

fn date<'a>(field: &'a str, text: Option<&str>) -> Result<(), Wrong<'a>> {
    match text {
        Some(text) if Date::parse(text).is_err() => {
            let message =
                format!("{text:?} is not a time, expected one such as 2026-01-01T00:00:00Z");
            Err(wrong(&[Field(field)], message))
        }
        _ => Ok(()),
    }
}

fn things<'a>(list: &'a str, things: &'a [Map<String, Value>]) -> Result<(), Wrong<'a>> {
    for (at, thing) in things.iter().enumerate() {
        if !thing.get("id").is_some_and(Value::is_string) {
            let path = [Field(list), Item(at), Field("id")];
            return Err(wrong(&path, "missing field `id`, expected a string"));
        }
    }
    once(
        list,
        "id",
        things.iter().filter_map(|thing| thing["id"].as_str()),
    )
}
