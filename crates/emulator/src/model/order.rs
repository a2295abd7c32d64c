//! The choice and the order of the rows of a list: words that are searched for, and `orderBy`.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::sync::Arc;

use hookgate::event::Date;
use serde_json::Value;

use super::{DataModel, Property, PropertyType, Row};

/// One item of `orderBy`.
#[derive(Clone, Debug)]
pub(crate) struct OrderBy {
    pub(crate) property: String,
    is_date: bool,
    is_descending: bool,
}

/// A value in the form in which it is compared. Values of before a property's type was changed are
/// in the order of their kinds.
#[derive(PartialEq, PartialOrd)]
enum SortKey<'a> {
    Number(f64),
    Instant(i128),
    Text(&'a str),
    Flag(bool),
    /// Arrays are compared by their length; the specification shows nothing.
    Length(usize),
    None,
}

impl OrderBy {
    /// Reads `<property_id>:<direction>`, separated by commas.
    pub(crate) fn parse(text: &str, properties: &[Property]) -> Result<Vec<Self>, String> {
        text.split(',')
            .map(|item| Self::item(item, properties))
            .collect()
    }

    fn item(item: &str, properties: &[Property]) -> Result<Self, String> {
        let expected = "expected <property_id>:asc or <property_id>:desc";
        let (id, direction) = item
            .trim()
            .rsplit_once(':')
            .ok_or_else(|| format!("orderBy has {item:?}, {expected}"))?;
        if !["asc", "desc"].contains(&direction) {
            return Err(format!(
                "orderBy has the direction {direction:?}, {expected}"
            ));
        }
        let property = properties.iter().find(|property| property.id == id);
        let property = property.ok_or_else(|| {
            format!("orderBy names property `{id}`, which the data model has not")
        })?;
        Ok(Self {
            property: property.id.clone(),
            is_date: property.r#type == PropertyType::Date,
            is_descending: direction == "desc",
        })
    }

    fn key<'a>(&self, row: &'a Row) -> SortKey<'a> {
        match row.data.get(&self.property) {
            Some(Value::Number(number)) => SortKey::Number(number.as_f64().unwrap_or_default()),
            Some(Value::String(text)) if self.is_date => {
                let instant = Date::parse(text)
                    .ok()
                    .and_then(|date| date.unix_nanos().ok());
                instant.map_or(SortKey::Text(text), SortKey::Instant)
            }
            Some(Value::String(text)) => SortKey::Text(text),
            Some(Value::Bool(flag)) => SortKey::Flag(*flag),
            Some(Value::Array(items)) => SortKey::Length(items.len()),
            _ => SortKey::None,
        }
    }

    /// Rows without a value come last in both directions. Numbers of JSON are all comparable.
    fn compare(&self, one: &SortKey<'_>, other: &SortKey<'_>) -> Ordering {
        match (one, other) {
            (SortKey::None, SortKey::None) => Ordering::Equal,
            (SortKey::None, _) => Ordering::Greater,
            (_, SortKey::None) => Ordering::Less,
            _ => {
                let ordering = one.partial_cmp(other).unwrap_or(Ordering::Equal);
                match self.is_descending {
                    true => ordering.reverse(),
                    false => ordering,
                }
            }
        }
    }
}

/// Returns the rows from `offset` on in this order, `limit` at most. Rows that compare equal keep
/// the order of the list. Only the page is sorted: the others are put before or behind it.
pub(crate) fn page(
    rows: &[&Arc<Row>],
    order: &[OrderBy],
    offset: usize,
    limit: usize,
) -> Vec<Arc<Row>> {
    let limit = limit.min(rows.len().saturating_sub(offset));
    if limit == 0 {
        return Vec::new();
    }
    // The keys of all rows, those of one row behind each other.
    let keys: Vec<_> = rows
        .iter()
        .flat_map(|row| order.iter().map(|item| item.key(row)))
        .collect();
    let keys = |place: usize| &keys[place * order.len()..];
    let compare = |one: &usize, other: &usize| {
        let pairs = order.iter().zip(keys(*one).iter().zip(keys(*other)));
        let mut orderings = pairs.map(|(item, (one, other))| item.compare(one, other));
        let first = orderings.find(|ordering| ordering.is_ne());
        first.unwrap_or_else(|| one.cmp(other))
    };
    let mut places: Vec<_> = (0..rows.len()).collect();
    let mut page = &mut places[..];
    if offset > 0 {
        page.select_nth_unstable_by(offset, compare);
        page = &mut page[offset..];
    }
    if limit < page.len() {
        page.select_nth_unstable_by(limit, compare);
        page = &mut page[..limit];
    }
    page.sort_unstable_by(compare);
    page.iter().map(|place| Arc::clone(rows[*place])).collect()
}

