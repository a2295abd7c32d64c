//! A server, or the way to it, that fails: an error in time, nothing lost that was acknowledged, and no restart.

use std::collections::HashSet;
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use hookgate::dedupe::StoreErrorKind;
use hookgate_inbox::{RunningWorkers, Workers};

use super::*;
use crate::support::{Fault, PostgresServer, Proxy, client_at, migrated};

/// One second for a call, and more than as much again for a busy machine.
const SOON: Duration = Duration::from_secs(5);
/// A busy machine may be late in one of them; a call without a limit is late in each.
const ROUNDS: u32 = 10;

/// With the usual limit of a call, which these tests are about.
fn hasty(config: &str) -> Inbox {
    database(config).inbox("test").unwrap()
}

/// Handled events, by their ids.
type Handled = Arc<Mutex<HashSet<String>>>;

fn work(inbox: &Inbox, serial: bool) -> (RunningWorkers, Handled) {
    let handled = Handled::default();
    let seen = Arc::clone(&handled);
    let mut workers = Workers::new(inbox)
        .lease(Duration::from_secs(2))
        .poll_interval(Duration::from_millis(200));
    if serial {
        workers = workers.serial_by_row();
    }
    let workers = workers
        .start_handler(move |event: Delivery| {
            seen.lock().unwrap().insert(event.event_id().to_owned());
            async { StatusCode::OK }
        })
        .unwrap();
    (workers, handled)
}

