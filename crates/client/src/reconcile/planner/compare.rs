//! A row that was read, compared with its state in the mirror.

use hookgate::Properties;

use super::super::difference::{Difference, Was};
use super::super::finding::{
    Finding, Found, Reconciled, Unresolved, UnresolvedReason, doubt, finding_id,
};
use super::super::mirror::Mirrored;
use super::super::row_state::{Life, RowState, micros};
use super::super::steps::PassRow;
use super::Planner;

impl Planner {
    pub(super) fn compare(&mut self, row: &PassRow, known: Option<&Mirrored>) -> Option<Finding> {
        let columns = self.columns.as_ref()?;
        let properties = columns.by_name(&row.data);
        let at = micros(&row.updated_at);
        let mut state = RowState::read(Life::Live, at, &properties, true);
        state.read_at = at;
        let revision = known.map_or(0, |known| known.revision);
        let living = known.filter(|known| known.state.life == Life::Live);
        let was = match living {
            None => match known {
                Some(known) if known.state.life == Life::Deleted => Was::Deleted(revision),
                _ => Was::Unknown,
            },
            Some(known) => {
                let other: Vec<_> = columns
                    .compared()
                    .map(|name| (name, known.state.hash.value(name)))
                    .filter(|(name, value)| state.hash.value(*name) != *value)
                    .collect();
                if other.is_empty() {
                    self.differing.remove(&row.id);
                    // Two pages may show the row.
                    let is_wanted = known.state.is_doubtful()
                        && (!self.settings.is_filling || self.settings.fills_table)
                        && self.doubted.insert(row.id.clone());
                    let before = known.state.properties();
                    return is_wanted
                        .then(|| self.found(row, properties, before, Some(known), state));
                }
                let tolerance = self.settings.clock_tolerance;
                match (at, known.state.updated_at) {
                    (Some(row), Some(mirror)) if row.saturating_add(tolerance) < mirror => {
                        Was::Newer(revision)
                    }
                    _ => Was::Other(other),
                }
            }
        };
        let before = || living.and_then(|known| known.state.properties());
        if self.settings.is_filling {
            // Events were handled since the page was read.
            let is_older = matches!(was, Was::Newer(_) | Was::Deleted(_));
            if let Some(known) = known.filter(|_| !self.settings.fills_table) {
                // The row is not handled, so its doubt stays.
                state.hash.set_doubt(known.state.hash.doubt());
            }
            return (!is_older).then(|| self.found(row, properties, before(), known, state));
        }
        let number = self.pass.number;
        let earlier = self.differing.get(&row.id);
        // Pages overlap.
        let is_counted = earlier.is_some_and(|earlier| earlier.pass == number);
        if is_counted || self.past_guard.contains(&row.id) {
            return None;
        }
        let is_confirmed = earlier.is_some_and(|earlier| earlier.was.is_still(&was));
        let is_older = matches!(was, Was::Newer(_));
        let is_update = matches!(was, Was::Other(_));
        self.pass.differing += 1;
        self.updates += u64::from(is_update);
        // Of more than that, none is a finding in the next pass either.
        if !is_update || self.updates <= self.most(self.mirrored_rows) {
            self.differing
                .insert(row.id.clone(), Difference { pass: number, was });
        } else {
            self.past_guard.insert(row.id.clone());
        }
        let doubt = match () {
            () if is_update && self.had_too_many_updates => {
                self.last_loss = number;
                UnresolvedReason::ManyUpdates
            }
            () if !is_confirmed => return None,
            () if is_older => UnresolvedReason::StaleRead,
            () => {
                self.last_loss = number;
                return Some(self.found(row, properties, before(), known, state));
            }
        };
        let is_first = self.doubted.insert(row.id.clone());
        is_first.then(|| Finding {
            reconciled: Reconciled::Unresolved(Unresolved {
                datamodel_id: self.model.clone(),
                row_id: row.id.clone(),
                reason: doubt,
                // A row that is not in the mirror is not counted as an update.
                difference: "updated",
                updated_at: Some(row.updated_at.clone()),
                properties: Some(properties),
                before: before(),
            }),
            revision,
            state: None,
        })
    }

    fn found(
        &self,
        row: &PassRow,
        properties: Properties,
        before: Option<Properties>,
        known: Option<&Mirrored>,
        state: RowState,
    ) -> Finding {
        let is_update = known.is_some_and(|known| known.state.life == Life::Live);
        // A row that is created again, after it was deleted, is another finding than the first.
        let died_at = known
            .filter(|known| known.state.life == Life::Deleted)
            .and_then(|known| known.state.updated_at);
        let (kind, version) = if is_update {
            let hash: String = state
                .hash
                .to_bytes()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            ("updated", format!("{} {hash}", row.updated_at))
        } else {
            (
                "created",
                died_at.map_or_else(String::new, |at| at.to_string()),
            )
        };
        let version = version + &doubt(known);
        let found = Found {
            id: finding_id(&self.model, kind, &row.id, &version),
            datamodel_id: self.model.clone(),
            row_id: row.id.clone(),
            updated_at: row.updated_at.clone(),
            properties,
            before,
        };
        Finding {
            reconciled: if is_update {
                Reconciled::Updated(found)
            } else {
                Reconciled::Created(found)
            },
            revision: known.map_or(0, |known| known.revision),
            state: Some(state),
        }
    }
}
