//! The planner: which request comes next, and which rows differ. It waits for nothing and reads no clock.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

use hookgate::event::Fields;
use hookgate::{DataModelId, Properties, RowId};

use super::columns::{Column, Columns};
use super::finding::{Doubt, Finding, Found, Gone, Reconciled, Unresolved, finding_id};
use super::hash::{NameHash, ValueHash};
use super::mirror::{Life, Mirrored, RowState, micros};
use super::scan::{Next, Scan};

/// The number of times that a pass begins again because the data model was changed.
const RESTARTS: u32 = 3;
/// The number of passes in which a deleted row must be absent.
const ABSENCES: u64 = 3;
/// The number of states that are asked of the mirror at once.
const CHUNK: usize = 500;

/// The settings of a reconciliation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The rows of a page: 500, the most that the service gives.
    pub page_rows: u64,
    /// The rows at a page's end that the next page begins with: 25.
    pub overlap: u64,
    /// So many rows may be found as updated, or as deleted, in one pass, whatever their share is: 50. But never more than half
    /// of the rows may be found as deleted.
    pub guard_rows: u64,
    /// Or so many of a hundred: 1.
    pub guard_percent: u64,
    /// How much older than the mirror's a row's `updatedAt` may be before the row is taken for a stale read, in microseconds: 5 s.
    /// An event's `createdAt` may be a little later than the row's `updatedAt`.
    pub clock_tolerance: i64,
    /// Take the rows over as they are, without findings: for the first pass with an empty mirror, and after a property was
    /// renamed. Deletions are not looked for.
    pub is_filling: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            page_rows: 500,
            overlap: 25,
            guard_rows: 50,
            guard_percent: 1,
            clock_tolerance: 5_000_000,
            is_filling: false,
        }
    }
}

/// A page of a data model's rows, as the service listed them.
#[derive(Clone, Debug, Default)]
pub struct PassPage {
    /// The rows, in their order.
    pub rows: Vec<PassRow>,
    /// `meta.total`.
    pub total: Option<u64>,
}

/// A row as the service lists it.
#[derive(Clone, Debug)]
pub struct PassRow {
    /// The row.
    pub id: RowId,
    /// Its values by property id.
    pub data: Fields,
    /// Its `createdAt`.
    pub created_at: String,
    /// Its `updatedAt`.
    pub updated_at: String,
}

/// What the planner needs next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The data model's properties: pass them to [`Planner::model`].
    Model,
    /// States from [`Mirror::list`](super::Mirror::list): pass them to [`Planner::listed`].
    List {
        /// After this row.
        after: Option<RowId>,
        /// At most so many.
        limit: usize,
    },
    /// A page of rows: pass it to [`Planner::page`].
    Page {
        /// Rows to skip.
        offset: u64,
        /// Rows of the page.
        limit: u64,
    },
    /// The present states of these rows from [`Mirror::get`](super::Mirror::get): pass them to [`Planner::absent`].
    Absent(Vec<RowId>),
    /// The pass is over. The next step begins another one.
    Done(Pass),
}

/// A pass that is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pass {
    /// Its number in this planner, from 1.
    pub number: u64,
    /// Whether every row of the list was surely read, from its beginning. An incomplete pass counts for no deletion.
    pub is_complete: bool,
    /// Requests for pages.
    pub pages: u64,
    /// Different rows.
    pub rows: u64,
    /// Rows that differ from the mirror, found or not: most of them have an event under way.
    pub differing: u64,
    /// Rows that the mirror has and the list had not.
    pub absent: u64,
    /// Findings that are resolved.
    pub found: u64,
    /// Rows that are [unresolved](Reconciled::Unresolved).
    pub unresolved: u64,
    /// Names of properties that several properties have. They are not compared, since an event names a property by its name.
    pub ambiguous_names: Vec<String>,
}

/// Plans the passes over one data model.
///
/// A row that differs is a finding in the second pass that sees it with the same state in the mirror: the event of a change may be
/// under way in the first. A row that is absent is a finding in the third.
///
/// The planner waits for nothing, so the caller makes each request: [`step`](Self::step) says which. [`Reconcile`](super::Reconcile)
/// does it with a client and a mirror.
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
    /// The last pass that found a lost creation or update, and the last one in which the list was not in the order of creation.
    last_loss: u64,
    last_move: u64,
    state: State,
    pass: Pass,
    scan: Scan,
    is_resumed: bool,
    restarts: u32,
    /// The mirror's rows that this pass has not seen yet, with their revisions at its beginning.
    expected: HashMap<RowId, u64>,
    mirrored_rows: u64,
    order: Order,
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

struct Difference {
    pass: u64,
    /// The mirror's side. It stays the same where no event was handled.
    was: Was,
}

#[derive(PartialEq)]
enum Was {
    /// The row was not known to be created.
    Unknown,
    /// The row was known to be deleted, in this revision.
    Deleted(u64),
    /// The properties that differed, and their values in the mirror.
    Other(Vec<(NameHash, Option<ValueHash>)>),
    /// The row's `updatedAt` was older than that of this revision.
    Newer(u64),
}

struct Absence {
    revision: u64,
    passes: u64,
}

