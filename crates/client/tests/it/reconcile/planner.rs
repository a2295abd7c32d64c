//! Rules of the planner, one by one.

use std::collections::HashMap;

use hookgate::{
    Event, Properties, block_on,
    event::{DataModelId, RowId},
};
use hookgate_client::reconcile::{
    Column, Finding, Life, MemoryMirror, Mirror, Mirrored, Pass, PassPage, PassRow, Planner,
    Reconciled, Settings, Step, UnresolvedReason, feed, is_known,
};
use serde_json::{Value, json};

use super::service::{MODEL, columns, deleted, event, iso, renamed};

/// Rows as `(id, name, updatedAt)`, in a list that stands still.
struct Still {
    mirror: MemoryMirror,
    rows: Vec<(String, String, u64)>,
    columns: Vec<Column>,
    /// Whether the rows are in another order than that of their creation.
    moves: bool,
    /// The most rows that the list counts.
    most: u64,
}

impl Still {
    fn new(rows: usize) -> Self {
        let this = Self {
            mirror: MemoryMirror::with_values(),
            rows: (0..rows).map(|n| (id(n), "Ada".into(), 100)).collect(),
            columns: columns(),
            moves: false,
            most: u64::MAX,
        };
        for (id, name, at) in &this.rows {
            this.feed(&created(*at, id, name));
        }
        this
    }

    fn feed(&self, event: &Event) {
        block_on(feed(&self.mirror, event)).unwrap();
    }

    /// Without an event.
    fn rename(&mut self, row: usize, name: &str) {
        self.rows[row].1 = name.into();
        self.rows[row].2 = 200;
    }

    fn page(&self, offset: u64, limit: u64) -> PassPage {
        let total = (self.rows.len() as u64).min(self.most);
        let rows = self.rows.iter().skip(offset as usize).take(limit as usize);
        let rows = rows.map(|(id, name, updated_at)| PassRow {
            id: RowId::from(id.as_str()),
            data: serde_json::from_str(&json!({ "prop_1": name }).to_string()).unwrap(),
            created_at: iso(100 - u64::from(self.moves && id.ends_with('7'))),
            updated_at: iso(*updated_at),
        });
        PassPage {
            rows: rows.collect(),
            total: Some(total),
        }
    }

    fn known(&self, rows: &[RowId]) -> HashMap<RowId, Mirrored> {
        let known = block_on(self.mirror.get(&MODEL.into(), rows)).unwrap();
        known.into_iter().collect()
    }

    /// Answers one step: the findings, or the pass where it is done.
    fn answer(&self, planner: &mut Planner) -> Result<Vec<Finding>, Pass> {
        match planner.step() {
            Step::Done(pass) => return Err(pass),
            Step::Model => planner.model(self.columns.clone()),
            Step::List { after, limit } => {
                let list = self.mirror.list(planner.model_id(), after.as_ref(), limit);
                let list = block_on(list).unwrap();
                planner.listed(list);
            }
            Step::Page { offset, limit } => {
                let page = self.page(offset, limit);
                let rows: Vec<_> = page.rows.iter().map(|row| row.id.clone()).collect();
                return Ok(planner.page(&page, &self.known(&rows)));
            }
            Step::Absent(rows) => return Ok(planner.absent(&self.known(&rows))),
        }
        Ok(Vec::new())
    }

    fn pass(&self, planner: &mut Planner) -> (Pass, Vec<Finding>) {
        self.run(planner, true)
    }

    /// One pass, whose findings are recorded where that is said.
    fn run(&self, planner: &mut Planner, records: bool) -> (Pass, Vec<Finding>) {
        let mut all = Vec::new();
        loop {
            match self.answer(planner) {
                Err(pass) => return (pass, all),
                Ok(findings) => all.extend(findings.into_iter().inspect(|finding| {
                    if records {
                        block_on(finding.record(&self.mirror)).unwrap();
                    }
                })),
            }
        }
    }

    /// What so many passes find.
    fn found<const N: usize>(&self, planner: &mut Planner) -> [String; N] {
        [(); N].map(|()| kinds(&self.pass(planner).1))
    }

