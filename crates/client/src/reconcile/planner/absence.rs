//! Rows that were absent from the passes, and their deletion.

use std::collections::HashMap;

use hookgate::event::RowId;

use super::super::difference::{Difference, Was};
use super::super::finding::{
    Finding, Gone, Reconciled, Unresolved, UnresolvedReason, doubt, finding_id,
};
use super::super::mirror::Mirrored;
use super::super::row_state::{Life, RowState};
use super::{ABSENCES, CHUNK, Planner, State};

impl Planner {
    /// The row was put in doubt for its finding: its new revision is not a sign of an event.
    pub(in super::super) fn marked(&mut self, finding: &Finding) {
        let row = finding.reconciled.row_id();
        if let Some(absence) = self.absent.get_mut(row) {
            absence.row.revision = finding.revision;
        }
        if let Some(Difference {
            was: Was::Deleted(revision),
            ..
        }) = self.differing.get_mut(row)
        {
            *revision = finding.revision;
        }
    }

    /// Takes the present states of the rows of `Step::Absent`. Returns the deletions.
    pub fn absent(&mut self, known: &HashMap<RowId, Mirrored>) -> Vec<Finding> {
        let State::Absent(rows) = &mut self.state else {
            return Vec::new();
        };
        let rest = rows.split_off(rows.len().min(CHUNK));
        let asked = std::mem::replace(rows, rest);
        if rows.is_empty() {
            self.state = State::Done;
        }
        let oldest = self.pass.number.saturating_sub(ABSENCES - 1);
        let may_have_moved = self.last_move >= oldest && self.last_loss >= oldest;
        let mut findings = Vec::new();
        for row in asked {
            let Some(absence) = self.absent.get(&row) else {
                continue;
            };
            let Some(known) = known
                .get(&row)
                .filter(|known| known.revision == absence.row.revision)
            else {
                // An event for it was handled.
                self.absent.remove(&row);
                continue;
            };
            // Its deletion was handled, and needs no more proof.
            let is_deleted = known.state.life == Life::Deleted;
            let doubt = match () {
                () if is_deleted => None,
                () if self.has_too_many_deletions => Some(UnresolvedReason::ManyDeletions),
                () if may_have_moved => Some(UnresolvedReason::MovingList),
                () => None,
            };
            findings.push(match doubt {
                Some(doubt) => self.absent_in_doubt(row, known, doubt),
                None => self.gone(row, known),
            });
        }
        self.count(&findings);
        findings
    }

    fn absent_in_doubt(&self, row: RowId, known: &Mirrored, reason: UnresolvedReason) -> Finding {
        Finding {
            reconciled: Reconciled::Unresolved(Unresolved {
                datamodel_id: self.model.clone(),
                row_id: row,
                reason,
                difference: "deleted",
                updated_at: None,
                properties: None,
                before: known.state.properties(),
            }),
            revision: known.revision,
            state: None,
        }
    }

    fn gone(&self, row: RowId, known: &Mirrored) -> Finding {
        let version = format!("{:?}", known.state.updated_at) + &doubt(Some(known));
        let mut state = RowState::blank(Life::Deleted);
        // Its own time is not known. Until then an event is one of the row's life: its time may be
        // a little later than the row's.
        let tolerance = self.settings.clock_tolerance;
        state.updated_at = known
            .state
            .updated_at
            .map(|at| at.saturating_add(tolerance));
        state.read_at = Some(state.updated_at.unwrap_or(i64::MIN));
        let gone = Gone {
            id: finding_id(&self.model, "deleted", &row, &version),
            datamodel_id: self.model.clone(),
            row_id: row,
            before: known.state.properties(),
        };
        Finding {
            reconciled: Reconciled::Deleted(gone),
            revision: known.revision,
            state: Some(state),
        }
    }
}
