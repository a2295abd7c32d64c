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

/// There is an arm for these events already.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ArmTwice;

impl<A> ArmTable<A> {
    pub(super) fn new() -> Self {
        Self {
            types: BTreeMap::new(),
            otherwise: None,
        }
    }

    pub(super) fn insert(
        &mut self,
        event_type: EventType,
        model: Option<DataModelId>,
        arm: A,
    ) -> Result<(), ArmTwice> {
        let previous = self.types.entry(event_type).or_default().insert(model, arm);
        previous.map_or(Ok(()), |_| Err(ArmTwice))
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
            table
                .insert(name, model.map(DataModelId::from), arm)
                .unwrap();
        }
        if otherwise {
            table.otherwise = Some("otherwise".into());
        }
        table
    }

    #[test]
    fn the_most_specific_arm_wins() {
        let arms = [
            ("row.created", Some("dm_1")),
            ("row.created", Some("dm_2")),
            ("row.created", None),
            ("row.updated", Some("dm_1")),
            ("page.created", None),
            ("not.invented.yet", None),
        ];
        let (with, without) = (table(&arms, true), table(&arms, false));
        for (name, model, expected) in [
            ("row.created", "dm_1", Some("row.created dm_1")),
            ("row.created", "dm_2", Some("row.created dm_2")),
            ("row.created", "dm_3", Some("row.created any")),
            ("row.created", "DM_1", Some("row.created any")),
            ("row.created", "", Some("row.created any")),
            ("row.updated", "dm_1", Some("row.updated dm_1")),
            ("row.updated", "dm_2", None),
            ("row.deleted", "dm_1", None),
            ("page.created", "dm_1", Some("page.created any")),
            ("not.invented.yet", "dm_1", Some("not.invented.yet any")),
            ("row.create", "dm_1", None),
            ("ROW.CREATED", "dm_1", None),
        ] {
            let told = || Ok::<_, ()>(model);
            let arm = without.arm(name, told).unwrap().map(String::as_str);
            assert_eq!(arm, expected, "{name} {model}");
            let arm = with.arm(name, told).unwrap().map(String::as_str);
            assert_eq!(arm, expected.or(Some("otherwise")), "{name} {model}");
        }
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

    #[test]
    fn a_place_is_taken_once() {
        let mut table = table(
            &[("row.created", None), ("row.created", Some("dm_1"))],
            true,
        );
        let name = || EventType::ROW_CREATED;
        assert_eq!(table.insert(name(), None, String::new()), Err(ArmTwice));
        assert_eq!(
            table.insert(name(), Some("dm_1".into()), String::new()),
            Err(ArmTwice)
        );
        assert_eq!(
            table.insert(name(), Some("dm_2".into()), String::new()),
            Ok(())
        );
    }
}
