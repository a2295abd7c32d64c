//! What the specification leaves open, as named switches. One table makes the control API, the
//! options and the docs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

/// A row of the table: the first value is the default.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) switch: Switch,
    pub(crate) name: &'static str,
    pub(crate) values: &'static [&'static str],
    pub(crate) about: &'static str,
}

macro_rules! switches {
    ($($switch:ident $name:literal $values:expr, $about:literal;)*) => {
        /// A statement that the specification does not make.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Switch {
            $($switch,)*
        }

        /// Every switch, by name.
        pub(crate) const SWITCHES: &[About] = &[
            $(About { switch: Switch::$switch, name: $name, values: &$values, about: $about },)*
        ];
    };
}

switches! {
    ApiEmits "apiEmits" ["on", "off"], "whether changes made through the API emit events, as changes made on the page do";
    Attempts "attempts" ["5", "6"], "attempts before an event is discarded: the specification says five, and lists the waits of six";
    Conflict "conflict" ["takenTitle", "relatedRow", "never"], "the use of 409: a data model's title is taken, another row names the row to delete, or no use";
    DataModelScope "dataModelScope" ["write", "admin"], "the scope to create, change and delete data models: as in the overview, or as in the scope list";
    DeliveryOrder "deliveryOrder" ["emitted", "oneByOne", "shuffled"], "order of deliveries: side by side and begun in the order of the events, one after the other, or shuffled by a seed";
    LimitAbove500 "limitAbove500" ["clamp", "refuse"], "a limit above 500 in a list of rows: taken as 500, or refused with 400";
    ListOrder "listOrder" ["created", "newest", "updatedLast"], "order of rows without orderBy: oldest first, newest first, or oldest first with updated rows moved to the end";
    RateCountedBy "rateCountedBy" ["key", "workspace"], "whether the rate is counted for each key, or for the whole workspace";
    RateLimit "rateLimit" ["on", "off"], "whether requests beyond the rate are answered 429; the headers are sent in either case";
    RetrySignatures "retrySignatures" ["fresh", "first"], "whether a retry is signed at its own time, or carries the timestamp and signature of the first attempt";
    TriggerRefusal "triggerRefusal" ["401", "403"], "the status for an inbound trigger call that fails its authentication";
}

/// The positions of all switches. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Switches(Arc<Mutex<BTreeMap<Switch, &'static str>>>);

impl Switches {
    pub(crate) fn value(&self, switch: Switch) -> &'static str {
        let set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        set.get(&switch).copied().unwrap_or_else(|| default(switch))
    }

    pub(crate) fn is(&self, switch: Switch, value: &str) -> bool {
        self.value(switch) == value
    }

    /// Sets one switch by name.
    ///
    /// # Errors
    /// A sentence that lists the names or values that exist.
    pub(crate) fn set(&self, name: &str, value: &Value) -> Result<(), String> {
        let (switch, value) = parse(name, value)?;
        let mut set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        set.insert(switch, value);
        Ok(())
    }

    /// Sets all of these, or none where one is wrong. Those that are not named keep their
    /// positions.
    pub(crate) fn set_all<'a>(
        &self,
        values: impl IntoIterator<Item = (&'a String, &'a Value)>,
    ) -> Result<(), String> {
        let parsed = values
            .into_iter()
            .map(|(name, value)| parse(name, value))
            .collect::<Result<Vec<_>, _>>()?;
        let mut set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        set.extend(parsed);
        Ok(())
    }

    /// Sets all switches to their defaults.
    pub(crate) fn clear(&self) {
        let mut set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        set.clear();
    }

    /// Returns all switches as the control API shows them.
    pub(crate) fn shown(&self) -> Value {
        let shown = SWITCHES.iter().map(|row| {
            let value = self.value(row.switch);
            let shown = json!({ "value": value, "values": row.values, "about": row.about });
            (row.name.to_owned(), shown)
        });
        Value::Object(shown.collect())
    }

    /// Returns the name and value of each switch, as in a seed.
    pub(crate) fn values(&self) -> BTreeMap<String, Value> {
        let rows = SWITCHES.iter();
        rows.map(|row| (row.name.to_owned(), self.value(row.switch).into()))
            .collect()
    }
}

fn default(switch: Switch) -> &'static str {
    let row = SWITCHES.iter().find(|row| row.switch == switch);
    row.and_then(|row| row.values.first())
        .copied()
        .unwrap_or_default()
}

/// Reads a name and a value. A number counts as its text, and `true` and `false` as `on` and `off`.
pub(crate) fn parse(name: &str, value: &Value) -> Result<(Switch, &'static str), String> {
    let Some(row) = SWITCHES.iter().find(|row| row.name == name) else {
        let names: Vec<_> = SWITCHES.iter().map(|row| row.name).collect();
        return Err(format!(
            "unknown switch `{name}`, expected one of {}",
            names.join(", ")
        ));
    };
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "on".to_owned(),
        Value::Bool(false) => "off".to_owned(),
        other => other.to_string(),
    };
    let found = row.values.iter().find(|value| **value == text);
    let value = found.ok_or_else(|| {
        let values = row.values.join(", ");
        format!("switch `{name}` can't be `{text}`, expected one of {values}")
    })?;
    Ok((row.switch, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_each_switch_once_in_order() {
        let names: Vec<_> = SWITCHES.iter().map(|row| row.name).collect();
        assert!(names.is_sorted());
        for (at, row) in SWITCHES.iter().enumerate() {
            assert!(
                SWITCHES[..at]
                    .iter()
                    .all(|other| other.switch != row.switch)
            );
            assert!(
                row.values.len() >= 2 && !row.about.is_empty(),
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn wrong_names_and_values_are_told_with_what_exists() {
        let switches = Switches::default();
        let told = switches.set("listOrdre", &json!("newest")).unwrap_err();
        assert!(told.contains("listOrder"), "{told}");
        let told = switches.set("rateLimit", &json!("never")).unwrap_err();
        assert!(told.contains("on, off"), "{told}");
        switches.set("rateLimit", &json!(false)).unwrap();
        switches.set("attempts", &json!(6)).unwrap();
        assert!(switches.is(Switch::RateLimit, "off") && switches.is(Switch::Attempts, "6"));
        switches.clear();
        assert!(switches.is(Switch::RateLimit, "on"));
    }
}
