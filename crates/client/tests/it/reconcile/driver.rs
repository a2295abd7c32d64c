//! The driver: claims, failures, stops, and a mirror that was never filled.

use std::convert::Infallible;
use std::future::{pending, ready};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate::{
    MemoryStore,
    dedupe::{StoreError, StoreErrorKind, StoreFuture},
    event::{DataModelId, RowId},
};
use hookgate_client::reconcile::{
    Column, MemoryMirror, Mirror, Mirrored, PassPage, Reconcile, ReconcileError, Reconciled,
    RowSource, RowState, Settings, feed,
};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::service::{Chance, ListOrder, MODEL, Service, columns, event, renamed};
use crate::support::TestClock;

/// A service that stands still, and counts requests for pages.
#[derive(Clone)]
pub struct Source {
    service: Arc<Mutex<Service>>,
    pub pages: Arc<AtomicU64>,
    /// The number of the request from which on none is answered.
    broken_from: Arc<AtomicU64>,
}

impl Source {
    pub fn with_rows(rows: usize) -> Self {
        let mut service = Service::new(ListOrder::Creation);
        for _ in 0..rows {
            service.now += 1;
            service.create(&mut Chance::new(1));
        }
        Self {
            service: Arc::new(Mutex::new(service)),
            pages: Arc::default(),
            broken_from: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    pub fn change<T>(&self, change: impl FnOnce(&mut Service) -> T) -> T {
        change(&mut self.service.lock().unwrap())
    }
}

impl RowSource for Source {
    type Error = std::io::Error;

    fn columns<'a>(&'a self, _: &'a DataModelId) -> StoreFuture<'a, Vec<Column>, Self::Error> {
        StoreFuture::ready(Ok(columns()))
    }

    fn page<'a>(
        &'a self,
        _: &'a DataModelId,
        offset: u64,
        limit: u64,
    ) -> StoreFuture<'a, PassPage, Self::Error> {
        StoreFuture::boxed(async move {
            let request = self.pages.fetch_add(1, Ordering::Relaxed);
            if request >= self.broken_from.load(Ordering::Relaxed) {
                return Err(std::io::Error::other("the connection is broken"));
            }
            Ok(self.change(|service| service.page(offset, limit, usize::MAX)))
        })
    }
}

pub fn settings(is_filling: bool) -> Settings {
    let mut settings = Settings::default();
    settings.is_filling = is_filling;
    settings
}

/// A reconciliation that compares.
pub fn reconcile<M: Mirror>(source: &Source, mirror: M) -> Reconcile<Source, M> {
    Reconcile::new(source.clone(), mirror, MODEL, settings(false))
}

/// A handler that does nothing.
pub fn quick(_: Reconciled) -> std::future::Ready<Result<(), Infallible>> {
    ready(Ok(()))
}

/// The kinds of the findings that its handler is given.
#[derive(Default)]
pub struct Kinds(Mutex<Vec<&'static str>>);

impl Kinds {
    pub fn note(&self, finding: &Reconciled) {
        self.0.lock().unwrap().push(finding.kind());
    }

    pub fn handle(&self, finding: Reconciled) -> std::future::Ready<Result<(), Infallible>> {
        self.note(&finding);
        ready(Ok(()))
    }

    /// Those since the last call, in the order of the alphabet.
    pub fn sorted(&self) -> Vec<&'static str> {
        let mut kinds = std::mem::take(&mut *self.0.lock().unwrap());
        kinds.sort_unstable();
        kinds
    }
}

/// What is found after [`lose_three`].
const THREE: [&str; 3] = ["created", "deleted", "updated"];

/// A mirror with the service's rows of now.
pub async fn filled(source: &Source) -> Arc<MemoryMirror> {
    let mirror = Arc::new(MemoryMirror::with_values());
    let mut filling = Reconcile::new(source.clone(), Arc::clone(&mirror), MODEL, settings(true));
    let never = |_| -> std::future::Ready<Result<(), Infallible>> {
        panic!("a row that is taken over is not a finding")
    };
    let report = filling.pass(never).await.unwrap();
    assert_eq!(
        report.handled,
        source.change(|service| service.rows.len() as u64)
    );
    mirror
}

