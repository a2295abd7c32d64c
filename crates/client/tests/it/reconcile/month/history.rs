//! Every change of the month, with its outcome.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use hookgate::{Event, EventData, block_on};
use hookgate_client::reconcile::{Life, MemoryMirror, Mirror, Reconciled, RowHash};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::service::Chance;
use super::MODEL;

/// By name. Each change writes its own number into one of them, and a creation into all.
pub const PROPERTIES: [&str; 3] = ["Customer", "Quantity", "Total"];

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Created,
    Updated(usize),
    Deleted,
}

#[derive(Debug)]
struct Change {
    kind: Kind,
    row: String,
}

/// A row of the service.
struct Row {
    values: [u64; 3],
    changed_at: Instant,
    /// Its place in the list of ids.
    at: usize,
}

/// The program's work, in order.
#[derive(Debug)]
enum Done {
    /// An event came: its change, and whether it was recognised as known.
    Event(u64, bool),
    /// A row was repaired: the greatest number among its values, `None` for a deletion.
    Repair(String, Option<u64>),
}

#[derive(Default)]
pub struct History {
    now: BTreeMap<String, Row>,
    ids: Vec<String>,
    deleted_at: HashMap<String, Instant>,
    changes: BTreeMap<u64, Change>,
    /// The deletion of each row.
    deletions: HashMap<String, u64>,
    done: Vec<Done>,
    /// When the last event of a row was handled: its three passes begin again.
    handled_at: HashMap<String, Instant>,
    repairs: HashSet<String>,
    failed: HashSet<String>,
    pub unresolved: BTreeSet<String>,
    /// Changes up to this one were taken over by the filling pass.
    known: u64,
}

/// The changes, counted by their outcome.
#[derive(Debug, Default)]
pub struct Account {
    pub changes: u64,
    pub deletions: usize,
    /// Their event was handled.
    pub events: u64,
    /// They are contained in a repair.
    pub repaired: u64,
    /// A later change of the same property, or the row's deletion, was seen before them.
    pub overtaken: u64,
    /// Of a row that was created and deleted unseen.
    pub traceless: u64,
    /// Events that were recognised as known.
    pub late: u64,
    pub repairs: u64,
    /// Repairs that brought no new change: their row's events had been handled in another order than their changes.
    pub reordered: u64,
}

fn number(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.trim_start_matches('c').parse().unwrap(),
        value => value.as_f64().unwrap() as u64,
    }
}

impl History {
    pub fn rows(&self) -> usize {
        self.now.len()
    }

    pub fn any_row(&self, chance: &mut Chance) -> String {
        self.ids[chance.below(self.ids.len())].clone()
    }

    /// A change is under way whose event may come before its answer.
    pub fn begun(&mut self, number: u64, kind: Kind, row: &str) {
        if kind == Kind::Deleted {
            self.deletions.insert(row.to_owned(), number);
        }
    }

    /// The service has made the change.
    pub fn changed(&mut self, number: u64, kind: Kind, row: &str) {
        self.begun(number, kind, row);
        let row = row.to_owned();
        let changed_at = Instant::now();
        match kind {
            Kind::Created => {
                let new = Row {
                    values: [number; 3],
                    changed_at,
                    at: self.ids.len(),
                };
                self.ids.push(row.clone());
                self.now.insert(row.clone(), new);
            }
            Kind::Updated(property) => {
                let known = self.now.get_mut(&row).unwrap();
                known.values[property] = number;
                known.changed_at = changed_at;
            }
            Kind::Deleted => {
                let old = self.now.remove(&row).unwrap();
                self.ids.swap_remove(old.at);
                if let Some(moved) = self.ids.get(old.at) {
                    self.now.get_mut(moved).unwrap().at = old.at;
                }
                self.deleted_at.insert(row.clone(), changed_at);
            }
        }
        self.changes.insert(number, Change { kind, row });
    }

    pub fn all_are_known(&mut self) {
        self.known = self.changes.keys().next_back().copied().unwrap();
    }

    /// The handler fails for one event in eight, the first time.
    pub fn fails(&mut self, event: &Event) -> bool {
        let id = event.id.as_str();
        let sum: u32 = id.bytes().map(u32::from).sum();
        sum.is_multiple_of(8) && self.failed.insert(id.to_owned())
    }

    pub fn received(&mut self, event: &Event, is_known: bool) {
        let (row, change) = match &event.data {
            EventData::RowCreated(row) => {
                let change = number(&json!(row.properties)["Quantity"]);
                (&row.row_id, change)
            }
            EventData::RowUpdated(row) => {
                let (_, sides) = row.changes.iter().next().unwrap();
                let change = number(&sides.after.json().unwrap().to().unwrap());
                (&row.row_id, change)
            }
            EventData::RowDeleted(row) => (&row.row_id, self.deletions[row.row_id.as_str()]),
            other => panic!("{other:?}"),
        };
        self.handled_at.insert(row.to_string(), Instant::now());
        self.done.push(Done::Event(change, is_known));
    }

    pub fn found(&mut self, finding: &Reconciled) {
        let row = finding.row_id().to_string();
        let newest = match finding {
            Reconciled::Created(found) | Reconciled::Updated(found) => {
                let values = json!(found.properties);
                PROPERTIES
                    .map(|name| number(&values[name]))
                    .into_iter()
                    .max()
            }
            Reconciled::Deleted(_) => {
                assert!(!self.now.contains_key(&row), "{row} was deleted wrongly");
                None
            }
            _ => {
                self.unresolved.insert(row);
                return;
            }
        };
        let is_new = self.repairs.insert(finding.id().unwrap().to_owned());
        assert!(is_new, "{finding:?} was repaired twice");
        self.done.push(Done::Repair(row, newest));
    }

