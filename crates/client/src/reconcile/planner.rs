//! The planner: which request comes next, and which rows differ. It waits for nothing and reads no
//! clock.

mod absence;
mod compare;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

use hookgate::event::{DataModelId, RowId};

use super::columns::{Column, Columns};
use super::difference::{Difference, Order};
use super::finding::{Finding, Reconciled};
use super::mirror::Mirrored;
use super::row_state::{Life, micros};
use super::scan::{Next, Scan};
use super::steps::{Pass, PassPage, Settings, Step};

/// The number of times that a pass begins again because the data model was changed.
const RESTARTS: u32 = 3;
/// The number of passes in which a deleted row must be absent.
const ABSENCES: u64 = 3;
/// The number of states that are asked of the mirror at once.
const CHUNK: usize = 500;

/// Plans the passes over one data model.
///
/// In the first pass that sees a difference, the event of the change may be on its way. If the
/// mirror still has the same state in the second pass, the row is a finding. An absent row is a
/// finding in the third pass.
///
/// The planner makes no request itself: [`step`](Self::step) says which request the caller makes
/// next. [`Reconcile`](super::Reconcile) makes them with a client and a mirror.
pub struct Planner {
    model: DataModelId,
    settings: Settings,
    columns: Option<Columns>,
    /// Rows that differed when they were last seen.
    differing: HashMap<RowId, Difference>,
    /// Rows that were absent in the last complete passes.
    absent: HashMap<RowId, Absence>,
    /// Updated rows that differed in this pass, and whether they were too many in the last one.
    updates: u64,
    had_too_many_updates: bool,
    /// The last pass that found a lost creation or update, and the last one in which the list was
    /// not in the order of creation.
    last_loss: u64,
    last_move: u64,
    state: State,
    pass: Pass,
    scan: Scan,
    is_resumed: bool,
    restarts: u32,
    /// The mirror's rows that this pass has not seen yet, as they were at its beginning.
    expected: HashMap<RowId, Expected>,
    mirrored_rows: u64,
    /// With those that are deleted.
    states: u64,
    order: Order,
    /// Updated rows of this pass that are more than may be findings: pages overlap.
    past_guard: HashSet<RowId>,
    /// Rows that this pass has reported as unresolved: pages overlap.
    doubted: HashSet<RowId>,
    /// Whether more rows are absent than may be found as deleted.
    has_too_many_deletions: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    ModelBefore,
    List(Option<RowId>),
    Page,
    ModelAfter,
    Absent(Vec<RowId>),
    Done,
}

#[derive(Clone, Copy, PartialEq)]
struct Expected {
    revision: u64,
    /// Its deletion was handled, and is in doubt.
    is_deleted: bool,
}

struct Absence {
    row: Expected,
    passes: u64,
}

impl Planner {
    /// Plans passes over this data model.
    #[must_use]
    pub fn new(model: DataModelId, settings: Settings) -> Self {
        Self {
            scan: Scan::new(settings.page_rows, settings.overlap, 0),
            model,
            settings,
            columns: None,
            differing: HashMap::new(),
            absent: HashMap::new(),
            updates: 0,
            had_too_many_updates: false,
            last_loss: 0,
            last_move: 0,
            state: State::Done,
            pass: Pass::default(),
            is_resumed: false,
            restarts: 0,
            expected: HashMap::new(),
            mirrored_rows: 0,
            states: 0,
            order: Order::new(),
            past_guard: HashSet::new(),
            doubted: HashSet::new(),
            has_too_many_deletions: false,
        }
        .starting_at(0)
    }

    /// Plans a first pass that begins at this offset, at which an earlier process was stopped. That
    /// pass counts for no deletion.
    #[must_use]
    pub fn resuming(mut self, offset: u64) -> Self {
        self = self.starting_at(offset);
        self.pass.number = 1;
        self
    }

    /// The data model.
    #[must_use]
    pub fn model_id(&self) -> &DataModelId {
        &self.model
    }

    /// The progress of the present pass.
    #[must_use]
    pub fn pass(&self) -> Pass {
        Pass {
            pages: self.scan.pages(),
            rows: self.scan.rows(),
            ..self.pass.clone()
        }
    }

    /// Marks the present pass as stopped: it counts for no deletion. Returns the offset at which it
    /// continues. If its list was read to the end, this is 0, because the next pass begins there.
    pub fn interrupt(&mut self) -> u64 {
        if matches!(self.state, State::Absent(_) | State::Done) {
            self.begin(0);
        } else {
            self.is_resumed = true;
        }
        self.scan.offset()
    }

    /// Ends the present pass as incomplete: the next step begins another one.
    pub fn give_up(&mut self) {
        if matches!(self.state, State::Page | State::ModelAfter) {
            // The rows that were seen are not absent.
            self.end(false);
        }
        self.begin(0);
    }

    /// Returns the next step. After [`Step::Done`] another pass begins.
    pub fn step(&mut self) -> Step {
        match &self.state {
            State::ModelBefore | State::ModelAfter => Step::Model,
            State::List(after) => Step::List {
                after: after.clone(),
                limit: CHUNK,
            },
            State::Page => Step::Page {
                offset: self.scan.offset(),
                limit: self.scan.limit(),
            },
            State::Absent(rows) => Step::Absent(rows.iter().take(CHUNK).cloned().collect()),
            State::Done => {
                let done = self.pass();
                self.begin(0);
                Step::Done(done)
            }
        }
    }

    fn starting_at(mut self, offset: u64) -> Self {
        self.begin(offset);
        self
    }

    fn begin(&mut self, offset: u64) {
        self.pass = Pass {
            number: self.pass.number + 1,
            ..Pass::default()
        };
        self.restarts = 0;
        self.is_resumed = offset > 0;
        self.state = State::ModelBefore;
        self.read_again(offset);
    }