/// Words, each of which has to occur in a row: in its id, in its values or in the label of an
/// option. No words fit each row.
#[derive(Debug)]
pub(crate) struct Search(Vec<String>);

impl Search {
    pub(crate) fn parse(text: &str) -> Self {
        Self(text.split_whitespace().map(str::to_lowercase).collect())
    }

    pub(crate) fn takes(&self, model: &DataModel, row: &Row) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let mut text = row.id.clone();
        for (id, value) in row.data.iter() {
            write(&mut text, value);
            let options = model.property(id).and_then(|one| one.options.as_ref());
            let chosen = options.into_iter().flatten().filter(|option| {
                let mut items = value.as_array().into_iter().flatten();
                *value == *option.value || items.any(|item| *item == *option.value)
            });
            chosen.for_each(|option| text.extend([" ", &option.label]));
        }
        let text = text.to_lowercase();
        self.0.iter().all(|word| text.contains(word))
    }
}

/// Writes the texts and numbers of a value, each after a space.
fn write(text: &mut String, value: &Value) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| write(text, item)),
        Value::Object(fields) => fields.values().for_each(|field| write(text, field)),
        Value::String(string) => {
            text.extend([" ", string]);
        }
        // As the page shows a checkbox.
        Value::Bool(is_set) => text.push_str(if *is_set { " yes" } else { " no" }),
        // Writing to a text does not fail.
        other => drop(write!(text, " {other}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{RowData, Rows};

    /// Against the plain way: all rows sorted by whole keys.
    #[test]
    fn a_page_is_the_part_of_the_whole_list_in_its_order() {
        let mut numbers = fastrand::Rng::with_seed(7);
        let mut rows = Rows::default();
        let texts = [
            "",
            "a",
            "Customer",
            "Customer 1",
            "Customer 12",
            "Customer 2",
            "Ärger über alles",
        ];
        let dates = [
            "0001-01-01",
            "0002-01-01",
            "2026-01-01",
            "2026-01-01T00:00:00.001Z",
            "9998-01-01",
            "9999-01-01",
        ];
        for number in 0..300 {
            let values = [
                ("n", json!(f64::from(numbers.i32(-3..3)) / 2.0)),
                ("t", json!(numbers.choice(texts))),
                ("d", json!(numbers.choice(dates))),
                ("b", json!(numbers.bool())),
                ("m", json!(vec![1; numbers.usize(..3)])),
            ];
            let data: RowData = values
                .into_iter()
                .filter(|_| numbers.u8(..5) > 0)
                .map(|(id, value)| (id.to_owned(), value))
                .collect();
            rows.push(format!("row_{number}"), data, "".into(), "".into());
        }
        let rows: Vec<_> = rows.as_slice().iter().collect();
        for _ in 0..300 {
            let count = 1 + numbers.usize(..3);
            let items = std::iter::repeat_with(|| OrderBy {
                property: numbers
                    .choice(["n", "t", "d", "b", "m"])
                    .unwrap()
                    .to_owned(),
                is_date: false,
                is_descending: numbers.bool(),
            });
            let mut order: Vec<_> = items.take(count).collect();
            for item in &mut order {
                item.is_date = item.property == "d";
            }
            let mut sorted = rows.clone();
            sorted.sort_by(|one, other| {
                let mut orderings = order
                    .iter()
                    .map(|item| item.compare(&item.key(one), &item.key(other)));
                orderings
                    .find(|found| found.is_ne())
                    .unwrap_or(Ordering::Equal)
            });
            let (offset, limit) = (numbers.usize(..320), numbers.usize(..60));
            let expected = sorted.iter().skip(offset).take(limit).map(|row| &row.id);
            let page = page(&rows, &order, offset, limit);
            assert!(
                page.iter().map(|row| &row.id).eq(expected),
                "{order:?} {offset} {limit}"
            );
        }
    }
}
