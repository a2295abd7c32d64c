//! Guards on routes, around functions and in an inbox.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::{MethodRouter, post};
use hookgate::{
    DeadLetter, Delivery, Event, EventRouter, Outcome, Receiver, Verified,
    dedupe::{StoreError, StoreErrorKind, StoreFuture},
    layer::Answer,
};
use hookgate_order::{
    GapReason, LastHandled, MemoryOrderStore, Order, OrderGuard, OrderService, OrderStore, Ordered,
};
use http::StatusCode;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tower::ServiceExt;

use crate::support::{Received, Sent, ask, receiver, secret};

/// A row event at this second.
fn row(id: &str, second: u32, event_type: &str, data: &str) -> String {
    format!(
        r#"{{"id":"{id}","type":"row.{event_type}","createdAt":"2026-11-21T09:30:{second:02}Z","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1"{data}}}}}"#
    )
}

fn created(id: &str, second: u32, total: &str) -> Sent {
    let properties = format!(r#","properties":{{"Total":{total}}}"#);
    Sent::new(row(id, second, "created", &properties))
}

fn updated(id: &str, second: u32, before: &str, after: &str) -> Sent {
    let changes = format!(r#","changes":{{"Total":{{"before":{before},"after":{after}}}}}"#);
    Sent::new(row(id, second, "updated", &changes))
}

fn deleted(id: &str, second: u32) -> Sent {
    Sent::new(row(id, second, "deleted", ""))
}

/// The reports of a guard, one line each.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn listen(&self, guard: OrderGuard) -> OrderGuard {
        let lines = self.clone();
        guard.on_ordered(move |told| {
            lines.say(line(told));
            if let Some(reason) = told.gap {
                let (id, reason) = (told.delivery.event_id(), reason.name());
                lines.say(format!("{id} {} {} {reason}", told.model, told.row));
            }
        })
    }

    fn say(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    /// Those since the last call.
    fn lines(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap()).join(", ")
    }
}

fn line(told: &Ordered) -> String {
    let overlapped = ["", " overlapped"][usize::from(told.has_overlapped)];
    let (id, order) = (told.delivery.event_id(), told.order.name());
    format!("{id} {order}{overlapped}")
}

/// Answers with the order that it was told.
async fn say(order: Order) -> (StatusCode, &'static str) {
    (StatusCode::OK, order.name())
}

fn guarded(guard: &OrderGuard) -> Router {
    routed(receiver().build().unwrap(), guard, post(say))
}

fn routed(receiver: Receiver, guard: &OrderGuard, handler: MethodRouter) -> Router {
    let route = handler.layer((receiver.layer(), guard.clone()));
    Router::new().route("/hook", route)
}

/// As after a crash between the handler's effect and the commit of its claim: without deduplication
/// each copy runs.
fn without_deduplication() -> Receiver {
    let receiver = Receiver::builder().secret(secret());
    receiver.without_deduplication().build().unwrap()
}

fn guard(store: impl OrderStore) -> (OrderGuard, Told) {
    let told = Told::default();
    (told.listen(OrderGuard::new(store)), told)
}

async fn answers(app: &Router, events: &[Sent]) -> String {
    let mut answers = Vec::new();
    for event in events {
        let Received { status, body, .. } = ask(app, event).await;
        let text = format!("{status} {}", String::from_utf8_lossy(&body));
        answers.push(text.trim_end().to_owned());
    }
    answers.join(", ")
}

/// Sends it from a task of its own.
fn send(app: &Router, event: Sent) -> JoinHandle<Received> {
    let app = app.clone();
    tokio::spawn(async move { ask(&app, &event).await })
}

#[tokio::test]
async fn a_handler_is_told_whether_its_event_is_the_newest_of_its_row() {
    let (guard, told) = guard(MemoryOrderStore::default());
    let app = guarded(&guard);
    let events = [
        created("evt_1", 1, "1"),
        updated("evt_3", 3, "2", "3"),
        updated("evt_2", 2, "1", "2"),
        updated("evt_4", 3, "3", "4"),
        deleted("evt_5", 5),
        updated("evt_6", 4, "4", "5"),
    ];
    let expected = "200 newest, 200 newest, 200 stale, 200 unknown, 200 newest, 200 stale";
    assert_eq!(answers(&app, &events).await, expected);
    let lines = "evt_1 newest, evt_3 newest, evt_3 dm_1 row_1 before_differs, evt_2 stale, \
        evt_4 unknown, evt_5 newest, evt_6 stale";
    assert_eq!(told.lines(), lines);
    // A duplicate is not an event of its own.
    assert!(ask(&app, &events[0]).await.is_replay());
    assert_eq!(told.lines(), "");
}

