//! What the form of a seed does not say: ids that occur twice, values of another type than their property's, dates that are none.

use std::collections::BTreeSet;

use hookgate::event::Date;
use serde_json::Value;

use super::SeedFile;
use super::error::{Step, Wrong};
use crate::model::{DataModel, KEY_FORMS, Key, Things, check_properties, check_value};
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
    let given = |text: &&str| !text.is_empty();
    once("keys", "name", &file.keys, |key| {
        Some(&*key.name).filter(given)
    })?;
    once("keys", "key", &file.keys, |key| {
        Some(&*key.key).filter(given)
    })?;
    once("members", "id", &file.members, |member| Some(&member.id))?;
    once("dataModels", "id", &file.data_models, |model| {
        Some(&model.id)
    })?;
    for (at, model) in file.data_models.iter().enumerate() {
        check_model(model).map_err(|wrong| below(&[Field("dataModels"), Item(at)], wrong))?;
    }
    once("subscriptions", "id", &file.subscriptions, |other| {
        Some(&other.id)
    })?;
    for (at, subscription) in file.subscriptions.iter().enumerate() {
        subscription.check().map_err(|(field, message)| {
            wrong(&[Field("subscriptions"), Item(at), Field(field)], message)
        })?;
    }
    trigger::checked(&file.triggers).map_err(|(at, field, message)| {
        wrong(&[Field("triggers"), Item(at), Field(field)], message)
    })?;
    file.faults
        .check()
        .map_err(|(at, message)| wrong(&[Field("faults"), Field("entries"), Item(at)], message))?;
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
fn once<'a, T>(
    list: &'a str,
    field: &'a str,
    items: &'a [T],
    value: impl Fn(&'a T) -> Option<&'a str>,
) -> Result<(), Wrong<'a>> {
    let mut seen = BTreeSet::new();
    let values = items.iter().enumerate();
    for (at, value) in values.filter_map(|(at, item)| Some((at, value(item)?))) {
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

fn check_key(key: &Key) -> Result<(), Wrong<'_>> {
    let text = &key.key;
    if !text.is_empty() && !KEY_FORMS.iter().any(|form| text.starts_with(form)) {
        let message = format!(
            "a key of another form, expected one of {}",
            KEY_FORMS.join(", ")
        );
        return Err(wrong(&[Field("key")], message));
    }
    date("expiresAt", key.expires_at.as_deref().unwrap_or_default())
}

fn check_model(model: &DataModel) -> Result<(), Wrong<'_>> {
    date("createdAt", &model.created_at)?;
    date("updatedAt", &model.updated_at)?;
    once("properties", "id", &model.properties, |property| {
        Some(&property.id)
    })?;
    check_properties(&model.properties).map_err(|(at, field, message)| {
        wrong(&[Field("properties"), Item(at), Field(field)], message)
    })?;
    for (at, row) in model.rows.as_slice().iter().enumerate() {
        let of_row = |wrong| below(&[Field("rows"), Item(at)], wrong);
        date("createdAt", &row.created_at).map_err(of_row)?;
        date("updatedAt", &row.updated_at).map_err(of_row)?;
        for (id, value) in row.data.iter() {
            let path = [Field("rows"), Item(at), Field("data"), Field(id)];
            check_value(&model.id, &model.properties, id, value)
                .map_err(|message| wrong(&path, message))?;
        }
    }
    Ok(())
}

fn date<'a>(field: &'a str, text: &str) -> Result<(), Wrong<'a>> {
    if text.is_empty() || Date::parse(text).is_ok() {
        return Ok(());
    }
    let message = format!("{text:?} is not a time, expected one such as 2026-01-01T00:00:00Z");
    Err(wrong(&[Field(field)], message))
}

fn things<'a>(list: &'a str, things: &'a Things) -> Result<(), Wrong<'a>> {
    let things = things.as_slice();
    for (at, thing) in things.iter().enumerate() {
        if !thing.get("id").is_some_and(Value::is_string) {
            let path = [Field(list), Item(at), Field("id")];
            return Err(wrong(&path, "missing field `id`, expected a string"));
        }
    }
    once(list, "id", things, |thing| thing["id"].as_str())
}
