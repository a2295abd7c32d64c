//! The rows of one data model, in the order of a list.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use super::RowData;

/// A row, as a list shows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) data: RowData,
    #[serde(default)]
    pub(crate) created_at: Box<str>,
    #[serde(default)]
    pub(crate) updated_at: Box<str>,
    /// Its place in the list: places only grow.
    #[serde(skip)]
    place: u64,
}

/// A page of rows.
#[derive(Clone, Debug)]
pub(crate) struct RowList(pub(crate) Vec<Arc<Row>>);

impl Serialize for RowList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|row| &**row))
    }
}

/// Rows by place and by id. A clone shares the rows.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "Vec<Row>")]
pub(crate) struct Rows {
    /// Ascending by place.
    list: Vec<Arc<Row>>,
    places: HashMap<String, u64>,
    next: u64,
}

impl TryFrom<Vec<Row>> for Rows {
    type Error = String;

    fn try_from(list: Vec<Row>) -> Result<Self, String> {
        let mut rows = Self::default();
        for row in list {
            let id = row.id.clone();
            let added = rows.push(row.id, row.data, row.created_at, row.updated_at);
            added.ok_or_else(|| format!("the row {id:?} occurs twice, expected each id once"))?;
        }
        Ok(rows)
    }
}

impl Serialize for Rows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.list.iter().map(|row| &**row))
    }
}

impl Rows {
    /// Sets the times that a seed has left out. There, `null` stands for no value.
    pub(super) fn fill(&mut self, created_at: &str) {
        for row in &mut self.list {
            let row = Arc::make_mut(row);
            row.data.retain(|_, value| !value.is_null());
            if row.created_at.is_empty() {
                row.created_at = created_at.into();
            }
            if row.updated_at.is_empty() {
                row.updated_at = row.created_at.clone();
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn find(&self, id: &str) -> Option<&Arc<Row>> {
        self.list.get(self.position(id)?)
    }

    /// Adds a row at the end; `None` if its id is taken.
    pub(crate) fn push(
        &mut self,
        id: String,
        data: RowData,
        created_at: Box<str>,
        updated_at: Box<str>,
    ) -> Option<Arc<Row>> {
        if self.places.contains_key(&id) {
            return None;
        }
        let row = Arc::new(Row {
            id,
            data,
            created_at,
            updated_at,
            place: self.next,
        });
        self.places.insert(row.id.clone(), self.next);
        self.next += 1;
        self.list.push(Arc::clone(&row));
        Some(row)
    }

    /// Replaces the data of a row, and moves it to the end where `moves`.
    pub(crate) fn replace(
        &mut self,
        id: &str,
        data: RowData,
        updated_at: Box<str>,
        moves: bool,
    ) -> Option<Arc<Row>> {
        let position = self.position(id)?;
        let old = &self.list[position];
        let row = Arc::new(Row {
            id: old.id.clone(),
            data,
            created_at: old.created_at.clone(),
            updated_at,
            place: if moves { self.next } else { old.place },
        });
        if moves {
            self.list.remove(position);
            self.places.insert(row.id.clone(), self.next);
            self.next += 1;
            self.list.push(Arc::clone(&row));
        } else {
            self.list[position] = Arc::clone(&row);
        }
        Some(row)
    }

    pub(crate) fn remove(&mut self, id: &str) -> Option<Arc<Row>> {
        let position = self.position(id)?;
        self.places.remove(id);
        Some(self.list.remove(position))
    }

    /// Returns the rows in the order of their places.
    pub(crate) fn as_slice(&self) -> &[Arc<Row>] {
        &self.list
    }

    fn position(&self, id: &str) -> Option<usize> {
        let place = self.places.get(id)?;
        self.list.binary_search_by_key(place, |row| row.place).ok()
    }
}