/// A creation, an update and a deletion without events.
pub fn lose_three(source: &Source) {
    source.change(|service| {
        service.now += 10;
        service.create(&mut Chance::new(2));
        service.rows[3].name = "Bo".into();
        service.rows[3].updated_at = service.now;
        service.rows.remove(5);
    });
}

#[tokio::test]
async fn ten_replicas_handle_each_finding_once() {
    let source = Source::with_rows(700);
    let mirror = filled(&source).await;
    lose_three(&source);
    let store = Arc::new(MemoryStore::default());
    let replica = || reconcile(&source, Arc::clone(&mirror)).claims(Arc::clone(&store), "shop");
    let handled = Arc::new(Kinds::default());
    let together = Arc::new(tokio::sync::Barrier::new(10));
    let mut replicas = tokio::task::JoinSet::new();
    for mut replica in (0..10).map(|_| replica()) {
        let (handled, together) = (Arc::clone(&handled), Arc::clone(&together));
        replicas.spawn(async move {
            for _ in 0..3 {
                // Each finds the row before another one has written it.
                together.wait().await;
                let note = |finding: Reconciled| {
                    handled.note(&finding);
                    async {
                        sleep(Duration::from_millis(50)).await;
                        Ok::<_, Infallible>(())
                    }
                };
                replica.pass(note).await.unwrap();
            }
        });
    }
    replicas.join_all().await;
    assert_eq!(handled.sorted(), THREE);
}

/// Each replica has looked at the mirror before the other wrote there.
#[tokio::test]
async fn a_finding_that_another_replica_has_handled_is_written_into_the_mirror_alone() {
    let source = Source::with_rows(10);
    let (one, other) = (filled(&source).await, filled(&source).await);
    lose_three(&source);
    let store = Arc::new(MemoryStore::default());
    for (mirror, expected) in [
        (one, [(0, 0, 0), (2, 0, 2), (1, 0, 1), (0, 0, 0)]),
        (other, [(0, 0, 0), (0, 2, 2), (0, 1, 1), (0, 0, 0)]),
    ] {
        let mut replica = reconcile(&source, mirror).claims(Arc::clone(&store), "shop");
        for expected in expected {
            let report = replica.pass(quick).await.unwrap();
            assert_eq!(
                (report.handled, report.elsewhere, report.pass.found),
                expected
            );
        }
    }
}

#[tokio::test]
async fn a_finding_whose_handler_failed_is_found_in_the_next_pass() {
    let source = Source::with_rows(10);
    let mirror = filled(&source).await;
    lose_three(&source);
    let mut reconcile = reconcile(&source, mirror).claims(MemoryStore::default(), "shop");
    for failed in [0, 2, 3, 3, 3] {
        let report = reconcile.pass(|_| ready(Err("no room"))).await.unwrap();
        assert_eq!((report.failed, report.handled), (failed, 0));
        assert_eq!(report.last_error.is_some(), failed > 0);
    }
    let report = reconcile.pass(quick).await.unwrap();
    assert_eq!((report.failed, report.handled), (0, 3));
}

#[tokio::test]
async fn a_pass_stops_at_a_page_and_goes_on_there() {
    let source = Source::with_rows(2_000);
    let mirror = filled(&source).await;
    source.pages.store(0, Ordering::Relaxed);
    let pages = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&pages);
    let mut passes = reconcile(&source, Arc::clone(&mirror))
        .on_progress(move |pass| seen.store(pass.pages, Ordering::Relaxed));
    let report = passes.pass_until(reaches(&pages, 2), quick).await.unwrap();
    assert_eq!((report.stopped_at, report.pass.pages), (Some(950), 2));
    let report = passes.pass_until(pending(), quick).await.unwrap();
    assert_eq!((report.stopped_at, report.pass.is_complete), (None, false));
    assert_eq!(report.pass.pages, 5);
    assert_eq!(source.pages.load(Ordering::Relaxed), 5);
    assert!(passes.pass(quick).await.unwrap().pass.is_complete);

    // Another process goes on where that one was stopped.
    let mut resumed = reconcile(&source, mirror).resume_at(950);
    let report = resumed.pass(quick).await.unwrap();
    assert_eq!((report.pass.is_complete, report.pass.pages), (false, 3));
}