#[tokio::test]
async fn an_event_router_and_its_arms_are_guarded_as_a_route_is() {
    let (guard, told) = guard(MemoryOrderStore::default());
    let events = EventRouter::new()
        .on_rows("dm_1", say)
        .on("page.created", say);
    let receiver = receiver().build().unwrap();
    let route = events.build().unwrap().layer((receiver.layer(), guard));
    let app = Router::new().route("/hook", route);
    let page = Sent::new(r#"{"id":"evt_p","type":"page.created"}"#);
    let other = Sent::new(r#"{"id":"evt_o","type":"made.up"}"#);
    let events = [deleted("evt_2", 2), deleted("evt_1", 1), page, other];
    let expected = "200 newest, 200 stale, 200 unknown, 204";
    assert_eq!(answers(&app, &events).await, expected);
    assert_eq!(told.lines(), "evt_2 newest, evt_1 stale", "rows only");
}

#[tokio::test]
async fn a_stale_event_is_answered_without_the_handler_where_that_is_set() {
    let (guard, told) = guard(MemoryOrderStore::default());
    let answered = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&answered);
    let receiver = receiver().on_answer(move |answer: &Answer| {
        let told = (answer.outcome, answer.to_string());
        log.lock().unwrap().push(told);
    });
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let handler = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { StatusCode::CREATED }
    };
    let app = routed(
        receiver.build().unwrap(),
        &guard.skip_stale(),
        post(handler),
    );
    let events = [
        updated("evt_2", 2, "1", "2"),
        updated("evt_1", 1, "0", "1"),
        updated("evt_3", 2, "1", "3"),
    ];
    assert_eq!(answers(&app, &events).await, "201, 204, 201");
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    assert_eq!(told.lines(), "evt_2 newest, evt_1 stale, evt_3 unknown");
    let (outcome, said) = answered.lock().unwrap()[1].clone();
    assert_eq!(outcome, Outcome::Handled);
    assert!(said.contains("204 handled: stale: a newer event"), "{said}");
    // It is done: a copy of it does not come back.
    assert!(ask(&app, &events[1]).await.is_replay());
}

/// The update is newer than the deletion, so that the row may have been created again.
// fault G4: where stale events are skipped, an update that is newer than the row's deletion is discarded
#[tokio::test]
async fn an_update_of_a_deleted_row_is_not_skipped() {
    let (guard, told) = guard(MemoryOrderStore::default());
    let app = guarded(&guard.skip_stale());
    let events = [
        deleted("evt_5", 5),
        updated("evt_4", 4, "1", "2"),
        updated("evt_7", 7, "1", "2"),
        created("evt_6", 6, "1"),
        updated("evt_8", 8, "2", "3"),
    ];
    let expected = "200 newest, 204, 200 unknown, 204, 200 newest";
    assert_eq!(answers(&app, &events).await, expected);
    let lines = "evt_5 newest, evt_4 stale, evt_7 unknown, evt_7 dm_1 row_1 not_created, \
        evt_6 stale, evt_8 newest";
    assert_eq!(told.lines(), lines);
}

#[tokio::test]
async fn an_event_whose_handler_fails_is_not_recorded() {
    let (guard, told) = guard(MemoryOrderStore::default());
    let script = Mutex::new(VecDeque::from([500, 422, 0, 1, 302, 200]));
    let script = Arc::new(script);
    let handler = async move |order: Order| {
        let status = script.lock().unwrap().pop_front().unwrap_or(200);
        match status {
            0 => panic!("made up"),
            1 => Err(DeadLetter::new("made up")),
            _ => Ok((StatusCode::from_u16(status).unwrap(), order.name())),
        }
    };
    let receiver = receiver().on_dead_letter(async |_, _| Ok(()));
    let app = routed(receiver.build().unwrap(), &guard, post(handler));
    for (id, status) in [
        ("evt_9", 500),
        ("evt_8", 422),
        ("evt_7", 500),
        ("evt_6", 200),
        ("evt_5", 302),
    ] {
        assert_eq!(ask(&app, &deleted(id, 50)).await.status, status, "{id}");
        assert_eq!(told.lines(), "", "{id}");
    }
    assert_eq!(answers(&app, &[deleted("evt_1", 1)]).await, "200 newest");
    assert_eq!(told.lines(), "evt_1 newest");
}