    fn is_known(&self, event: &Event) -> bool {
        block_on(is_known(&self.mirror, event)).unwrap()
    }
}

fn id(row: usize) -> String {
    format!("row_{row:04}")
}

fn created(at: u64, row: &str, name: &str) -> Event {
    let properties = json!({ "properties": { "Name": name } });
    event("row.created", at, row, properties)
}

fn planner() -> Planner {
    with(|_| {})
}

fn with(set: impl FnOnce(&mut Settings)) -> Planner {
    let mut settings = Settings::default();
    set(&mut settings);
    Planner::new(DataModelId::from(MODEL), settings)
}

fn filling() -> Planner {
    with(|settings| settings.is_filling = true)
}

fn kinds(findings: &[Finding]) -> String {
    let kinds = findings.iter().map(|finding| {
        let found = &finding.reconciled;
        format!("{} {}", found.kind(), found.row_id())
    });
    kinds.collect::<Vec<_>>().join(", ")
}

fn name(properties: &Properties) -> String {
    properties.required().text("Name").unwrap().into_owned()
}

/// Why a row is unresolved.
fn reason(finding: &Finding) -> UnresolvedReason {
    match &finding.reconciled {
        Reconciled::Unresolved(unresolved) => unresolved.reason,
        found => panic!("{found:?}"),
    }
}

#[test]
fn creations_and_updates_are_found_in_the_second_pass_deletions_in_the_third() {
    let mut still = Still::new(1_200);
    still.rename(700, "Bo");
    still.rows.remove(3);
    still.rows.push((id(9_999), "Cy".into(), 200));
    let mut planner = planner();
    let (pass, first) = still.pass(&mut planner);
    assert!(pass.is_complete && first.is_empty(), "{first:?}");
    assert_eq!((pass.pages, pass.rows), (3, 1_200));
    assert_eq!((pass.differing, pass.absent), (2, 1));
    let (_, second) = still.pass(&mut planner);
    assert_eq!(kinds(&second), "updated row_0700, created row_9999");
    let Reconciled::Updated(found) = &second[0].reconciled else {
        panic!()
    };
    assert_eq!(name(&found.properties), "Bo");
    assert_eq!(name(found.before.as_ref().unwrap()), "Ada");
    let (_, third) = still.pass(&mut planner);
    assert_eq!(kinds(&third), "deleted row_0003");
    let Reconciled::Deleted(gone) = &third[0].reconciled else {
        panic!()
    };
    assert_eq!(name(gone.before.as_ref().unwrap()), "Ada");
    let (pass, fourth) = still.pass(&mut planner);
    assert!(fourth.is_empty(), "{fourth:?}");
    assert_eq!((pass.differing, pass.absent, pass.number), (0, 0, 4));
}

/// Its creation and its deletion were lost, and an update in between was handled.
// fault M8: a row's creation and deletion are lost and an update in between is handled: the deletion is never found
#[test]
fn a_deleted_row_that_was_never_seen_created_is_found_too() {
    let still = Still::new(10);
    still.feed(&renamed(300, "row_9999", "Ada", "Bo"));
    let mut planner = planner();
    assert_eq!(still.found(&mut planner), ["", "", "deleted row_9999"]);
    assert_eq!(still.pass(&mut planner).0.absent, 0);
}

#[test]
fn an_event_for_an_absent_row_begins_its_three_passes_again() {
    let mut still = Still::new(100);
    still.rows.remove(50);
    let mut planner = planner();
    assert_eq!(still.found(&mut planner), ["", ""]);
    still.feed(&renamed(300, "row_0050", "Ada", "Bo"));
    assert_eq!(still.found(&mut planner), ["", "", "deleted row_0050"]);
}

#[test]
fn a_pass_that_was_resumed_or_given_up_counts_for_no_deletion() {
    let mut still = Still::new(1_000);
    still.rows.remove(10);
    let mut planner = planner().resuming(475);
    let (pass, _) = still.pass(&mut planner);
    assert_eq!((pass.number, pass.is_complete), (1, false));
    still.pass(&mut planner);
    assert!(matches!(planner.step(), Step::Model));
    planner.model(columns());
    planner.interrupt();
    assert!(!still.pass(&mut planner).0.is_complete);
    still.pass(&mut planner);
    planner.give_up();
    assert_eq!(still.found(&mut planner), ["deleted row_0010"]);
}