    fn read_again(&mut self, offset: u64) {
        self.scan = Scan::new(self.settings.page_rows, self.settings.overlap, offset);
        self.expected.clear();
        self.mirrored_rows = 0;
        self.states = 0;
        self.order = Order::new();
        self.past_guard.clear();
        self.doubted.clear();
        self.updates = 0;
        self.pass.differing = 0;
    }

    /// Takes the data model's properties, from its detail.
    pub fn model(&mut self, properties: Vec<Column>) {
        let columns = Columns::new(properties);
        let is_changed = self.columns.as_ref().is_some_and(|known| *known != columns);
        if is_changed {
            // The same row has other values by name now.
            self.differing.clear();
        }
        self.pass.ambiguous_names = columns.ambiguous_names();
        self.columns = Some(columns);
        self.state = match self.state {
            State::ModelAfter if !is_changed => return self.end(true),
            State::ModelAfter if self.restarts >= RESTARTS => return self.end(false),
            State::ModelAfter => {
                self.restarts += 1;
                self.read_again(0);
                State::List(None)
            }
            _ => State::List(None),
        };
    }

    /// Takes the states that the mirror listed.
    pub fn listed(&mut self, rows: Vec<(RowId, Mirrored)>) {
        let last = rows.last().map(|(row, _)| row.clone());
        let is_last = rows.len() < CHUNK;
        self.states += rows.len() as u64;
        for (row, known) in rows {
            // An event for the row was handled, even where its creation was not.
            let is_deleted = known.state.life == Life::Deleted;
            self.mirrored_rows += u64::from(!is_deleted);
            if !is_deleted || known.state.is_doubtful() {
                let revision = known.revision;
                self.expected.insert(
                    row,
                    Expected {
                        revision,
                        is_deleted,
                    },
                );
            }
        }
        self.state = if is_last {
            State::Page
        } else {
            State::List(last)
        };
    }

    /// Takes a page of rows, with the mirror's states of these rows, read **after** the page.
    /// Returns the findings of the page.
    pub fn page(&mut self, page: &PassPage, known: &HashMap<RowId, Mirrored>) -> Vec<Finding> {
        let mut findings = Vec::new();
        self.pass.total = page.total;
        for row in &page.rows {
            self.expected.remove(&row.id);
            // Also where this pass begins again and misses the row then.
            self.absent.remove(&row.id);
            self.order.take(micros(&row.created_at));
            findings.extend(self.compare(row, known.get(&row.id)));
        }
        let ids: Vec<_> = page.rows.iter().map(|row| row.id.clone()).collect();
        match self.scan.page(&ids, page.total) {
            Next::Page => self.order.new_page(),
            Next::End { is_complete: true } => self.state = State::ModelAfter,
            Next::End { is_complete: false } => self.end(false),
        }
        self.count(&findings);
        findings
    }

    /// The scan is over.
    fn end(&mut self, is_complete: bool) {
        let number = self.pass.number;
        self.pass.is_complete = is_complete && !self.is_resumed;
        self.state = State::Done;
        if !self.order.is_of_creation() {
            self.last_move = number;
        }
        // Rows that were seen are not absent, in an incomplete pass too.
        let expected = std::mem::take(&mut self.expected);
        self.absent.retain(|row, _| expected.contains_key(row));
        let most = self.most(self.mirrored_rows);
        let has_too_many_updates = self.updates > most;
        if !self.pass.is_complete || self.settings.is_filling {
            // A part of the rows can show that there are too many, and not that there are few.
            self.had_too_many_updates |= has_too_many_updates;
            return;
        }
        self.had_too_many_updates = has_too_many_updates;
        self.differing
            .retain(|_, difference| difference.pass == number);
        self.pass.absent = expected.len() as u64;
        for (row, expected) in expected {
            let absence = self.absent.entry(row).or_insert(Absence {
                row: expected,
                passes: 0,
            });
            if absence.row != expected {
                (absence.row, absence.passes) = (expected, 0);
            }
            absence.passes += 1;
        }
        let is_due = |absence: &Absence| absence.passes >= ABSENCES || absence.row.is_deleted;
        let due = self.absent.iter().filter(|(_, absence)| is_due(absence));
        // The guard is for deletions that were not handled.
        let guarded = due.clone().filter(|(_, absence)| !absence.row.is_deleted);
        let most = match self.settings.guard_percent {
            0..100 => most.min(self.mirrored_rows / 2),
            _ => most,
        };
        self.has_too_many_deletions = guarded.count() as u64 > most;
        let due: BTreeSet<_> = due.map(|(row, _)| row.clone()).collect();
        if !due.is_empty() {
            self.state = State::Absent(due.into_iter().collect());
        }
    }

    /// Whether the mirror has less than one of a hundred of so many rows, and they are more than
    /// the guard's.
    pub(super) fn is_unfilled(&self, rows: u64) -> bool {
        let is_too_few = self.states.saturating_mul(100) < rows;
        is_too_few && rows > self.settings.guard_rows && !self.settings.is_filling
    }

    /// The most rows of so many that may be found at once.
    fn most(&self, rows: u64) -> u64 {
        let share = rows.saturating_mul(self.settings.guard_percent) / 100;
        share.max(self.settings.guard_rows)
    }

    fn count(&mut self, findings: &[Finding]) {
        for finding in findings {
            match finding.reconciled {
                Reconciled::Unresolved(_) => self.pass.unresolved += 1,
                _ => self.pass.found += 1,
            }
        }
    }
}

/// Shows no row.
impl fmt::Debug for Planner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planner")
            .field("model", &self.model)
            .field("pass", &self.pass)
            .finish_non_exhaustive()
    }
}