#[tokio::test]
async fn the_same_event_again_is_judged_as_the_first_time() {
    let (guard, told) = guard(MemoryOrderStore::default());
    let app = routed(without_deduplication(), &guard, post(say));
    let (first, gap) = (created("evt_1", 1, "1"), updated("evt_2", 2, "7", "8"));
    let events = [&first, &first, &gap, &gap, &first, &first].map(Clone::clone);
    let expected = "200 newest, 200 newest, 200 newest, 200 newest, 200 stale, 200 stale";
    assert_eq!(answers(&app, &events).await, expected);
    assert_eq!(
        told.lines().matches("differs").count(),
        1,
        "a gap is told once"
    );
}

/// The older of two events is handled while another process gets the newer one.
#[tokio::test]
async fn events_that_overlap_are_reported_and_the_record_is_that_of_the_newer() {
    let store = MemoryOrderStore::default();
    let (guard, told) = guard(store.clone());
    let other = guarded(&told.listen(OrderGuard::new(store)));
    let held = Held::new(0);
    let app = routed(receiver().build().unwrap(), &guard, held.route("evt_slow"));
    let slow = send(&app, updated("evt_slow_1", 1, "0", "1"));
    held.begun.notified().await;
    let newer = updated("evt_5", 5, "1", "5");
    assert_eq!(answers(&other, &[newer]).await, "200 newest");
    held.may_end.add_permits(1);
    assert_eq!(
        slow.await.unwrap().body,
        "newest",
        "as far as it could know"
    );
    assert_eq!(told.lines(), "evt_5 newest, evt_slow_1 newest overlapped");
    // The record is that of the newer one.
    let events = [updated("evt_4", 4, "3", "4"), updated("evt_6", 6, "5", "6")];
    assert_eq!(answers(&app, &events).await, "200 stale, 200 newest");
    assert_eq!(told.lines(), "evt_4 stale, evt_6 newest");

    // The other way round, the newer one ends last: it is judged again, and is still the newest.
    let slow = send(&app, of_row_2(deleted("evt_slow_2", 59)));
    held.begun.notified().await;
    let older = of_row_2(deleted("evt_8", 8));
    assert_eq!(answers(&other, &[older]).await, "200 newest");
    held.may_end.add_permits(1);
    slow.await.unwrap();
    assert_eq!(told.lines(), "evt_8 newest, evt_slow_2 newest overlapped");
}

/// A handler that is held for some events.
struct Held {
    begun: Arc<Notify>,
    may_end: Arc<Semaphore>,
}

impl Held {
    /// So many of them may end at once.
    fn new(may_end: usize) -> Self {
        Self {
            begun: Arc::default(),
            may_end: Arc::new(Semaphore::new(may_end)),
        }
    }

    /// Those whose id begins so are held.
    fn route(&self, ids: &'static str) -> MethodRouter {
        let (begun, may_end) = (Arc::clone(&self.begun), Arc::clone(&self.may_end));
        post(async move |delivery: Delivery, order: Order| {
            if delivery.event_id().starts_with(ids) {
                begun.notify_one();
                may_end.acquire().await.unwrap().forget();
            }
            order.name()
        })
    }
}

fn of_row_2(event: Sent) -> Sent {
    let body = String::from_utf8(event.body.to_vec()).unwrap();
    Sent::new(body.replace("row_1", "row_2"))
}

/// The newest event is repeated, and leaves the record as it is: a newer one is handled while it
/// runs.
// fault G5: a repeat of the newest event runs while a newer one is handled, ends last, and is not reported as overlapped
#[tokio::test]
async fn a_repeated_event_that_overlaps_a_newer_one_is_reported() {
    let store = MemoryOrderStore::default();
    let (guard, told) = guard(store.clone());
    let other = guarded(&told.listen(OrderGuard::new(store)));
    let held = Held::new(1);
    let app = routed(without_deduplication(), &guard, held.route("evt_1"));
    let first = created("evt_1", 1, "1");
    ask(&app, &first).await;
    held.begun.notified().await;
    let again = send(&app, first);
    held.begun.notified().await;
    ask(&other, &updated("evt_2", 2, "1", "2")).await;
    held.may_end.add_permits(1);
    assert_eq!(again.await.unwrap().body, "newest");
    let lines = "evt_1 newest, evt_2 newest, evt_1 newest overlapped";
    assert_eq!(told.lines(), lines);
}