#[test]
fn an_empty_list_deletes_nothing() {
    for rows in [1, 40, 1_000] {
        let mut still = Still::new(rows);
        still.rows.clear();
        let mut planner = planner();
        assert_eq!(still.found(&mut planner), ["", ""]);
        let (pass, third) = still.pass(&mut planner);
        assert_eq!((third.len(), pass.unresolved), (rows, rows as u64));
        let mut reasons = third.iter().map(reason);
        assert!(reasons.all(|reason| reason == UnresolvedReason::ManyDeletions));
    }
}

/// The list says that it ends with its first page: the rows after it are not absent.
// fault M1: a list's number of rows is capped at the end of a page: the rows after it look deleted
#[test]
fn a_total_that_is_capped_deletes_nothing() {
    for rows in [501, 520, 2_000] {
        let mut still = Still::new(rows);
        still.most = 500;
        let mut planner = planner();
        for _ in 0..5 {
            let (pass, found) = still.pass(&mut planner);
            assert_eq!((pass.is_complete, found.len()), (false, 0), "{rows}");
        }
    }
}

#[test]
fn more_updates_than_the_guard_allows_wait_for_a_filling_pass() {
    let mut still = Still::new(600);
    for row in 0..51 {
        still.rename(row, "ADA");
    }
    let mut planner = planner();
    assert_eq!(still.found(&mut planner), [""]);
    let (pass, second) = still.pass(&mut planner);
    assert_eq!((second.len(), pass.unresolved), (51, 51));
    let is_unresolved = |found: &Finding| found.reconciled.kind() == "unresolved";
    assert!(second.iter().all(is_unresolved), "{second:?}");
    still.pass(&mut filling());
    // The state that the doubt was about is gone.
    assert_eq!(still.found(&mut planner), [""]);
    assert_eq!(still.pass(&mut planner).0.differing, 0);
}

/// The event of the deletion was handled between the page and the look at the mirror.
// fault M14: a filling pass brings a row back whose deletion was handled since its page was read
#[test]
fn a_filling_pass_brings_no_row_back_whose_deletion_was_handled() {
    let still = Still::new(10);
    still.feed(&deleted(200, "row_0003"));
    assert_eq!(still.found(&mut filling()), [""]);
}

// fault M13: the only row of a data model is deleted, and stays unresolved for ever
#[test]
fn a_guard_of_a_hundred_percent_lets_every_row_be_deleted() {
    for (percent, kind) in [(99, "unresolved"), (100, "deleted")] {
        for rows in [1, 3, 100] {
            let mut still = Still::new(rows);
            still.rows.clear();
            let mut planner = with(|settings| settings.guard_percent = percent);
            let [.., third] = [(); 3].map(|()| still.pass(&mut planner).1);
            let are_all = third.iter().all(|found| found.reconciled.kind() == kind);
            assert!(are_all && third.len() == rows, "{percent} {third:?}");
        }
    }
}

/// A pass that fails half-way has seen too many rows that differ: none of them is a finding in the
/// next one.
#[test]
fn the_guard_counts_the_rows_of_a_pass_that_was_given_up() {
    let mut still = Still::new(600);
    for row in 0..600 {
        still.rename(row, "ADA");
    }
    let mut planner = planner();
    while !matches!(planner.step(), Step::Page { .. }) {
        still.answer(&mut planner).unwrap();
    }
    still.answer(&mut planner).unwrap();
    planner.give_up();
    let (pass, found) = still.pass(&mut planner);
    assert_eq!((pass.found, pass.unresolved, found.len()), (0, 600, 600));
}

