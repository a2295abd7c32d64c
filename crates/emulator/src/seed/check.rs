//! What the form of a seed does not say: ids that occur twice, values of another type than their
//! property's, dates that are none.

use std::collections::BTreeSet;

use hookgate::event::Date;
use serde_json::Value;

use super::SeedFile;
use super::error::Wrong;
use crate::model::{
    DataModel, KEY_FORMS, Key, Misfit, Step, Things, check_icon, check_properties,
    check_properties_form, check_value,
};
use crate::{switches, trigger};

use Step::{Field, Item};

/// Checks the form of the data models' properties and icons in a text that is not read as a seed.
///
/// # Errors
/// The first wrong value, by its path.
pub(super) fn check_form(seed: &Value) -> Result<(), Wrong<'static>> {
    let models = seed["dataModels"].as_array();
    for (at, model) in models.into_iter().flatten().enumerate() {
        let checked = [
            ("icon", model.get("icon").map_or(Ok(()), check_icon)),
            (
                "properties",
                model.get("properties").map_or(Ok(()), |properties| {
                    check_properties_form("properties", properties)
                }),
            ),
        ];
        for (field, checked) in checked {
            let path = [Field("dataModels"), Item(at), Field(field)];
            checked.map_err(|misfit| of_misfit(&path, misfit))?;
        }
    }
    Ok(())
}

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
    let models: BTreeSet<_> = file.data_models.iter().map(|model| &*model.id).collect();
    for (at, model) in file.data_models.iter().enumerate() {
        check_model(model, &models)
            .map_err(|wrong| below(&[Field("dataModels"), Item(at)], wrong))?;
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

fn of_misfit<'a>(path: &[Step<'a>], misfit: Misfit) -> Wrong<'a> {
    let (path, message) = ([path, &misfit.path].concat(), misfit.message);
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
            let message = format!("`{field}` is empty, expected at least one character");
            return Err(wrong(&path, message));
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

fn check_model<'a>(model: &'a DataModel, models: &BTreeSet<&str>) -> Result<(), Wrong<'a>> {
    if model.title.trim().is_empty() {
        let message = format!(
            "`title` is {:?}, expected more than white space",
            model.title
        );
        return Err(wrong(&[Field("title")], message));
    }
    date("createdAt", &model.created_at)?;
    date("updatedAt", &model.updated_at)?;
    once("properties", "id", &model.properties, |property| {
        Some(&property.id)
    })?;
    check_properties(&[], &model.properties, |id| models.contains(id))
        .map_err(|misfit| of_misfit(&[Field("properties")], misfit))?;
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