/// The handler of each row, which must not overlap itself.
#[derive(Clone, Default)]
struct Slow {
    running: Arc<Mutex<HashMap<String, usize>>>,
    handled: Arc<Mutex<Vec<String>>>,
}

impl Slow {
    fn handled(&self) -> String {
        self.handled.lock().unwrap().join(", ")
    }

    /// Takes as many seconds as the event's id ends with.
    async fn handle(self, event: Event, order: Order) -> &'static str {
        let row = event.data.row_id().unwrap().to_string();
        let count = |by: isize| {
            let mut running = self.running.lock().unwrap();
            let here = running.entry(row.clone()).or_default();
            *here = here.checked_add_signed(by).unwrap();
            assert!(*here <= 1, "two events of {row} overlap");
        };
        count(1);
        let (_, seconds) = event.id.as_str().rsplit_once('_').unwrap();
        tokio::time::sleep(Duration::from_secs(seconds.parse().unwrap())).await;
        count(-1);
        self.handled.lock().unwrap().push(event.id.to_string());
        order.name()
    }
}

fn slow(guard: &OrderGuard) -> (Router, Slow) {
    let slow = Slow::default();
    let handler = slow.clone();
    let handler = move |event: Event, order: Order| handler.clone().handle(event, order);
    let app = routed(receiver().build().unwrap(), guard, post(handler));
    (app, slow)
}

/// Both are the newest as far as each could know alone: their times are equal.
// fault G8: two events of one row are handled side by side in one process, and the handler of the older one writes last
#[tokio::test(start_paused = true)]
async fn two_events_of_a_row_are_handled_one_after_the_other_and_other_rows_do_not_wait() {
    let (guard, told) = guard(MemoryOrderStore::default());
    let (app, slow) = slow(&guard);
    let asked = tokio::time::Instant::now();
    let first = send(&app, created("evt_a_3", 5, "1"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let second = send(&app, deleted("evt_b_1", 5));
    let other = send(&app, of_row_2(deleted("evt_c_1", 5)));
    assert_eq!(other.await.unwrap().body, "newest");
    assert_eq!(asked.elapsed().as_secs(), 2, "another row");
    assert_eq!(first.await.unwrap().body, "newest");
    assert_eq!(second.await.unwrap().body, "unknown");
    assert_eq!(asked.elapsed().as_secs(), 4);
    let lines = "evt_c_1 newest, evt_a_3 newest, evt_b_1 unknown";
    assert_eq!(told.lines(), lines);
    assert_eq!(slow.handled(), "evt_c_1, evt_a_3, evt_b_1");
}

/// The run of the first one goes on after its answer, and is waited for by the second's retries
/// too.
// fault G8: two events of one row are handled side by side in one process, and the handler of the older one writes last
#[tokio::test(start_paused = true)]
async fn an_event_that_waits_too_long_for_its_row_is_answered_503_and_handled_by_a_retry() {
    let (guard, told) = guard(MemoryOrderStore::default());
    let (app, slow) = slow(&guard);
    let (first, second) = (created("evt_a_90", 1, "1"), updated("evt_b_0", 2, "1", "2"));
    let begun = tokio::time::Instant::now();
    let answers = tokio::join!(ask(&app, &first), ask(&app, &second));
    assert_eq!((answers.0.status, answers.1.status), (503, 503));
    assert!(answers.1.headers.contains_key("retry-after"));
    assert!(begun.elapsed() < Duration::from_millis(4_600), "the budget");
    let mut waited = Vec::new();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(30)).await;
        waited.push(ask(&app, &second).await.status);
    }
    assert_eq!(waited, [503, 503, 200]);
    assert!(ask(&app, &first).await.is_replay());
    assert_eq!(told.lines(), "evt_a_90 newest, evt_b_0 newest");
    assert_eq!(slow.handled(), "evt_a_90, evt_b_0");
}

