//! `orderBy`: one page of the rows in the order of their values.

use std::cmp::Ordering;
use std::sync::Arc;

use hookgate::Date;
use serde_json::Value;

use super::{Property, PropertyType, Row};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Asc,
    Desc,
}

/// One item of `orderBy`.
#[derive(Clone, Debug)]
pub(crate) struct OrderBy {
    pub(crate) property: String,
    is_date: bool,
    direction: Direction,
}

/// A value in the form in which it is compared.
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
        let direction = match direction {
            "asc" => Direction::Asc,
            "desc" => Direction::Desc,
            other => return Err(format!("orderBy has the direction {other:?}, {expected}")),
        };
        let property = properties.iter().find(|property| property.id == id);
        let property = property.ok_or_else(|| {
            format!("orderBy names property `{id}`, which the data model has not")
        })?;
        Ok(Self {
            property: property.id.clone(),
            is_date: property.r#type == PropertyType::Date,
            direction,
        })
    }

    fn key<'a>(&self, row: &'a Row) -> SortKey<'a> {
        match row.data.get(&self.property) {
            Some(Value::Number(number)) => SortKey::Number(number.as_f64().unwrap_or_default()),
            Some(Value::String(text)) if self.is_date => match Date::parse(text) {
                Ok(date) => SortKey::Instant(date.unix_nanos()),
                Err(_) => SortKey::Text(text),
            },
            Some(Value::String(text)) => SortKey::Text(text),
            Some(Value::Bool(flag)) => SortKey::Flag(*flag),
            Some(Value::Array(items)) => SortKey::Length(items.len()),
            _ => SortKey::None,
        }
    }

    /// Rows without a value come last in both directions.
    fn compare(&self, one: &SortKey<'_>, other: &SortKey<'_>) -> Ordering {
        let ordering = match (one, other) {
            (SortKey::None, SortKey::None) => return Ordering::Equal,
            (SortKey::None, _) => return Ordering::Greater,
            (_, SortKey::None) => return Ordering::Less,
            (SortKey::Number(one), SortKey::Number(other)) => one.total_cmp(other),
            (SortKey::Instant(one), SortKey::Instant(other)) => one.cmp(other),
            (SortKey::Text(one), SortKey::Text(other)) => one.cmp(other),
            (SortKey::Flag(one), SortKey::Flag(other)) => one.cmp(other),
            (SortKey::Length(one), SortKey::Length(other)) => one.cmp(other),
            _ => Ordering::Equal, // a property has one type
        };
        match self.direction {
            Direction::Asc => ordering,
            Direction::Desc => ordering.reverse(),
        }
    }
}

/// Returns the rows from `offset` on in this order, `limit` at most. Rows that compare equal keep the order of the list. Only the
/// page is sorted: the others are put before or behind it.
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
    let keys: Vec<SortKey<'_>> = rows
        .iter()
        .flat_map(|row| order.iter().map(|item| item.key(row)))
        .collect();
    let keys_of = |row: usize| &keys[row * order.len()..(row + 1) * order.len()];
    let compare = |one: &usize, other: &usize| {
        let pairs = keys_of(*one).iter().zip(keys_of(*other));
        let mut orderings = order
            .iter()
            .zip(pairs)
            .map(|(item, (one, other))| item.compare(one, other));
        let first = orderings.find(|ordering| ordering.is_ne());
        first.unwrap_or_else(|| one.cmp(other))
    };
    let mut places: Vec<usize> = (0..rows.len()).collect();
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