/// Is ready once the number is as large.
async fn reaches(number: &AtomicU64, end: u64) {
    std::future::poll_fn(|_| match number.load(Ordering::Relaxed) >= end {
        true => std::task::Poll::Ready(()),
        false => std::task::Poll::Pending,
    })
    .await;
}

/// What a pass has read may be hours old when the next one is asked for.
// fault M15: the future of a pass is dropped, and hours later its old reading counts for deletions
#[tokio::test]
async fn a_pass_that_was_dropped_counts_for_no_deletion() {
    let source = Source::with_rows(1_000);
    let mirror = filled(&source).await;
    rename(&source, &[0]);
    let mut reconcile = reconcile(&source, mirror);
    assert!(reconcile.pass(quick).await.unwrap().pass.is_complete);
    let slow = |_| pending::<Result<(), Infallible>>();
    let dropped = timeout(Duration::from_millis(100), reconcile.pass(slow)).await;
    assert!(dropped.is_err());
    let report = reconcile.pass(quick).await.unwrap();
    assert_eq!((report.pass.number, report.pass.is_complete), (2, false));
    let report = reconcile.pass(quick).await.unwrap();
    assert_eq!((report.pass.is_complete, report.handled), (true, 1));
}

/// The finding in hand is handled to its end, and the others are found again.
// fault M16: a pass that is to stop handles all findings of its page, or all deletions, before it does
#[tokio::test]
async fn a_pass_stops_between_two_findings() {
    let source = Source::with_rows(100);
    let mirror = filled(&source).await;
    rename(&source, &[1, 2, 3, 4]);
    let mut reconcile = reconcile(&source, mirror).claims(MemoryStore::default(), "shop");
    reconcile.pass(quick).await.unwrap();
    let stopped = async |reconcile: &mut Reconcile<_, _>| {
        let handled = AtomicU64::new(0);
        let handle = |_| {
            handled.fetch_add(1, Ordering::Relaxed);
            ready(Ok::<_, Infallible>(()))
        };
        let report = reconcile.pass_until(reaches(&handled, 1), handle).await;
        let report = report.unwrap();
        assert_eq!((report.handled, report.pass.is_complete), (1, false));
        assert!(report.stopped_at.is_some());
    };
    stopped(&mut reconcile).await;
    assert!(!reconcile.pass(quick).await.unwrap().pass.is_complete);
    assert_eq!(reconcile.pass(quick).await.unwrap().handled, 3);

    // So it is with deletions, which are found after the last page.
    source.change(|service| service.rows.truncate(96));
    for _ in 0..2 {
        reconcile.pass(quick).await.unwrap();
    }
    stopped(&mut reconcile).await;
    let report = reconcile.pass(quick).await.unwrap();
    assert_eq!((report.pass.is_complete, report.handled), (true, 3));
}

#[tokio::test]
async fn a_failure_of_the_service_does_not_mean_absent() {
    let source = Source::with_rows(1_000);
    let mirror = filled(&source).await;
    source.pages.store(0, Ordering::Relaxed);
    source.broken_from.store(1, Ordering::Relaxed);
    let mut reconcile = reconcile(&source, mirror);
    let handle = |finding: Reconciled| ready(Err(format!("{finding:?}")));
    for _ in 0..5 {
        let error = reconcile.pass(handle).await.unwrap_err();
        assert!(matches!(error, ReconcileError::Source(_)), "{error}");
    }
    source.broken_from.store(u64::MAX, Ordering::Relaxed);
    for _ in 0..4 {
        let report = reconcile.pass(handle).await.unwrap();
        assert_eq!((report.pass.absent, report.pass.differing), (0, 0));
        assert_eq!(report.last_error, None);
    }
}