    /// The mirror has every change of before this time, except in rows that are listed as unresolved, and in those whose last
    /// event came later.
    pub fn check(&self, mirror: &MemoryMirror, since: Instant) {
        let states = block_on(mirror.list(&MODEL.into(), None, usize::MAX)).unwrap();
        let states: BTreeMap<_, _> = states.into_iter().collect();
        let is_excused = |id: &str| {
            self.unresolved.contains(id) || self.handled_at.get(id).is_some_and(|at| *at >= since)
        };
        for (id, row) in &self.now {
            if row.changed_at >= since || is_excused(id) {
                continue;
            }
            let state = states.get(id.as_str()).map(|known| &known.state);
            let [customer, quantity, total] = row.values;
            let properties = json!({
                "Customer": format!("c{customer:09}"), "Quantity": quantity, "Total": total,
            });
            let hash = RowHash::of(&serde_json::from_str(&properties.to_string()).unwrap());
            let is_equal =
                state.is_some_and(|state| state.life == Life::Live && state.hash == hash);
            assert!(is_equal, "{id}: {properties} {state:?}");
        }
        for (id, deleted_at) in &self.deleted_at {
            let is_there = states
                .get(id.as_str())
                .is_some_and(|known| known.state.life != Life::Deleted);
            let is_told = *deleted_at >= since || is_excused(id);
            assert!(
                !is_there || is_told,
                "the deletion of {id} was not found: {:?}",
                states[id.as_str()]
            );
        }
    }

    /// Each change was handled once, as event or in a repair; and the service has the rows that this history has.
    pub fn account(&self, rows: &[Value]) -> Account {
        let listed: BTreeMap<_, _> = rows
            .iter()
            .map(|row| {
                let of = |id: &str| number(&row["data"][id]);
                let values = [of("prop_customer"), of("prop_quantity"), of("prop_total")];
                (row["id"].as_str().unwrap().to_owned(), values)
            })
            .collect();
        let now = self.now.iter().map(|(id, row)| (id.clone(), row.values));
        assert_eq!(listed, now.collect());

        let mut account = Account {
            changes: self.changes.range(self.known + 1..).count() as u64,
            deletions: self.deleted_at.len(),
            ..Account::default()
        };
        let mut of_row: HashMap<&str, Vec<u64>> = HashMap::new();
        for (number, change) in &self.changes {
            of_row.entry(&change.row).or_default().push(*number);
        }
        let (mut events, mut repaired) = (HashSet::new(), HashSet::new());
        let mut is_out_of_order: HashSet<&str> = HashSet::new();
        let mut last: HashMap<&str, u64> = HashMap::new();
        for done in &self.done {
            match done {
                Done::Event(number, is_known) => {
                    let row = self.changes[number].row.as_str();
                    let newest = last.entry(row).or_default();
                    if number < newest {
                        is_out_of_order.insert(row);
                    }
                    *newest = (*newest).max(*number);
                    let is_repaired = repaired.contains(number);
                    let is_seen = |other: &u64| events.contains(other) || repaired.contains(other);
                    let is_overtaken = self.is_overtaken(*number, &of_row[row], is_seen);
                    if *is_known {
                        account.late += 1;
                        assert!(is_repaired || is_overtaken, "{number} was taken as known");
                        continue;
                    }
                    assert!(!is_repaired, "{number} was handled after its repair");
                    assert!(events.insert(*number), "{number} was handled twice");
                }
                Done::Repair(row, newest) => {
                    account.repairs += 1;
                    let contained = of_row[row.as_str()].iter();
                    let contained =
                        contained.filter(|number| newest.is_none_or(|end| **number <= end));
                    let mut brings_new = false;
                    for number in contained.filter(|number| **number > self.known) {
                        let is_new = !events.contains(number) && repaired.insert(*number);
                        brings_new |= is_new;
                    }
                    if !brings_new {
                        account.reordered += 1;
                        assert!(
                            is_out_of_order.contains(&**row),
                            "{row} was repaired in vain"
                        );
                    }
                }
            }
        }
        account.events = events.len() as u64;
        account.repaired = repaired.len() as u64;
        let is_seen = |other: &u64| events.contains(other) || repaired.contains(other);
        for (number, change) in self.changes.range(self.known + 1..) {
            let of_row = &of_row[change.row.as_str()];
            if is_seen(number) {
                continue;
            }
            if self.is_overtaken(*number, of_row, is_seen) {
                account.overtaken += 1;
            } else {
                let is_new = of_row[0] > self.known && self.deletions.contains_key(&change.row);
                let is_traceless = is_new && !of_row.iter().any(is_seen);
                assert!(is_traceless, "{number} was lost: {change:?}");
                account.traceless += 1;
            }
        }
        account
    }

    /// Whether a later change of the same property, or the row's deletion, was seen.
    fn is_overtaken(&self, number: u64, of_row: &[u64], is_seen: impl Fn(&u64) -> bool) -> bool {
        let kind = self.changes[&number].kind;
        let overtakes = |other: &u64| {
            let other = self.changes[other].kind;
            other == kind || other == Kind::Deleted
        };
        let mut later = of_row.iter().filter(|other| **other > number);
        later.any(|other| overtakes(other) && is_seen(other))
    }
}
