//! The properties of a data model: names for the ids that a row's values have.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hookgate::{
    Properties,
    event::{Fields, Json},
    internal::from_foreign_json,
};

use super::hash::{NameHash, name_hash};

/// A property of a data model, from its detail.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Column {
    /// The key of a row's values.
    pub id: String,
    /// The key of an event's values.
    pub name: String,
    /// Its type, such as `TEXT`.
    pub kind: String,
}

#[derive(PartialEq)]
pub(super) struct Columns {
    properties: BTreeSet<Column>,
    by_id: HashMap<String, String>,
    names: BTreeMap<NameHash, String>,
    ambiguous: BTreeSet<String>,
}

impl Columns {
    pub(super) fn new(properties: Vec<Column>) -> Self {
        let (mut names, mut ambiguous) = (BTreeSet::new(), BTreeSet::new());
        let mut by_id = HashMap::new();
        for property in &properties {
            if !names.insert(property.name.clone()) {
                ambiguous.insert(property.name.clone());
            }
            by_id.insert(property.id.clone(), property.name.clone());
        }
        by_id.retain(|_, name| !ambiguous.contains(name));
        let compared = names.difference(&ambiguous);
        Self {
            names: compared
                .map(|name| (name_hash(name), name.clone()))
                .collect(),
            properties: properties.into_iter().collect(),
            by_id,
            ambiguous,
        }
    }

    /// The names that are compared.
    pub(super) fn compared(&self) -> impl Iterator<Item = NameHash> {
        self.names.keys().copied()
    }

    pub(super) fn ambiguous_names(&self) -> Vec<String> {
        self.ambiguous.iter().cloned().collect()
    }

    /// A row's values by name. A property that the model does not have any more is left out, and
    /// one whose name another has.
    pub(super) fn by_name(&self, data: &Fields) -> Properties {
        let named = data
            .iter()
            .filter_map(|(id, json)| Some((self.by_id.get(id)?.as_str(), json)));
        let named: BTreeMap<&str, &Json> = named.collect();
        // Texts and JSON values can always be written and read again.
        let text = serde_json::to_string(&named).unwrap_or_default();
        from_foreign_json(text.as_bytes()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // fault K7: of two properties with one name, a finding has the value of any
    #[test]
    fn a_value_whose_name_another_property_has_is_left_out() {
        let column = |id: &str, name: &str| Column {
            id: id.to_owned(),
            name: name.to_owned(),
            kind: "TEXT".to_owned(),
        };
        let columns = [("p1", "Note"), ("p2", "Note"), ("p3", "Size")];
        let columns = Columns::new(columns.map(|(id, name)| column(id, name)).into());
        let text = r#"{"p1": "a", "p2": "b", "p3": "c", "deleted": "d"}"#;
        let row: Fields = serde_json::from_str(text).unwrap();
        let named = columns.by_name(&row);
        let names: Vec<_> = named.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["Size"]);
    }
}