// fault M18: some events are handled before the mirror is filled, and a hundred thousand rows are found as created
#[tokio::test]
async fn an_empty_mirror_is_filled_first() {
    let mut passes = reconcile(&Source::with_rows(51), MemoryMirror::default());
    let error = passes.pass(quick).await.unwrap_err();
    assert!(matches!(error, ReconcileError::EmptyMirror), "{error}");

    // Some events were handled before anything was filled. A data model that grew a hundredfold was
    // not filled either.
    for (fed, is_refused) in [(1, true), (9, true), (10, false)] {
        let source = Source::with_rows(1_000);
        let mirror = Arc::new(MemoryMirror::default());
        for row in source.change(|service| service.rows[..fed].to_vec()) {
            let properties = json!({ "properties": row.properties() });
            let created = event("row.created", row.created_at, &row.id, properties);
            feed(&mirror, &created).await.unwrap();
        }
        let ended = reconcile(&source, mirror).pass(quick).await;
        assert_eq!(ended.is_err(), is_refused, "{fed} {ended:?}");
    }

    // A new data model has few rows, whose creations may be what was missed.
    let mut passes = reconcile(&Source::with_rows(50), MemoryMirror::default());
    assert_eq!(passes.pass(quick).await.unwrap().handled, 0);
    assert_eq!(passes.pass(quick).await.unwrap().handled, 50);
}

/// Gives these rows another name, without an event.
pub fn rename(source: &Source, rows: &[usize]) {
    source.change(|service| {
        service.now += 10;
        for row in rows {
            service.rows[*row].name = "Bo".into();
            service.rows[*row].updated_at = service.now;
        }
    });
}

/// The event comes while the finding is handled: the mirror keeps the event's state, and the row is
/// found once more, since the handler may have written the older state last.
// fault M3: handlers are slow, and a repair from minutes ago overwrites what an event has written since, for good
#[tokio::test]
async fn an_event_that_comes_during_a_repair_is_not_overwritten() {
    let source = Source::with_rows(10);
    let mirror = filled(&source).await;
    rename(&source, &[3]);
    let row = source.change(|service| service.rows[3].clone());
    let at = row.updated_at + 60;
    let mut reconcile = reconcile(&source, Arc::clone(&mirror));
    reconcile.pass(quick).await.unwrap();
    let handle = async |_| {
        let update = renamed(at, &row.id, "Bo", "Cy");
        feed(&mirror, &update).await.unwrap();
        source.change(|service| {
            service.rows[3].name = "Cy".into();
            service.rows[3].updated_at = at;
        });
        Ok::<_, Infallible>(())
    };
    assert_eq!(reconcile.pass(handle).await.unwrap().handled, 1);
    for handled in [1, 0] {
        let is_new = |finding: Reconciled| {
            let Reconciled::Updated(found) = finding else {
                panic!("{finding:?}")
            };
            assert_eq!(json!(found.properties)["Name"], "Cy");
            ready(Ok::<_, Infallible>(()))
        };
        let report = reconcile.pass(is_new).await.unwrap();
        assert_eq!((report.pass.differing, report.handled), (0, handled));
    }
}

/// A late event comes while the row's newer state is repaired, and its handler writes last. The row
/// and its finding's id are as before, so a claim that was kept would hide it.
// fault M3: handlers are slow, and a repair from minutes ago overwrites what an event has written since, for good
// fault M9: an event overtakes the repair of its row, and the claim of the finding is kept: the same finding is never handled again, and its change is lost
#[tokio::test]
async fn a_repair_that_an_event_overtook_is_made_again_with_claims() {
    for (name_of_event, passes) in [("Al", 2), ("Bo", 1)] {
        let source = Source::with_rows(10);
        let mirror = filled(&source).await;
        let before = source.change(|service| service.rows[3].name.clone());
        rename(&source, &[3]);
        let row = source.change(|service| service.rows[3].clone());
        let reconcile = reconcile(&source, Arc::clone(&mirror));
        let mut reconcile = reconcile.claims(MemoryStore::default(), "shop");
        reconcile.pass(quick).await.unwrap();
        let late = renamed(row.updated_at - 1, &row.id, &before, name_of_event);
        let handle = async |_| feed(&mirror, &late).await.map(drop);
        assert_eq!(reconcile.pass(handle).await.unwrap().handled, 1);
        for pass in 1..=3 {
            let report = reconcile.pass(quick).await.unwrap();
            let expected = (u64::from(pass == passes), 0);
            let counts = (report.handled, report.elsewhere);
            assert_eq!(counts, expected, "{name_of_event} {pass}");
        }
    }
}