/// Until a call succeeds again.
async fn until_accepted(inbox: &Inbox, id: &str) {
    let began = Instant::now();
    while let Err(error) = accept(inbox, id).await {
        assert!(began.elapsed() < PATIENCE, "{error:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// An accept that is not acknowledged. Returns how long it took.
async fn refused(inbox: &Inbox, id: &str, what: &str) -> Duration {
    let began = Instant::now();
    accept(inbox, id).await.expect_err(what);
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_between_are_errors_in_time_and_pass() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    for serial in [false, true] {
        let proxy = Proxy::before(server.server.address);
        let inbox = hasty(&PostgresServer::config_at(proxy.address));
        let (workers, handled) = work(&inbox, serial);
        let mut acknowledged = HashSet::new();
        let faults = [
            ("delay", Fault::Delay(Duration::from_secs(3))),
            ("drop", Fault::DropReplies),
            ("half", Fault::HalfOpen),
            ("refuse", Fault::Refuse),
        ];
        for (name, fault) in faults {
            let mut fastest = Duration::MAX;
            for round in 0..ROUNDS {
                for number in 0..20 {
                    let id = format!("evt_{name}_{round}_{number}_{serial}");
                    until_accepted(&inbox, &id).await;
                    acknowledged.insert(id);
                }
                proxy.set(fault);
                let mut slowest = Duration::ZERO;
                let unknown = [0, 1, 2];
                let unknown =
                    unknown.map(|number| format!("evt_{name}_{round}_unknown_{number}_{serial}"));
                for id in &unknown {
                    slowest = slowest.max(refused(&inbox, id, name).await);
                }
                proxy.set(Fault::None);
                // The sender's retry, whether it was stored or not.
                for id in unknown {
                    until_accepted(&inbox, &id).await;
                    acknowledged.insert(id);
                }
                fastest = fastest.min(slowest);
                if fastest < SOON {
                    break;
                }
            }
            assert!(fastest < SOON, "{name}: {fastest:?}");
        }
        let began = Instant::now();
        while handled.lock().unwrap().len() < acknowledged.len() {
            assert!(began.elapsed() < PATIENCE, "not all are handled");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(*handled.lock().unwrap(), acknowledged);
        workers.shutdown(PATIENCE).await;
    }
}

/// A reply that is lost with its connection: the stored delivery is found as a duplicate, and handled once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_does_not_lose_the_delivery() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let proxy = Proxy::before(server.server.address);
    let inbox = hasty(&PostgresServer::config_at(proxy.address));
    accept(&inbox, "evt_0").await.unwrap();
    // The notifications of it have been sent, so that the next answer is that of the next call.
    tokio::time::sleep(Duration::from_secs(1)).await;
    proxy.set(Fault::CloseOnReply);
    let answer = accept(&inbox, "evt_1").await;
    let again = accept(&inbox, "evt_1").await.unwrap();
    // Either it was asked again below, or by us: it is stored once, and never nowhere.
    assert_eq!(again, Accepted::Duplicate { same_body: true }, "{answer:?}");
    assert_eq!(count(&inbox, EntryState::Queued).await, 2);
}

/// No room on the server's disk, as the server itself reports: nothing is accepted until there is room, and deliveries that were
/// accepted before are handled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_an_error_until_there_is_room() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let client = client_at(&server.config()).await;
    let inbox = inbox(&server.config());
    accept(&inbox, "evt_before").await.unwrap();
    let full = "CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no space' USING ERRCODE = '53100'; END $$;
        CREATE TRIGGER no_space BEFORE INSERT ON hookgate_inbox EXECUTE FUNCTION no_space()";
    client.batch_execute(full).await.unwrap();
    for id in ["evt_1", "evt_2"] {
        let refused = accept(&inbox, id).await.unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Full);
    }
    // Work continues: it takes up no row more.
    let (workers, handled) = work(&inbox, false);
    until_done(&inbox, 1).await;
    let room = "DROP TRIGGER no_space ON hookgate_inbox";
    client.batch_execute(room).await.unwrap();
    for id in ["evt_1", "evt_2"] {
        assert_eq!(accept(&inbox, id).await.unwrap(), Accepted::New);
    }
    until_done(&inbox, 3).await;
    workers.shutdown(PATIENCE).await;
    assert_eq!(handled.lock().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_pauses_and_dies_loses_nothing() {
    // Flushes are real, and the server is set not to wait for them: an accept waits all the same.
    let settings = ["synchronous_commit=off", "wal_writer_delay=10s"];
    let Some(mut server) = migrated(&settings).await else {
        return;
    };
    let inbox = hasty(&server.config());
    // The way there is warm.
    accept(&inbox, "evt_warm").await.unwrap();

    let mut fastest = Duration::MAX;
    let mut accepted = 1;
    for round in 0..ROUNDS {
        let id = format!("evt_paused_{round}");
        let paused = Paused::all(&server.config()).await;
        server.server.signal("STOP");
        fastest = fastest.min(refused(&inbox, &id, "paused").await);
        drop(paused);
        server.server.signal("CONT");
        until_accepted(&inbox, &id).await;
        accepted += 1;
        if fastest < SOON {
            break;
        }
    }
    assert!(fastest < SOON, "{fastest:?}");

    let mut fastest = Duration::MAX;
    for round in 0..3 {
        let mut acknowledged = Vec::new();
        for number in 0..20 {
            let id = format!("evt_{round}_{number}");
            until_accepted(&inbox, &id).await;
            acknowledged.push(id);
        }
        accepted += acknowledged.len();
        server.crash();
        fastest = fastest.min(refused(&inbox, "evt_down", "down").await);
        server.start_again();
        for id in acknowledged {
            let began = Instant::now();
            let again = loop {
                match accept(&inbox, &id).await {
                    Ok(accepted) => break accepted,
                    Err(error) => assert!(began.elapsed() < PATIENCE, "{error:?}"),
                }
            };
            let known = Accepted::Duplicate { same_body: true };
            assert_eq!(again, known, "{id} was acknowledged and is lost");
        }
    }
    assert!(fastest < SOON, "{fastest:?}");
    let (workers, handled) = work(&inbox, true);
    until_done(&inbox, accepted as u64).await;
    assert_eq!(handled.lock().unwrap().len(), accepted);
    workers.shutdown(PATIENCE).await;
}

/// All processes of a server, stopped until this is dropped.
struct Paused(Vec<i32>);

impl Paused {
    async fn all(config: &str) -> Self {
        let client = client_at(config).await;
        let asked = "SELECT pid FROM pg_stat_activity WHERE pid IS NOT NULL";
        let rows = client.query(asked, &[]).await.unwrap();
        let processes = rows.iter().map(|row| row.get(0)).collect();
        signal(&processes, "STOP");
        Self(processes)
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        signal(&self.0, "CONT");
    }
}

/// One or the other may have ended meanwhile.
fn signal(processes: &Vec<i32>, name: &str) {
    for process in processes {
        let kill = format!("kill -{name} {process} 2>/dev/null");
        let _ = Command::new("sh").args(["-c", &kill]).status();
    }
}

/// Workers go on by themselves when their server is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_outlive_their_server() {
    let Some(mut server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let inbox = hasty(&server.config());
    let (workers, handled) = work(&inbox, false);
    until_accepted(&inbox, "evt_1").await;
    until_done(&inbox, 1).await;
    server.crash();
    refused(&inbox, "evt_2", "down").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.start_again();
    until_accepted(&inbox, "evt_2").await;
    until_done(&inbox, 2).await;
    assert_eq!(handled.lock().unwrap().len(), 2);
    workers.shutdown(PATIENCE).await;
}

/// The server goes on with a lease even if no worker waits for it any more, and each such lease uses up a try of an entry that
/// never ran.
// fault Q17: a lease that is slow is given up, and goes on in the server: tries are used up of entries that never ran
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_takes_long_is_waited_for() {
    /// Longer than a delivery would wait for its insert.
    const SLOW: &str = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_sleep(1.5); RETURN NEW; END';
      CREATE TRIGGER slow BEFORE UPDATE ON hookgate_inbox FOR EACH ROW WHEN (NEW.state = 1 AND OLD.state = 0) EXECUTE FUNCTION slow()";
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let client = client_at(&server.config()).await;
    client.batch_execute(SLOW).await.unwrap();
    let inbox = hasty(&server.config());
    for serial in [false, true] {
        let id = format!("evt_serial_{serial}");
        until_accepted(&inbox, &id).await;
        let (workers, handled) = work(&inbox, serial);
        let began = Instant::now();
        while !handled.lock().unwrap().contains(&id) {
            assert!(began.elapsed() < PATIENCE, "it is never handled");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        workers.shutdown(PATIENCE).await;
        let page = Page::first(2);
        let listed = inbox.list(Selection::all().event_id(&id), page).await;
        let listed = listed.unwrap();
        assert_eq!((listed[0].state, listed[0].tries), (EntryState::Done, 1));
    }
}