/// What a call of a store does instead.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Fails,
    Panics,
    Hangs,
    /// Takes effect, and its reply is lost.
    LosesReply,
}

/// A store whose calls have faults: of reading, and of writing.
#[derive(Clone, Debug, Default)]
struct Faulty {
    store: MemoryOrderStore,
    faults: Arc<Mutex<(Option<Fault>, Option<Fault>)>>,
}

impl Faulty {
    fn call<'a, T: Send + 'a>(
        fault: Option<Fault>,
        call: StoreFuture<'a, T>,
    ) -> StoreFuture<'a, T> {
        let down = || Err(StoreError::new(StoreErrorKind::Unavailable));
        match fault {
            None => call,
            Some(Fault::Fails) => StoreFuture::ready(down()),
            Some(Fault::Panics) => panic!("made-up panic of a store"),
            Some(Fault::Hangs) => StoreFuture::boxed(std::future::pending()),
            Some(Fault::LosesReply) => StoreFuture::boxed(async move {
                call.await?;
                down()
            }),
        }
    }
}

impl OrderStore for Faulty {
    fn last<'a>(&'a self, row: &'a [u8; 16]) -> StoreFuture<'a, Option<(u64, LastHandled)>> {
        let (fault, _) = *self.faults.lock().unwrap();
        Self::call(fault, self.store.last(row))
    }

    fn swap<'a>(
        &'a self,
        row: &'a [u8; 16],
        revision: u64,
        last: LastHandled,
        retain: Duration,
    ) -> StoreFuture<'a, bool> {
        let (_, fault) = *self.faults.lock().unwrap();
        // The call itself is the effect: a fault that hinders it must come before.
        match fault {
            None | Some(Fault::LosesReply) => {
                Self::call(fault, self.store.swap(row, revision, last, retain))
            }
            Some(_) => Self::call(fault, StoreFuture::ready(Ok(false))),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_in_any_way_is_answered_503_and_no_order_is_guessed() {
    let store = Faulty::default();
    let (guard, told) = guard(store.clone());
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let handler = move |order: Order| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { order.name() }
    };
    // A run that waits for the store's reply outlives its request.
    let app = routed(receiver().build().unwrap(), &guard, post(handler));
    let faults = [Fault::Fails, Fault::Panics, Fault::Hangs, Fault::LosesReply];
    for (number, fault) in (1..).zip(faults) {
        let event = deleted(&format!("evt_{number}"), number);
        *store.faults.lock().unwrap() = (Some(fault), None);
        let answer = ask(&app, &event).await;
        assert_eq!(answer.status, 503, "{fault:?}");
        assert!(answer.headers.contains_key("retry-after"), "{fault:?}");
        assert_eq!(runs.swap(0, Ordering::SeqCst), 0, "{fault:?}");

        *store.faults.lock().unwrap() = (None, Some(fault));
        assert_eq!(ask(&app, &event).await.status, 503, "{fault:?}");
        assert_eq!(runs.swap(0, Ordering::SeqCst), 1, "{fault:?}");
        // The run that waits ends after 10 s, and is released.
        tokio::time::sleep(Duration::from_secs(12)).await;
        assert_eq!(told.lines(), "", "{fault:?}");

        *store.faults.lock().unwrap() = (None, None);
        assert_eq!(answers(&app, &[event]).await, "200 newest", "{fault:?}");
        assert_eq!(runs.swap(0, Ordering::SeqCst), 1, "{fault:?}");
        assert_eq!(told.lines(), format!("evt_{number} newest"));
    }
}

/// Keeps nothing but the rows that it was asked for, and says of each record whether it was
/// written.
#[derive(Clone, Debug, Default)]
struct Forgetful {
    writes: bool,
    asked: Arc<Mutex<Vec<[u8; 16]>>>,
}

impl OrderStore for Forgetful {
    fn last<'a>(&'a self, row: &'a [u8; 16]) -> StoreFuture<'a, Option<(u64, LastHandled)>> {
        self.asked.lock().unwrap().push(*row);
        StoreFuture::ready(Ok(None))
    }

    fn swap<'a>(
        &'a self,
        _: &'a [u8; 16],
        _: u64,
        _: LastHandled,
        _: Duration,
    ) -> StoreFuture<'a, bool> {
        StoreFuture::ready(Ok(self.writes))
    }
}