/// The findings of a page are handled one after the other. An event for the last row comes while
/// the first is handled.
// fault M3: handlers are slow, and a repair from minutes ago overwrites what an event has written since, for good
#[tokio::test]
async fn a_finding_whose_row_had_an_event_meanwhile_is_left_alone() {
    let source = Source::with_rows(10);
    let mirror = filled(&source).await;
    rename(&source, &[3, 7]);
    let last = source.change(|service| service.rows[7].clone());
    let update = renamed(last.updated_at, &last.id, "name 8", "Bo");
    let reconcile = reconcile(&source, Arc::clone(&mirror));
    let mut reconcile = reconcile.claims(MemoryStore::default(), "shop");
    let handled = Mutex::new(0);
    for expected in [(0, 0), (1, 1), (0, 0)] {
        let handle = async |_| {
            *handled.lock().unwrap() += 1;
            feed(&mirror, &update).await.map(drop)
        };
        let report = reconcile.pass(handle).await.unwrap();
        assert_eq!((report.handled, report.elsewhere), expected);
    }
    assert_eq!(handled.into_inner().unwrap(), 1);
}

// fault M4: a handler takes longer than the claim of its finding, and another replica runs it too
#[tokio::test(start_paused = true)]
async fn a_claim_is_renewed_while_its_handler_runs() {
    let source = Source::with_rows(10);
    let mirror = filled(&source).await;
    rename(&source, &[3]);
    let clock = TestClock(Instant::now());
    let store = Arc::new(MemoryStore::default().with_clock(clock));
    let replica = || reconcile(&source, Arc::clone(&mirror)).claims(Arc::clone(&store), "shop");
    let slow = async |_| {
        sleep(Duration::from_secs(600)).await;
        Ok::<_, Infallible>(())
    };
    let (mut one, mut other) = (replica(), replica());
    one.pass(quick).await.unwrap();
    let others = async {
        for _ in 0..9 {
            sleep(Duration::from_secs(59)).await;
            assert_eq!(other.pass(quick).await.unwrap().handled, 0);
        }
        sleep(Duration::from_secs(100)).await;
        other.pass(quick).await.unwrap().pass
    };
    let (one, other) = tokio::join!(one.pass(slow), others);
    assert_eq!((one.unwrap().handled, other.differing), (1, 0));

    // The claim of a replica that died in its handler ends.
    rename(&source, &[4]);
    let (mut died, mut other) = (replica(), replica());
    died.pass(quick).await.unwrap();
    other.pass(quick).await.unwrap();
    let passed = timeout(Duration::from_secs(30), died.pass(slow)).await;
    assert!(passed.is_err());
    assert_eq!(other.pass(quick).await.unwrap().elsewhere, 1);
    sleep(Duration::from_secs(61)).await;
    assert_eq!(other.pass(quick).await.unwrap().handled, 1);
}

// fault M5: the states of deleted rows are kept for ever
#[tokio::test(start_paused = true)]
async fn a_deleted_row_is_forgotten_after_a_week_and_three_complete_passes() {
    const DAY: Duration = Duration::from_secs(86_400);
    // The deletion is written a moment after its pass has begun.
    let slow = async |_| {
        sleep(Duration::from_secs(1)).await;
        Ok::<_, Infallible>(())
    };
    // The days that a row's state is kept for, the days between two passes, and those after which
    // the state is gone.
    for (keep, between, gone_after) in [(7, 1, 7), (0, 1, 3), (7, 10, 30), (30, 1, 30)] {
        let source = Source::with_rows(10);
        let mirror = Arc::new(MemoryMirror::default().with_clock(TestClock(Instant::now())));
        let mut settings = settings(true);
        settings.keep_deleted = DAY * keep;
        let mut filling =
            Reconcile::new(source.clone(), Arc::clone(&mirror), MODEL, settings.clone());
        filling.pass(slow).await.unwrap();
        source.change(|service| service.rows.remove(3));
        settings.is_filling = false;
        let mut reconcile = Reconcile::new(source, Arc::clone(&mirror), MODEL, settings);
        let states = async || mirror.list(&MODEL.into(), None, 100).await.unwrap().len();
        for _ in 0..3 {
            reconcile.pass(slow).await.unwrap();
        }
        let deleted_at = Instant::now();
        while states().await == 10 {
            sleep(DAY * between).await;
            reconcile.pass(slow).await.unwrap();
        }
        assert_eq!(states().await, 9);
        assert_eq!(deleted_at.elapsed(), DAY * gone_after, "{keep} {between}");
    }
}