/// Whether the rows' `createdAt` rise, or fall, along the list.
#[derive(Default)]
struct Order {
    last: Option<i64>,
    rises: bool,
    falls: bool,
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
            order: Order::default(),
            doubted: HashSet::new(),
            has_too_many_deletions: false,
        }
        .begun(0)
    }

    /// Plans a first pass that goes on at this offset, where an earlier process has stopped. That pass counts for no deletion.
    #[must_use]
    pub fn resuming(mut self, offset: u64) -> Self {
        self = self.begun(offset);
        self.pass.number = 1;
        self
    }

    /// The data model.
    #[must_use]
    pub fn model_id(&self) -> &DataModelId {
        &self.model
    }

    /// The present pass, as far as it is.
    #[must_use]
    pub fn pass(&self) -> Pass {
        Pass {
            pages: self.scan.pages(),
            rows: self.scan.rows(),
            ..self.pass.clone()
        }
    }

    /// Marks the present pass as stopped, so that it counts for no deletion. Returns the offset at which it goes on.
    pub fn interrupt(&mut self) -> u64 {
        self.is_resumed = true;
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

    /// What is needed next. After [`Step::Done`] another pass begins.
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

    fn begun(mut self, offset: u64) -> Self {
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
        self.order = Order {
            last: None,
            rises: true,
            falls: true,
        };
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
        for (row, known) in rows {
            if known.state.life == Life::Live {
                self.expected.insert(row, known.revision);
                self.mirrored_rows += 1;
            }
        }
        self.state = if is_last {
            State::Page
        } else {
            State::List(last)
        };
    }

    /// Takes a page of rows, with the mirror's states of these rows, read **after** the page. Returns the findings of the page.
    pub fn page(&mut self, page: &PassPage, known: &HashMap<RowId, Mirrored>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for row in &page.rows {
            self.expected.remove(&row.id);
            self.order.take(micros(&row.created_at));
            findings.extend(self.compare(row, known.get(&row.id)));
        }
        let ids: Vec<_> = page.rows.iter().map(|row| row.id.clone()).collect();
        match self.scan.page(&ids, page.total) {
            // The next page repeats rows of this one.
            Next::Page => self.order.last = None,
            Next::End { is_complete: true } => self.state = State::ModelAfter,
            Next::End { is_complete: false } => self.end(false),
        }
        self.count(&findings);
        findings
    }

    fn compare(&mut self, row: &PassRow, known: Option<&Mirrored>) -> Option<Finding> {
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
                    return None;
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
            let is_older = matches!(was, Was::Newer(_));
            return (!is_older).then(|| self.found(row, properties, before(), known, state));
        }
        let number = self.pass.number;
        let earlier = self.differing.get(&row.id);
        if earlier.is_some_and(|earlier| earlier.pass == number) {
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
        }
        let doubt = match () {
            () if is_update && self.had_too_many_updates => Doubt::ManyUpdates,
            () if !is_confirmed => return None,
            () if is_older => Doubt::StaleRead,
            () => return Some(self.found(row, properties, before(), known, state)),
        };
        let is_first = self.doubted.insert(row.id.clone());
        is_first.then(|| self.doubtful(row.id.clone(), revision, doubt))
    }

    fn found(
        &mut self,
        row: &PassRow,
        properties: Properties,
        before: Option<Properties>,
        known: Option<&Mirrored>,
        state: RowState,
    ) -> Finding {
        let is_update = known.is_some_and(|known| known.state.life == Life::Live);
        self.last_loss = self.pass.number;
        // A row that is created again, after it was deleted, is another finding than the first.
        let died_at = known
            .and_then(|known| known.state.updated_at)
            .filter(|_| !is_update);
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

    fn doubtful(&self, row_id: RowId, revision: u64, reason: Doubt) -> Finding {
        let datamodel_id = self.model.clone();
        Finding {
            reconciled: Reconciled::Unresolved(Unresolved {
                datamodel_id,
                row_id,
                reason,
            }),
            revision,
            state: None,
        }
    }

    /// Takes the present states of the rows of [`Step::Absent`]. Returns the deletions.
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
                .filter(|known| known.revision == absence.revision)
            else {
                // An event for it was handled.
                self.absent.remove(&row);
                continue;
            };
            let doubt = match () {
                () if self.has_too_many_deletions => Some(Doubt::ManyDeletions),
                () if may_have_moved => Some(Doubt::MovingList),
                () => None,
            };
            findings.push(match doubt {
                Some(doubt) => self.doubtful(row, known.revision, doubt),
                None => self.gone(row, known),
            });
        }
        self.count(&findings);
        findings
    }

    fn gone(&self, row: RowId, known: &Mirrored) -> Finding {
        let version = format!("{:?}", known.state.updated_at);
        let mut state = RowState::blank(Life::Deleted);
        state.updated_at = known.state.updated_at;
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
        for (row, revision) in expected {
            let absence = self.absent.entry(row).or_insert(Absence {
                revision,
                passes: 0,
            });
            if absence.revision == revision {
                absence.passes += 1;
            } else {
                *absence = Absence {
                    revision,
                    passes: 1,
                };
            }
        }
        let due = self
            .absent
            .iter()
            .filter(|(_, absence)| absence.passes >= ABSENCES);
        let due: BTreeSet<_> = due.map(|(row, _)| row.clone()).collect();
        self.has_too_many_deletions = due.len() as u64 > most.min(self.mirrored_rows / 2);
        if !due.is_empty() {
            self.state = State::Absent(due.into_iter().collect());
        }
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

impl Was {
    /// Whether the mirror's side of the difference is still there.
    fn is_still(&self, now: &Self) -> bool {
        match (self, now) {
            (Self::Other(was), Self::Other(now)) => now.iter().any(|pair| was.contains(pair)),
            (was, now) => was == now,
        }
    }
}

impl Order {
    fn take(&mut self, created_at: Option<i64>) {
        match (self.last, created_at) {
            (Some(last), Some(now)) => {
                self.rises &= last <= now;
                self.falls &= last >= now;
            }
            (None, Some(_)) => {}
            // Without a date the order is unknown.
            (_, None) => (self.rises, self.falls) = (false, false),
        }
        self.last = created_at;
    }

    fn is_of_creation(&self) -> bool {
        self.rises || self.falls
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
