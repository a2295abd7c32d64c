//! Pages, blocks, workflows and stats: the specification shows no payload, so they are kept as the JSON that came.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Objects by id, in the order of their creation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Things(Vec<Map<String, Value>>);

impl Things {
    pub(crate) fn find(&self, id: &str) -> Option<&Map<String, Value>> {
        self.0.iter().find(|thing| has_id(thing, id))
    }

    /// Adds an object under this id.
    pub(crate) fn add(&mut self, id: String, mut thing: Map<String, Value>) -> &Map<String, Value> {
        thing.insert("id".to_owned(), id.into());
        let at = self.0.len();
        self.0.push(thing);
        &self.0[at]
    }

    /// Sets the fields that are given; the others keep their values, and the id too.
    pub(crate) fn change(
        &mut self,
        id: &str,
        fields: Map<String, Value>,
    ) -> Option<&Map<String, Value>> {
        let thing = self.0.iter_mut().find(|thing| has_id(thing, id))?;
        let fields = fields.into_iter().filter(|(name, _)| name != "id");
        thing.extend(fields);
        Some(thing)
    }

    pub(crate) fn remove(&mut self, id: &str) -> Option<Map<String, Value>> {
        let at = self.0.iter().position(|thing| has_id(thing, id))?;
        Some(self.0.remove(at))
    }

    /// Returns the objects in whose JSON the text occurs.
    pub(crate) fn search(&self, text: &str) -> Vec<&Map<String, Value>> {
        let text = text.to_lowercase();
        let things = self.0.iter();
        things
            .filter(|thing| {
                let mut values = thing.values();
                text.is_empty()
                    || values.any(|value| value.to_string().to_lowercase().contains(&text))
            })
            .collect()
    }

    pub(crate) fn as_slice(&self) -> &[Map<String, Value>] {
        &self.0
    }
}

fn has_id(thing: &Map<String, Value>, id: &str) -> bool {
    thing.get("id").and_then(Value::as_str) == Some(id)
}