/// A mirror whose calls fail from this one on.
#[derive(Debug)]
struct Failing {
    mirror: Arc<MemoryMirror>,
    calls: AtomicU64,
    from: Arc<AtomicU64>,
}

impl Failing {
    fn call<'a, T>(&self, call: StoreFuture<'a, T>) -> StoreFuture<'a, T>
    where
        T: Send + 'a,
    {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        if number >= self.from.load(Ordering::Relaxed) {
            return StoreFuture::ready(Err(StoreError::new(StoreErrorKind::Unavailable)));
        }
        call
    }
}

impl Mirror for Failing {
    fn get<'a>(
        &'a self,
        model: &'a DataModelId,
        rows: &'a [RowId],
    ) -> StoreFuture<'a, Vec<(RowId, Mirrored)>> {
        self.call(self.mirror.get(model, rows))
    }

    fn list<'a>(
        &'a self,
        model: &'a DataModelId,
        after: Option<&'a RowId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(RowId, Mirrored)>> {
        self.call(self.mirror.list(model, after, limit))
    }

    fn swap<'a>(
        &'a self,
        model: &'a DataModelId,
        row: &'a RowId,
        revision: u64,
        state: RowState,
    ) -> StoreFuture<'a, bool> {
        self.call(self.mirror.swap(model, row, revision, state))
    }

    fn forget<'a>(&'a self, model: &'a DataModelId, age: Duration) -> StoreFuture<'a, u64> {
        self.call(self.mirror.forget(model, age))
    }
}

/// Whichever call of the mirror is the first that fails: afterwards each change is found once, and
/// nothing else.
#[tokio::test]
async fn a_mirror_that_fails_anywhere_in_a_pass_loses_and_invents_nothing() {
    for fails_from in 0..20 {
        let source = Source::with_rows(700);
        let mirror = filled(&source).await;
        lose_three(&source);
        let from = Arc::new(AtomicU64::new(fails_from));
        let failing = Failing {
            mirror,
            calls: AtomicU64::new(0),
            from: Arc::clone(&from),
        };
        let reconcile = reconcile(&source, failing);
        let mut reconcile = reconcile.claims(MemoryStore::default(), "shop");
        let handled = Kinds::default();
        let mut failures = 0;
        for _ in 0..4 {
            match reconcile.pass(|finding| handled.handle(finding)).await {
                Ok(_) => {}
                Err(ReconcileError::Store(_)) => failures += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(failures > 0, "from call {fails_from}");
        from.store(u64::MAX, Ordering::Relaxed);
        // The claim of a finding whose state was not written runs on for a minute: another replica
        // may be at it.
        for _ in 0..5 {
            let passed = reconcile.pass(|finding| handled.handle(finding)).await;
            passed.unwrap();
        }
        assert_eq!(handled.sorted(), THREE, "{fails_from}");
    }
}

/// A hook may ask at any time, as often as it likes: the reconciliation wakes up, and three passes
/// follow.
#[tokio::test(start_paused = true)]
async fn requests_for_passes_are_merged_and_lead_to_the_three_that_find_a_deletion() {
    let source = Source::with_rows(20);
    let mirror = filled(&source).await;
    lose_three(&source);
    let mut reconcile = reconcile(&source, mirror);
    let requests = reconcile.requests();
    let minute = Duration::from_secs(60);
    let handled = Kinds::default();
    // The passes that are asked for.
    let passes = async |reconcile: &mut Reconcile<_, _>| {
        let mut passes = 0;
        while timeout(minute, reconcile.asked()).await.is_ok() {
            let passed = reconcile.pass(|finding| handled.handle(finding)).await;
            passed.unwrap();
            passes += 1;
        }
        passes
    };
    assert_eq!(passes(&mut reconcile).await, 0);

    let hook = tokio::spawn({
        let requests = requests.clone();
        async move {
            sleep(minute / 2).await;
            for _ in 0..100 {
                requests.ask();
            }
        }
    });
    assert_eq!(passes(&mut reconcile).await, 3);
    hook.await.unwrap();
    assert_eq!(handled.sorted(), THREE);

    // A request during a pass is about a row that this pass may have read already: three more
    // follow.
    requests.ask();
    reconcile.pass(quick).await.unwrap();
    requests.ask();
    assert_eq!(passes(&mut reconcile).await, 3);
}
