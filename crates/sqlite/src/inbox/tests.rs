//! Tests of the engine in one process; tests with two processes, or with a failing disk, are in
//! `tests/servers`.

mod calls;
#[path = "../../../inbox/src/contract/cases.rs"]
mod cases;
mod hostile;
mod model;
mod upkeep;

use std::time::Duration;

use bytes::Bytes;
use hookgate::{
    Delivery, block_on,
    clock::{ManualClock, UnixSeconds},
    dedupe::EventKey,
    internal::body_digest,
    sink::Sink,
};
use hookgate_inbox::contract::{self, Subject, Time};
use hookgate_inbox::engine::Job;
use hookgate_inbox::{EntryState, Inbox};
use rusqlite::Connection;

use super::*;
use crate::tests::Folder;

const DAY: Duration = Duration::from_secs(86_400);
const SECOND: Duration = Duration::from_secs(1);

fn manual() -> ManualClock {
    ManualClock::at(UnixSeconds::new(1_763_690_000))
}

fn engine(folder: &Folder, clock: &ManualClock) -> SqliteEngine {
    let options = InboxOptions::default().clock(clock.clone());
    SqliteEngine::open(&folder.file(), &options).unwrap()
}

/// Opens the file as another program does.
fn outside(folder: &Folder) -> Connection {
    Connection::open(folder.file()).unwrap()
}

fn entry(id: &str, row: Option<&str>) -> Entry {
    let body = Bytes::from(format!("{{\"id\":\"{id}\"}}"));
    Entry {
        key: EventKey::new("default", id),
        row: row.map(|row| EventKey::new("default", row)),
        digest: body_digest(&body),
        event_id: id.to_owned(),
        event_type: "row.created".to_owned(),
        timestamp: "1763690000".to_owned(),
        received_at: UnixSeconds::new(1_763_690_000),
        scope: "default".to_owned(),
        key_name: "default".to_owned(),
        subscription_id: None,
        pinned_workspace: None,
        body,
        traceparent: None,
    }
}