/// Another writer is always faster.
#[tokio::test]
async fn a_record_that_can_never_be_written_is_an_answer_and_no_endless_loop() {
    let (guard, told) = guard(Forgetful::default());
    let app = guarded(&guard);
    assert_eq!(answers(&app, &[deleted("evt_1", 1)]).await, "503");
    assert_eq!(told.lines(), "");
}

#[tokio::test]
async fn a_gap_is_told_and_a_row_from_before_the_guard_is_none() {
    let (plain, told) = guard(MemoryOrderStore::default());
    let app = guarded(&plain);
    let events = [
        updated("evt_1", 1, "7", "8.50"),
        updated("evt_2", 2, "85e-1", "9"),
        updated("evt_3", 3, "8", "10"),
        deleted("evt_4", 4),
        updated("evt_5", 5, "10", "11"),
    ];
    answers(&app, &events).await;
    let lines = told.lines();
    let gaps: Vec<_> = lines
        .split(", ")
        .filter(|line| line.contains("dm_1"))
        .collect();
    let expected = [
        "evt_3 dm_1 row_1 before_differs",
        "evt_5 dm_1 row_1 not_created",
    ];
    assert_eq!(gaps, expected);

    // Where every creation was seen, a row without a record is a gap.
    let (strict, told) = guard(MemoryOrderStore::default());
    answers(&guarded(&strict.expect_creations()), &events[..2]).await;
    let lines = "evt_1 newest, evt_1 dm_1 row_1 not_created, evt_2 newest";
    assert_eq!(told.lines(), lines);
    assert_eq!(GapReason::NotCreated.name(), "not_created");
}

#[tokio::test]
async fn a_record_is_kept_for_its_retention_which_covers_the_senders_retries() {
    let clock = crate::support::manual();
    let hours = |hours: u64| Duration::from_secs(hours * 3_600);
    for (retention, kept, ended) in [
        (None, hours(7 * 24 - 1), hours(2)),
        (Some(hours(1)), hours(26), hours(1)),
        (Some(hours(48)), hours(47), hours(2)),
    ] {
        let store = MemoryOrderStore::default().with_clock(clock.clone());
        let guard = OrderGuard::new(store);
        let app = guarded(&match retention {
            Some(retention) => guard.retention(retention),
            None => guard,
        });
        let [newer, old, older] =
            [("evt_9", 9), ("evt_2", 2), ("evt_1", 1)].map(|(id, at)| deleted(id, at));
        let answer = async |event| answers(&app, &[event]).await;
        assert_eq!(answer(newer).await, "200 newest");
        clock.advance(kept);
        assert_eq!(answer(old).await, "200 stale", "{retention:?}");
        clock.advance(ended);
        assert_eq!(answer(older).await, "200 newest", "{retention:?}");
    }
}

#[tokio::test]
async fn a_hook_that_panics_changes_nothing() {
    let guard = OrderGuard::new(MemoryOrderStore::default())
        .expect_creations()
        .on_ordered(|_| panic!("made-up panic of a hook"));
    let app = guarded(&guard);
    let events = [updated("evt_2", 2, "1", "2"), updated("evt_1", 1, "1", "2")];
    assert_eq!(answers(&app, &events).await, "200 newest, 200 stale");
}

