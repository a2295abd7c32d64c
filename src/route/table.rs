//! The choice of the arm for an event: by type and data model only.
//!
//! It needs no request, no handler and no waiting, only an event's type, and the data model if the table asks for it.

use std::collections::BTreeMap;

use crate::event::{DataModelId, EventType};

/// Arms by event type and data model. The maps are ordered, so that output made from them is the same each time.
#[derive(Clone, Debug)]
pub(super) struct ArmTable<A> {
    /// The arms of each type, by data model. `None` is the arm for any model.
    pub(super) types: BTreeMap<EventType, BTreeMap<Option<DataModelId>, A>>,
    pub(super) otherwise: Option<A>,
}

impl<A> ArmTable<A> {
    pub(super) fn new() -> Self {
        Self {
            types: BTreeMap::new(),
            otherwise: None,
        }
    }

    /// Adds an arm. Returns false if there was one for these events already.
    pub(super) fn insert(
        &mut self,
        event_type: EventType,
        model: Option<DataModelId>,
        arm: A,
    ) -> bool {
        let arms = self.types.entry(event_type).or_default();
        arms.insert(model, arm).is_none()
    }

    /// Returns the arm for an event, the most specific one: type and model, then type, then `otherwise`. `None` if there is
    /// none.
    ///
    /// The model is asked for only if an arm for this type names one. If the model is not readable, no arm is chosen, because
    /// the choice depends on the model.
    pub(super) fn arm<M: AsRef<str>, E>(
        &self,
        event_type: &str,
        model: impl FnOnce() -> Result<M, E>,
    ) -> Result<Option<&A>, E> {
        let Some(arms) = self.types.get(event_type) else {
            return Ok(self.otherwise.as_ref());
        };
        let of_model = if arms.keys().any(Option::is_some) {
            arms.get(&Some(model()?.as_ref().into()))
        } else {
            None
        };
        let of_any_model = || arms.get(&None);
        Ok(of_model.or_else(of_any_model).or(self.otherwise.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(arms: &[(&'static str, Option<&'static str>)], otherwise: bool) -> ArmTable<String> {
        let mut table = ArmTable::new();
        for (name, model) in arms {
            let arm = format!("{name} {}", model.unwrap_or("any"));
            let name = EventType::parse(name).unwrap();
            assert!(table.insert(name, model.map(DataModelId::from), arm));
        }
        if otherwise {
            table.otherwise = Some("otherwise".into());
        }
        table
    }

    #[test]
    fn the_model_is_asked_for_only_where_it_decides() {
        let table = table(
            &[
                ("row.created", None),
                ("row.updated", Some("dm_1")),
                ("row.updated", None),
            ],
            true,
        );
        let untold = || Err::<&str, _>("untold");
        assert_eq!(
            table.arm("row.created", untold),
            Ok(Some(&"row.created any".into()))
        );
        assert_eq!(
            table.arm("row.deleted", untold),
            Ok(Some(&"otherwise".into()))
        );
        // If the model is not readable, neither the arm for any model nor `otherwise` takes its place.
        assert_eq!(table.arm("row.updated", untold), Err("untold"));
    }
}
