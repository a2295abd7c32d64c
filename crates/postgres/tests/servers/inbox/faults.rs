//! A server, or the way to it, that fails: an error in time, nothing lost that was acknowledged,
//! and no restart.

use std::collections::HashSet;
use std::process::Command;

use hookgate::dedupe::StoreErrorKind;

use super::*;
use crate::support::{
    Fault, PostgresServer, Proxy, client_at, migrated, needed, once_within, unflushed, until,
};

/// One second for a call, and more than as much again for a busy machine.
const SOON: Duration = Duration::from_secs(5);

/// With the usual limit of a call, which these tests are about.
fn hasty(config: &str) -> Inbox {
    database(config).inbox("test").unwrap()
}

fn distinct(handled: &Handled) -> HashSet<String> {
    handled.lock().unwrap().iter().cloned().collect()
}

fn work(inbox: &Inbox, is_serial: bool) -> (RunningWorkers, Handled) {
    let (lease, poll) = (Duration::from_secs(2), Duration::from_millis(200));
    let set = |workers: Workers| workers.lease(lease).poll_interval(poll);
    super::work(inbox, |workers| serial(set(workers), is_serial))
}

/// Until a call succeeds again.
async fn until_accepted(inbox: &Inbox, id: &str) {
    until(id, async || accept(inbox, id).await.is_ok()).await;
}

/// An accept that is not acknowledged. Returns how long it took.
async fn refused(inbox: &Inbox, id: &str, what: &str) -> Duration {
    let began = Instant::now();
    accept(inbox, id).await.expect_err(what);
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_between_are_errors_in_time_and_pass() {
    let server = needed!(migrated(&["fsync=off"]).await);
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
            once_within(SOON, name, async |round| {
                let ids = |what: &str, count: u32| {
                    let id = |number| format!("evt_{name}_{round}_{what}{number}_{serial}");
                    (0..count).map(id).collect::<Vec<_>>()
                };
                for id in ids("", 20) {
                    until_accepted(&inbox, &id).await;
                    acknowledged.insert(id);
                }
                proxy.set(fault);
                let mut slowest = Duration::ZERO;
                for id in ids("unknown_", 3) {
                    slowest = slowest.max(refused(&inbox, &id, name).await);
                }
                proxy.set(Fault::None);
                // The sender's retry, whether it was stored or not.
                for id in ids("unknown_", 3) {
                    until_accepted(&inbox, &id).await;
                    acknowledged.insert(id);
                }
                slowest
            })
            .await;
        }
        let all = acknowledged.len();
        until("all are handled", async || distinct(&handled).len() >= all).await;
        assert_eq!(distinct(&handled), acknowledged);
        workers.shutdown(PATIENCE).await;
    }
}

/// A reply that is lost with its connection: the stored delivery is found as a duplicate, and
/// handled once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_does_not_lose_the_delivery() {
    let server = needed!(migrated(&["fsync=off"]).await);
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

/// No room on the server's disk, as the server itself reports: nothing is accepted until there is
/// room, and deliveries that were accepted before are handled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_an_error_until_there_is_room() {
    let (server, client) = needed!(unflushed().await);
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
    assert_eq!(distinct(&handled).len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_pauses_and_dies_loses_nothing() {
    // Flushes are real, and the server is set not to wait for them: an accept waits all the same.
    let settings = ["synchronous_commit=off", "wal_writer_delay=10s"];
    let mut server = needed!(migrated(&settings).await);
    let inbox = hasty(&server.config());
    // The way there is warm.
    accept(&inbox, "evt_warm").await.unwrap();

    let mut accepted = 1;
    once_within(SOON, "paused", async |round| {
        let id = format!("evt_paused_{round}");
        let paused = Paused::all(&server.config()).await;
        server.server.signal("STOP");
        let took = refused(&inbox, &id, "paused").await;
        drop(paused);
        server.server.signal("CONT");
        until_accepted(&inbox, &id).await;
        accepted += 1;
        took
    })
    .await;

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
            let known = Accepted::Duplicate { same_body: true };
            let what = format!("{id}, which was acknowledged");
            until(what, async || match accept(&inbox, &id).await {
                Ok(accepted) => accepted == known || panic!("{id} is lost"),
                Err(_) => false,
            })
            .await;
        }
    }
    assert!(fastest < SOON, "{fastest:?}");
    let (workers, handled) = work(&inbox, true);
    until_done(&inbox, accepted as u64).await;
    assert_eq!(distinct(&handled).len(), accepted);
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
    let mut server = needed!(migrated(&["fsync=off"]).await);
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
    assert_eq!(distinct(&handled).len(), 2);
    workers.shutdown(PATIENCE).await;
}

/// The server goes on with a lease even if no worker waits for it any more, and each such lease
/// uses up a try of an entry that never ran.
// fault Q17: a lease that is slow is given up, and goes on in the server: tries are used up of entries that never ran
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_takes_long_is_waited_for() {
    /// Longer than a delivery would wait for its insert.
    const SLOW: &str = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_sleep(1.5); RETURN NEW; END';
      CREATE TRIGGER slow BEFORE UPDATE ON hookgate_inbox FOR EACH ROW WHEN (NEW.state = 1 AND OLD.state = 0) EXECUTE FUNCTION slow()";
    let (server, client) = needed!(unflushed().await);
    client.batch_execute(SLOW).await.unwrap();
    let inbox = hasty(&server.config());
    for serial in [false, true] {
        let id = format!("evt_serial_{serial}");
        until_accepted(&inbox, &id).await;
        let (workers, handled) = work(&inbox, serial);
        until(&id, async || handled.lock().unwrap().contains(&id)).await;
        workers.shutdown(PATIENCE).await;
        let page = Page::first(2);
        let listed = inbox.list(Selection::all().event_id(&id), page).await;
        let listed = listed.unwrap();
        assert_eq!((listed[0].state, listed[0].tries), (EntryState::Done, 1));
    }
}