fn delivery(id: &str) -> Delivery {
    hookgate_testing::delivery(format!(r#"{{"id":"{id}","type":"page.created"}}"#)).unwrap()
}

fn request() -> LeaseRequest {
    LeaseRequest {
        most: 10,
        lease: 30 * SECOND,
        max_tries: 3,
        run_within: None,
        serial_by_row: false,
        except: Vec::new(),
    }
}

fn accept(engine: &SqliteEngine, id: &str) -> Accepted {
    block_on(engine.accept(entry(id, None), 2 * DAY)).unwrap()
}

fn lease(engine: &SqliteEngine) -> Vec<Job> {
    block_on(engine.lease(request())).unwrap().jobs
}

fn stats(engine: &SqliteEngine) -> InboxStats {
    block_on(engine.stats()).unwrap()
}

// fault Q3: a worker that stood still settles over its successor
// fault Q6: two jobs of one row run at a time
// fault Q7: a retry without a wait, or with one that is not written down
// fault Q18: what runs in this process is leased a second time, or its row, where its entry waits again
// fault Q19: workers ask again and again for an entry whose row runs
// fault F13: a handler commits and its process dies; days later the claim is forgotten, and the entry has a second effect
#[tokio::test]
async fn sqlite_passes_what_every_engine_must() {
    // Kept until the last test has ended.
    let folder = std::sync::Arc::new(Folder::new());
    let files = std::sync::Arc::clone(&folder);
    contract::run_all(move |test| {
        let clock = manual();
        let options = InboxOptions::default().clock(clock.clone());
        let file = files.0.join(format!("{test}.db"));
        let engine = SqliteEngine::open(&file, &options).unwrap();
        async move { Subject::new(Arc::new(engine), Time::Manual(clock)) }
    })
    .await;
}

#[test]
fn an_entry_is_accepted_once_leased_and_done() {
    let (folder, clock) = (Folder::new(), manual());
    let engine = engine(&folder, &clock);
    assert_eq!(accept(&engine, "evt_1"), Accepted::New);
    assert_eq!(
        accept(&engine, "evt_1"),
        Accepted::Duplicate { same_body: true }
    );
    let mut other = entry("evt_1", None);
    other.digest += 1;
    assert_eq!(
        block_on(engine.accept(other, DAY)).unwrap(),
        Accepted::Duplicate { same_body: false }
    );
    clock.advance(SECOND);
    let jobs = lease(&engine);
    assert_eq!(jobs.len(), 1);
    let job = &jobs[0];
    assert_eq!((job.tries, job.waited), (1, SECOND));
    assert_eq!(job.entry.body, entry("evt_1", None).body);
    assert!(lease(&engine).is_empty());
    let renewed = engine.renew(job.id, job.token, 30 * SECOND);
    assert_eq!(block_on(renewed).unwrap(), Ownership::Held);
    let other = ClaimToken::new(b"");
    for (token, expected) in [
        (other, Ownership::Lost),
        (job.token, Ownership::Held),
        (job.token, Ownership::Held),
    ] {
        let settled = block_on(engine.settle(job.id, token, End::Done)).unwrap();
        assert_eq!(settled, expected);
    }
    let (listed, shown) = block_on(engine.show(job.id)).unwrap().unwrap();
    assert_eq!((listed.state, listed.body_bytes), (EntryState::Done, 0));
    assert!(shown.body.is_empty());
    let now = stats(&engine);
    assert_eq!((now.queued, now.running, now.done, now.dead), (0, 0, 1, 0));
    assert_eq!(now.oldest, None);
    assert_eq!(
        accept(&engine, "evt_1"),
        Accepted::Duplicate { same_body: true }
    );
    clock.advance(2 * DAY);
    assert_eq!(accept(&engine, "evt_1"), Accepted::New);
    assert_eq!(stats(&engine).done, 0);
}

/// Accepts so many entries at once that they share commits.
async fn accept_all(engine: &Arc<SqliteEngine>, entries: impl Iterator<Item = Entry>) {
    let entries: Vec<_> = entries.collect();
    for chunk in entries.chunks(1_000) {
        let calls = chunk.iter().map(|entry| {
            let (engine, entry) = (Arc::clone(engine), entry.clone());
            async move { engine.accept(entry, 2 * DAY).await }
        });
        for call in calls.map(tokio::spawn).collect::<Vec<_>>() {
            assert_eq!(call.await.unwrap().unwrap(), Accepted::New);
        }
    }
}

/// The first thousand entries in time, and more, are all of one row, on which one event runs.
// fault Q25: a lease by row reads the whole backlog of a row that runs, and events of other rows wait for seconds
#[tokio::test]
async fn a_row_with_very_many_entries_keeps_no_other_waiting() {
    let (folder, clock) = (Folder::new(), manual());
    let engine = Arc::new(engine(&folder, &clock));
    let hot = (0..1_500).map(|number| entry(&format!("evt_hot_{number}"), Some("hot")));
    accept_all(&engine, hot).await;
    clock.advance(SECOND);
    let others = (0..5).map(|number| {
        let row = format!("row_{number}");
        entry(
            &format!("evt_{number}"),
            Some(&row).filter(|_| number > 0).map(String::as_str),
        )
    });
    accept_all(&engine, others).await;
    let mut found = Vec::new();
    // The first search over the rows may end with the last row.
    for _ in 0..2 {
        let batch = engine
            .lease(LeaseRequest {
                serial_by_row: true,
                ..request()
            })
            .await
            .unwrap();
        found.extend(batch.jobs.into_iter().map(|job| job.entry.event_id));
    }
    found.sort();
    assert_eq!(
        found,
        ["evt_0", "evt_1", "evt_2", "evt_3", "evt_4", "evt_hot_0"]
    );
    let batch = engine
        .lease(LeaseRequest {
            serial_by_row: true,
            ..request()
        })
        .await
        .unwrap();
    assert!(batch.jobs.is_empty());
    assert_eq!(batch.next_in, Some(Duration::from_millis(250)));
}

/// A row has many entries, one of which runs, and each of very many other rows has one entry, which
/// has failed and is not due yet.
// fault Q32: a hundred thousand rows in back-off keep an event of another row waiting for 25 s, beside a backlog of a row that runs
#[tokio::test]
async fn rows_in_back_off_keep_no_other_row_waiting() {
    const ROWS: u32 = 20_000;
    let (folder, clock) = (Folder::new(), manual());
    let engine = Arc::new(engine(&folder, &clock));
    let hot = (0..1_100).map(|number| entry(&format!("evt_hot_{number}"), Some("hot")));
    accept_all(&engine, hot).await;
    let serial = || LeaseRequest {
        serial_by_row: true,
        ..request()
    };
    assert_eq!(engine.lease(serial()).await.unwrap().jobs.len(), 1);
    let failed = format!(
        "WITH RECURSIVE n (e) AS (SELECT 1 UNION ALL SELECT e + 1 FROM n WHERE e < {ROWS})
         INSERT INTO entries (key, digest, state, until, since, tries, token, row, accepted_at, forget_at, received_at, body_bytes,
           event_id, event_type, timestamp, scope, key_name)
         SELECT randomblob(16), 0, 0, until + 3600000, since, 1, randomblob(16), randomblob(16), accepted_at, forget_at, received_at, 2,
           'evt_failed_' || e, event_type, timestamp, scope, key_name
         FROM n, entries WHERE event_id = 'evt_hot_1'"
    );
    Connection::open(folder.file())
        .unwrap()
        .execute_batch(&failed)
        .unwrap();
    clock.advance(SECOND);
    let other = engine.accept(entry("evt_other", Some("other")), DAY).await;
    assert_eq!(other.unwrap(), Accepted::New);
    let mut waited = Duration::ZERO;
    loop {
        let batch = engine.lease(serial()).await.unwrap();
        if let [job] = &batch.jobs[..] {
            assert_eq!(job.entry.event_id, "evt_other");
            break;
        }
        waited += batch.next_in.unwrap();
        // 3 s for a hundred thousand rows, the calls themselves included.
        assert!(waited <= Duration::from_millis(300), "{waited:?}");
    }
}

/// The caller no longer waits, so no worker would settle the leased entries.
// fault Q15: a lease whose asker has gone keeps its entries until it ends
#[tokio::test]
async fn a_lease_that_nobody_takes_is_given_back() {
    let (folder, clock) = (Folder::new(), manual());
    let engine = engine(&folder, &clock);
    assert_eq!(
        engine.accept(entry("evt_1", None), DAY).await.unwrap(),
        Accepted::New
    );
    for _ in 0..50 {
        let mut call = engine.lease(request());
        // The call is sent, and its answer is not awaited.
        let asked = std::future::poll_fn(|context| {
            let _ = std::pin::Pin::new(&mut call).poll(context);
            std::task::Poll::Ready(())
        });
        asked.await;
        drop(call);
    }
    // This call is served after all of those.
    let mut jobs = Vec::new();
    for _ in 0..100 {
        jobs = engine.lease(request()).await.unwrap().jobs;
        if !jobs.is_empty() {
            break;
        }
    }
    assert_eq!((jobs.len(), jobs[0].tries), (1, 1));
}

/// Entries that were written by a clock that was ahead, and are found by a process that starts
/// after the clock was set back.
#[test]
fn what_an_earlier_process_wrote_ahead_of_the_clock_is_due() {
    let (folder, clock) = (Folder::new(), manual());
    let ahead = ManualClock::at(UnixSeconds::new(1_763_690_000 + 3_600));
    let earlier = engine(&folder, &ahead);
    accept(&earlier, "evt_waits");
    accept(&earlier, "evt_fails");
    let jobs = lease(&earlier);
    let error = "made up".to_owned();
    let retry = End::Retry {
        after: 60 * SECOND,
        error,
    };
    block_on(earlier.settle(jobs[0].id, jobs[0].token, End::Return)).unwrap();
    block_on(earlier.settle(jobs[1].id, jobs[1].token, retry)).unwrap();
    block_on(Inbox::on(Arc::new(earlier)).close());

    let engine = engine(&folder, &clock);
    let names = |jobs: Vec<Job>| {
        jobs.into_iter()
            .map(|job| job.entry.event_id)
            .collect::<Vec<_>>()
    };
    assert_eq!(names(lease(&engine)), ["evt_waits"]);
    clock.advance(59 * SECOND);
    // Its own lease has ended in the meantime.
    assert_eq!(names(lease(&engine)), ["evt_waits"]);
    clock.advance(SECOND);
    assert_eq!(names(lease(&engine)), ["evt_fails"]);
}

/// The program closes its inbox and forgets that its server still runs.
#[tokio::test]
async fn a_close_beside_a_live_acceptor_can_be_bounded_and_loses_nothing() {
    let (folder, clock) = (Folder::new(), manual());
    let open = || {
        InboxOptions::default()
            .clock(clock.clone())
            .open(folder.file())
    };
    let inbox = open().unwrap();
    let secret = hookgate::Secret::new("whsec_made_up_for_a_close").unwrap();
    let builder = hookgate::Receiver::builder().secret(secret);
    let acceptor = builder.accept_into(inbox.clone()).unwrap();
    let later = inbox.clone();
    inbox.accept(&delivery("evt_1"), DAY).await.unwrap();
    let closed = tokio::time::timeout(Duration::from_millis(50), inbox.close());
    assert!(closed.await.is_err());
    // What still has it goes on.
    later.accept(&delivery("evt_2"), DAY).await.unwrap();
    drop(acceptor);
    let closed = tokio::time::timeout(Duration::from_secs(60), later.close());
    closed.await.unwrap();
    let listed = open()
        .unwrap()
        .list(Selection::all(), Page::first(9))
        .await
        .unwrap();
    assert_eq!(listed.len(), 2);
}
