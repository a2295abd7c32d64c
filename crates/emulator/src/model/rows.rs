//! The rows of one data model, in the order of a list, and the values of a row.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Values by property id, ascending by it.
///
/// A list of 100,000 rows in the order of a property reads a value of each: one short vector a row
/// is read in a third of the time of a `BTreeMap`, whose smallest node has place for eleven values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RowData(Vec<(String, Value)>);

impl RowData {
    fn find(&self, id: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.as_str().cmp(id))
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Value> {
        let at = self.find(id).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    /// Returns its length as JSON.
    pub(crate) fn length(&self) -> usize {
        serde_json::to_vec(self).map_or(0, |json| json.len())
    }

    /// Sets a value; `null` clears it.
    pub(crate) fn set(&mut self, id: &str, value: &Value) {
        match (self.find(id), value) {
            (Ok(at), Value::Null) => drop(self.0.remove(at)),
            (Ok(at), value) => self.0[at].1 = value.clone(),
            (Err(_), Value::Null) => {}
            (Err(at), value) => {
                self.0.reserve_exact(1);
                self.0.insert(at, (id.to_owned(), value.clone()));
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter().map(|(id, value)| (id, value))
    }

    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(&str, &Value) -> bool) {
        self.0.retain(|(id, value)| keeps(id, value));
    }
}

impl FromIterator<(String, Value)> for RowData {
    /// The last value of an id counts.
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(pairs: I) -> Self {
        let values: BTreeMap<_, _> = pairs.into_iter().collect();
        Self(values.into_iter().collect())
    }
}

impl Serialize for RowData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for RowData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let values = BTreeMap::<String, Value>::deserialize(deserializer)?;
        Ok(values.into_iter().collect())
    }
}

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_kept_once_in_the_order_of_their_ids() {
        let pairs = [("b", 1), ("a", 2), ("b", 3), ("c", 4)];
        let mut data: RowData = pairs
            .iter()
            .map(|(id, value)| ((*id).to_owned(), json!(value)))
            .collect();
        assert_eq!(
            serde_json::to_string(&data).unwrap(),
            r#"{"a":2,"b":3,"c":4}"#
        );
        data.set("b", &json!(5));
        data.set("aa", &json!("new"));
        data.set("c", &Value::Null);
        data.set("none", &Value::Null);
        let text = r#"{"a":2,"aa":"new","b":5}"#;
        assert_eq!(serde_json::to_string(&data).unwrap(), text);
        assert_eq!((data.get("b"), data.get("c")), (Some(&json!(5)), None));
        let again: RowData = serde_json::from_str(text).unwrap();
        assert_eq!(again, data);
        data.retain(|id, _| id != "a");
        assert_eq!(json!(data), json!({ "aa": "new", "b": 5 }));
        assert!(serde_json::from_str::<RowData>("[]").is_err());
    }
}