#[tokio::test]
async fn a_body_that_is_not_an_event_is_refused_by_the_handler() {
    let (guard, told) = guard(Forgetful::default());
    let handler = async |order: Order, _: Event| order.name();
    let app = routed(receiver().build().unwrap(), &guard, post(handler));
    let broken = Sent::new(r#"{"id":"evt_1","type":"row.created","data":7}"#);
    let page =
        r#"{"id":"evt_2","type":"page.created","createdAt":"","workspaceId":"ws_1","data":{}}"#;
    assert_eq!(ask(&app, &broken).await.status, 422);
    assert_eq!(answers(&app, &[Sent::new(page)]).await, "200 unknown");
    assert_eq!(told.lines(), "");
}

#[tokio::test]
async fn rows_of_two_scopes_are_two_rows() {
    let (guard, _) = guard(MemoryOrderStore::default());
    let app = |scope: &str| routed(receiver().scope(scope).build().unwrap(), &guard, post(say));
    let (shop, ledger) = (app("shop"), app("ledger"));
    // Also with the same digest of texts that are cut elsewhere.
    let other = row("evt_3", 1, "deleted", "").replace(r#""dm_1""#, r#""dm_1r""#);
    let other = Sent::new(other.replace("row_1", "ow_1"));
    for (app, event, expected) in [
        (&shop, deleted("evt_2", 2), "200 newest"),
        (&ledger, deleted("evt_1", 1), "200 newest"),
        (&shop, deleted("evt_1", 1), "200 stale"),
        (&shop, other, "200 newest"),
    ] {
        assert_eq!(answers(app, &[event]).await, expected);
    }
}

/// The key is a stored format: a record that was kept before an update must be found after it.
#[tokio::test]
async fn the_key_of_a_row_is_the_same_in_every_version() {
    let store = Forgetful {
        writes: true,
        ..Forgetful::default()
    };
    let app = guarded(&guard(store.clone()).0);
    assert_eq!(answers(&app, &[deleted("evt_1", 1)]).await, "200 newest");
    // sha256(u64le(7) ‖ "default" ‖ u64le(4) ‖ "dm_1" ‖ u64le(5) ‖ "row_1"), first 16 bytes,
    // computed with Python's hashlib.
    let expected = 0x106a_816a_a9c1_7309_96fd_7a19_d550_7a34_u128;
    assert_eq!(store.asked.lock().unwrap()[..], [expected.to_be_bytes()]);
}

#[test]
fn the_types_of_a_guard_cross_threads() {
    fn crosses_threads<T: Send + Sync + 'static>() {}
    crosses_threads::<OrderGuard>();
    crosses_threads::<OrderService<()>>();
    crosses_threads::<MemoryOrderStore>();
    crosses_threads::<Ordered>();
    crosses_threads::<Box<dyn OrderStore>>();
}

// fault H3: a handler takes the order of its event without a guard: the sender is answered 500, and the operator is told no reason
#[tokio::test]
async fn a_guard_in_the_wrong_place_is_an_answer_that_names_the_line() {
    let (guard, _) = guard(MemoryOrderStore::default());
    let told = Arc::new(Mutex::new(Vec::new()));
    let operator = Arc::clone(&told);
    let receiver =
        receiver().on_failed(move |failed| operator.lock().unwrap().push(failed.to_string()));
    let receiver = receiver.build().unwrap();
    let none = Router::new().route("/hook", post(say).layer(receiver.layer()));
    let outside = none.clone().layer(guard);
    for (id, app) in [("evt_1", outside), ("evt_2", none)] {
        let Received { status, body, .. } = ask(&app, &deleted(id, 1)).await;
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let message = body["error"]["message"].as_str().unwrap();
        assert_eq!(status, 500);
        assert!(
            message.contains(".layer((receiver.layer(), guard))"),
            "{message}"
        );
    }
    let told = told.lock().unwrap();
    assert!(
        matches!(&told[..], [one] if one.starts_with("handler_status: no order in this request: ")),
        "{told:?}"
    );
}

/// The verified delivery and the body are there as without a guard.
#[tokio::test]
async fn a_guard_leaves_the_rest_of_the_request_as_it_is() {
    let (guard, _) = guard(MemoryOrderStore::default());
    let handler = async |verified: Verified, order: Option<Delivery>, body: bytes::Bytes| {
        assert_eq!(verified.body(), &body[..]);
        order.unwrap().event_id().to_owned()
    };
    let app = routed(receiver().build().unwrap(), &guard, post(handler));
    assert_eq!(answers(&app, &[deleted("evt_1", 1)]).await, "200 evt_1");
}

#[tokio::test]
async fn a_function_of_an_event_and_its_order_needs_no_tower() {
    let (guard, told) = guard(MemoryOrderStore::default());
    let receiver = receiver().build().unwrap();
    let handler = async |event: Event, order: Order| {
        let text = format!("{} {}", event.id, order.name());
        (StatusCode::OK, text.into())
    };
    for (sent, expected) in [
        (deleted("evt_2", 2), "evt_2 newest"),
        (deleted("evt_1", 1), "evt_1 stale"),
    ] {
        let answer = receiver.handle(whole(&sent), guard.ordered(handler)).await;
        assert_eq!(answer.body(), expected);
    }
    // Its argument does not fit: 422, and nothing is recorded.
    let misfit = guard.ordered(async |_: Event<Vec<u8>>, _: Order| {});
    let refused = receiver
        .handle(whole(&created("evt_3", 3, "1")), misfit)
        .await;
    assert_eq!(refused.status(), 422);
    assert_eq!(told.lines(), "evt_2 newest, evt_1 stale");
}

fn whole(sent: &Sent) -> http::Request<http_body_util::Full<bytes::Bytes>> {
    sent.request_with(sent.body.clone().into())
}

/// One event of a row at a time: 40 in a shuffled order, several workers, none overlapping, and the
/// last state is that of the newest.
#[tokio::test(flavor = "multi_thread")]
async fn in_an_inbox_with_one_event_of_a_row_at_a_time_the_order_is_exact() {
    use hookgate::sink::Sink;
    use hookgate_inbox::Workers;
    use hookgate_sqlite::open_inbox;
    use tower_layer::Layer as _;

    for as_service in [true, false] {
        let folder = format!("order-inbox-{as_service}-{}", std::process::id());
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let inbox = open_inbox(folder.join("inbox.db")).unwrap();
        let mut seconds: Vec<u32> = (1..=40).collect();
        fastrand::Rng::with_seed(7).shuffle(&mut seconds);
        for second in &seconds {
            let body = row(&format!("evt_{second}"), *second, "deleted", "");
            let delivery = hookgate_testing::delivery(&body).unwrap();
            let retention = Duration::from_secs(3_600);
            inbox.accept(&delivery, retention).await.unwrap();
        }
        let (ended, mut all_ended) = tokio::sync::mpsc::unbounded_channel();
        let guard = OrderGuard::new(MemoryOrderStore::default()).on_ordered(move |told| {
            assert!(!told.has_overlapped, "{}", line(told));
            ended.send(line(told)).unwrap();
        });
        // The row's state, as an upsert would leave it. It fails now and then: the event comes
        // again, later.
        let state = Arc::new(Mutex::new(String::new()));
        let tries = Arc::new(AtomicUsize::new(0));
        let write = {
            let state = Arc::clone(&state);
            move |delivery: &Delivery, order: Order| {
                if tries.fetch_add(1, Ordering::SeqCst).is_multiple_of(5) {
                    return StatusCode::INTERNAL_SERVER_ERROR;
                }
                if order == Order::Newest {
                    *state.lock().unwrap() = delivery.event_id().to_owned();
                }
                StatusCode::NO_CONTENT
            }
        };
        let pause = Duration::from_millis(5);
        let workers = Workers::new(&inbox).serial_by_row();
        let workers = workers.backoff(hookgate_inbox::Backoff::exponential(pause, pause));
        let handler = async move |delivery: Delivery, order: Order| write(&delivery, order);
        let running = match as_service {
            true => workers.start(guard.layer(post(handler))),
            false => workers.start_handler(guard.ordered(handler)),
        };
        let running = running.unwrap();
        let mut lines = Vec::new();
        while lines.len() < 40 {
            lines.push(all_ended.recv().await.unwrap());
        }
        running.shutdown(Duration::from_secs(30)).await;
        assert_eq!(*state.lock().unwrap(), "evt_40");
        let newest = lines.iter().position(|line| line == "evt_40 newest");
        let stale = |line: &String| line.ends_with(" stale");
        assert!(lines[newest.unwrap() + 1..].iter().all(stale), "{lines:?}");
        drop(inbox);
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// The future of a guard is `Send`, and its service works with `oneshot` over any request body.
#[tokio::test]
async fn a_guard_works_over_plain_tower_services() {
    let (guard, _) = guard(MemoryOrderStore::default());
    let receiver = receiver().build().unwrap();
    let service = tower::ServiceBuilder::new()
        .layer(receiver.layer())
        .layer(guard)
        .service(tower::service_fn(
            async |request: http::Request<hookgate::layer::VerifiedBody>| {
                let order = *request.extensions().get::<Order>().unwrap();
                Ok::<_, std::convert::Infallible>(http::Response::new(order.name().to_owned()))
            },
        ));
    for (sent, expected) in [
        (deleted("evt_2", 2), "newest"),
        (deleted("evt_1", 1), "stale"),
    ] {
        let answer = tokio::spawn(service.clone().oneshot(whole(&sent)));
        let answer = answer.await.unwrap();
        let Received { body, .. } = Received::of(answer.unwrap()).await;
        assert_eq!(body, expected);
    }
}