/// Rows that are not in the order of creation may have moved, and where events are lost, nothing
/// tells it. The updates that are lost before the first pass may be too many to be findings: they
/// are losses all the same.
// fault M11: in an outage too many updates are lost to be findings, the list moves, and an existing row is found as deleted
#[test]
fn in_a_moving_list_with_lost_events_an_absent_row_is_unresolved() {
    for (moves, lost, kind) in [
        (false, 0, "deleted"),
        (false, 1, "deleted"),
        (true, 0, "deleted"),
        (true, 1, "unresolved"),
        (true, 60, "unresolved"),
    ] {
        let mut still = Still::new(100);
        still.rows.remove(50);
        still.moves = moves;
        for row in 0..lost {
            still.rename(row, "lost");
        }
        let mut planner = planner();
        let [.., third] = [(); 3].map(|()| still.pass(&mut planner).1);
        let row = third.last().unwrap();
        assert_eq!(
            kinds(&third).rsplit(", ").next().unwrap(),
            format!("{kind} row_0050")
        );
        if kind == "unresolved" {
            assert_eq!(reason(row), UnresolvedReason::MovingList, "{lost}");
        }
    }
}

#[test]
fn an_older_read_is_not_an_update() {
    let mut still = Still::new(10);
    still.feed(&renamed(500, "row_0004", "Ada", "Bo"));
    let mut planner = planner();
    assert_eq!(still.found(&mut planner), [""]);
    let (_, second) = still.pass(&mut planner);
    assert_eq!(kinds(&second), "unresolved row_0004");
    assert_eq!(reason(&second[0]), UnresolvedReason::StaleRead);
    // A few seconds may lie between the row's time and the event's.
    still.rows[4].2 = 498;
    still.pass(&mut planner);
    assert_eq!(still.found(&mut planner), ["updated row_0004"]);
}

#[test]
fn a_changed_property_begins_the_pass_again() {
    let mut still = Still::new(10);
    let mut planner = planner();
    // The first answer is another one than those after it. Then a model that never stands still
    // ends the pass.
    for (changes, expected) in [(1, (3, 4, true)), (usize::MAX, (5, 8, false))] {
        let (mut details, mut pages) = (0, 0);
        let pass = loop {
            match planner.step() {
                Step::Model => {
                    still.columns[1].name = format!("{expected:?} {}", details.min(changes));
                    details += 1;
                }
                Step::Page { .. } => pages += 1,
                Step::Done(pass) => break pass,
                Step::List { .. } => {}
                Step::Absent(_) => panic!(),
            }
            assert!(still.answer(&mut planner).unwrap().is_empty());
        };
        assert_eq!((details, pages, pass.is_complete), expected);
    }
}

