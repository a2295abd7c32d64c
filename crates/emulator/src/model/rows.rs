//! The rows of one data model, in the order of a list.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;

use super::{RowData, weight};

/// About what a row takes beside its texts and values.
const ROW: usize = 200;

/// A row, as a list shows it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) data: RowData,
    pub(crate) created_at: Box<str>,
    pub(crate) updated_at: Box<str>,
    /// Its place in the list: places only grow.
    #[serde(skip)]
    place: u64,
}

impl Row {
    fn weight(&self) -> usize {
        // The id is in the list and in the index of places.
        ROW + 2 * self.id.len() + weight::of_pairs(self.data.iter())
    }
}

/// A page of rows.
#[derive(Clone, Debug)]
pub(crate) struct RowList(pub(crate) Vec<Arc<Row>>);

impl Serialize for RowList {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|row| &**row))
    }
}

/// Rows by place and by id. A clone shares the rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    /// Ascending by place.
    list: Vec<Arc<Row>>,
    places: HashMap<String, u64>,
    next: u64,
    bytes: usize,
}

impl Rows {
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns about how many bytes the rows take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
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
        self.bytes += row.weight();
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
        self.bytes = self.bytes.saturating_sub(old.weight()) + row.weight();
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
        let row = self.list.remove(position);
        self.bytes = self.bytes.saturating_sub(row.weight());
        Some(row)
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