/// The row was absent twice. The third pass sees it, begins again, and misses it then.
// fault M10: a row is absent twice, a pass sees it, begins again since a property changed, and misses it: it is found as deleted
#[test]
fn a_row_that_was_seen_before_a_pass_began_again_is_not_absent_for_the_third_time() {
    let mut still = Still::new(10);
    let row = still.rows.remove(5);
    let mut planner = planner();
    assert_eq!(still.found(&mut planner), ["", ""]);
    still.rows.insert(5, row);
    let mut pages = 0;
    while pages == 0 || matches!(planner.step(), Step::Page { .. }) {
        pages += usize::from(matches!(planner.step(), Step::Page { .. }));
        assert!(still.answer(&mut planner).unwrap().is_empty());
    }
    still.rows.remove(5);
    still.columns[1].name = "Amount".into();
    let (pass, found) = still.pass(&mut planner);
    assert_eq!((pass.number, pass.absent), (3, 1));
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_name_of_two_properties_is_not_compared() {
    let mut still = Still::new(10);
    let mut twin = still.columns[0].clone();
    twin.id = "prop_3".into();
    still.columns.push(twin);
    still.rows[3].1 = "Bo".into();
    let (pass, _) = still.pass(&mut planner());
    assert_eq!(
        (pass.differing, &*pass.ambiguous_names),
        (0, &["Name".to_owned()][..])
    );
}

/// Ten replicas with one mirror: each finds the same under the same id, and another state under
/// another id.
#[test]
fn ids_depend_on_the_row_and_its_state_alone() {
    let mut still = Still::new(100);
    still.rename(7, "Bo");
    still.rows.remove(50);
    still.rows.push((id(9_999), "Cy".into(), 200));
    let find = |still: &Still| {
        let mut planner = planner();
        let [.., third] = [(); 3].map(|()| still.run(&mut planner, false).1);
        let ids = third
            .iter()
            .map(|finding| finding.reconciled.id().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    let ids = find(&still);
    assert_eq!(find(&still), ids);
    still.rows[7].1 = "Cy".into();
    let other = find(&still);
    assert_ne!(other[0], ids[0]);
    assert_eq!(other[1..], ids[1..]);
    let different: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!((ids.len(), different.len()), (3, 3));
}

/// A retry comes after the repair, under an id of its own.
#[test]
fn a_late_retry_is_recognised_by_its_values() {
    let mut still = Still::new(10);
    still.rename(3, "Bo");
    still.rows.remove(5);
    still.rows.push((id(10), "Cy".into(), 200));
    let late = [
        renamed(200, &id(3), "Ada", "Bo"),
        deleted(200, &id(5)),
        created(200, &id(10), "Cy"),
    ];
    for event in &late {
        assert!(!still.is_known(event), "{event:?}");
    }
    let mut planner = planner();
    still.found::<3>(&mut planner);
    for event in &late {
        assert!(still.is_known(event), "{event:?}");
        still.feed(event);
    }
    assert_eq!(still.pass(&mut planner).0.differing, 0);
    assert!(!still.is_known(&renamed(300, &id(3), "Bo", "Di")));
}

// fault M12: a row is restored under its old id, and its handler takes the event for a late retry; or a late retry of its creation brings back a row that was found as deleted
#[test]
fn a_row_that_is_restored_is_not_a_known_creation() {
    let still = Still::new(1);
    let restored = created(201, "row_0000", "Ada");
    still.feed(&deleted(200, "row_0000"));
    still.feed(&restored);
    assert!(!still.is_known(&restored));
    assert_eq!(still.pass(&mut planner()).0.differing, 0);
}

/// The time of an event may be a little later than the row's, and the time of a deletion that was
/// found is not known.
// fault M12: a row is restored under its old id, and its handler takes the event for a late retry; or a late retry of its creation brings back a row that was found as deleted
#[test]
fn a_late_retry_of_a_creation_does_not_bring_a_row_back_that_was_found_as_deleted() {
    let mut still = Still::new(10);
    still.rows.push((id(10), "Cy".into(), 200));
    let mut planner = planner();
    assert_eq!(still.found(&mut planner), ["", "created row_0010"]);
    still.rows.pop();
    assert_eq!(still.found(&mut planner), ["", "", "deleted row_0010"]);
    for (at, is_late) in [(203, true), (205, true), (206, false)] {
        let is_known = still.is_known(&created(at, &id(10), "Cy"));
        assert_eq!(is_known, is_late, "{at}");
    }
    still.feed(&created(203, &id(10), "Cy"));
    assert_eq!(still.pass(&mut planner).0.absent, 0);
}

#[test]
fn events_in_any_order_leave_the_same_state() {
    let row = "row_1";
    let first = json!({ "properties": { "Name": "a", "Total": 1, "Note": "x" } });
    let cleared = json!({ "changes": { "Total": { "before": 1, "after": null } } });
    let events = [
        event("row.created", 10, row, first),
        renamed(11, row, "a", "b"),
        event("row.updated", 12, row, cleared),
        renamed(13, row, "b", "c"),
    ];
    for order in [
        [0, 1, 2, 3],
        [3, 2, 1, 0],
        [1, 0, 3, 2],
        [2, 0, 3, 1],
        [3, 0, 1, 2],
        [1, 3, 2, 0],
    ] {
        let still = Still::new(0);
        let state = || still.known(&[row.into()]).remove(row).unwrap().state;
        for at in order {
            still.feed(&events[at]);
            still.feed(&events[at]);
        }
        let live = state();
        assert_eq!(live.life, Life::Live);
        let values: Value = serde_json::from_str(live.values.as_deref().unwrap()).unwrap();
        assert_eq!(
            (&values["Name"], &values["Note"]),
            (&json!("c"), &json!("x")),
            "{order:?}"
        );
        assert!(values["Total"].is_null(), "{order:?}");
        // A deleted row stays deleted.
        still.feed(&deleted(14, row));
        events.iter().for_each(|event| still.feed(event));
        assert_eq!(state().life, Life::Deleted);
    }
}
