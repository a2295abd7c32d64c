//! A receiver that stands still for longer than its lease, in the middle of a run. A successor
//! takes the event, and the first one's late end changes nothing.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::extract::State;
use axum::routing::post;
use hookgate::{Delivery, Scheme, Secret};
use hookgate_testing::Signer;
use http::StatusCode;
use tokio::time::sleep;

use super::ledger::{Ledger, Step};
use super::role::{behind, claims, serve};
use super::sender::{self, SECRET};
use crate::support::{
    Child, Folder, PostgresServer, RedisServer, client_at, free_port, given, needed, until,
};

#[test]
fn a_stale_run_changes_nothing_on_redis() {
    let test = "kill::pause::a_stale_run_changes_nothing_on_redis";
    let server = || RedisServer::start(&[]);
    pause(test, || server().map(|server| (server.url(), server)));
}

#[test]
fn a_stale_run_changes_nothing_on_postgres() {
    let test = "kill::pause::a_stale_run_changes_nothing_on_postgres";
    let server = || PostgresServer::start(&[]);
    pause(test, || server().map(|server| (server.config(), server)));
}

fn pause<S>(test: &'static str, server: impl FnOnce() -> Option<(String, S)>) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let Some(given) = given() {
        return runtime.block_on(receive(&given));
    }
    let (store, _server) = needed!(server());
    runtime.block_on(async {
        if store.starts_with("host=") {
            super::round::tables(&store).await;
        }
        let folder = Folder::new();
        let [first, second] = ["first", "second"].map(|name| Stage {
            name,
            folder: folder.path().to_owned(),
            address: SocketAddr::from(([127, 0, 0, 1], free_port())),
            store: store.clone(),
        });
        let (first, second) = (first.start(test), second.start(test));
        for answer in ["handled", "fails"] {
            after_the_successor(&first, &second, &format!("evt_after_{answer}")).await;
            beside_the_successor(&first, &second, &format!("evt_beside_{answer}")).await;
        }
    });
}

/// The first goes on when the second has handled the event.
async fn after_the_successor(first: &Receiving, second: &Receiving, event: &str) {
    let begun = first.deliver(event);
    first.step(Step::Begun, event, 1).await;
    first.child.signal("STOP");
    second.let_end(event);
    second.succeeds(event, 204).await;
    second.step(Step::Committed, event, 1).await;
    let before = first.record().await;
    assert!(!before.is_empty());

    first.let_end(event);
    first.child.signal("CONT");
    first.step(stale_end(event), event, 1).await;
    // Time for its calls to the store to end.
    sleep(Duration::from_millis(300)).await;
    assert_eq!(first.record().await, before, "{event}");
    for receiving in [first, second] {
        receiving.succeeds(event, 200).await;
    }
    assert_eq!((first.runs(event), second.runs(event)), (1, 1), "{event}");
    begun.abort();
}

/// The first continues while the second is handling the event.
async fn beside_the_successor(first: &Receiving, second: &Receiving, event: &str) {
    let begun = first.deliver(event);
    first.step(Step::Begun, event, 1).await;
    first.child.signal("STOP");
    let taken = second.deliver_until_begun(event).await;
    first.let_end(event);
    first.child.signal("CONT");
    first.step(stale_end(event), event, 1).await;
    // Neither committed nor free: both answer copies with a 503.
    for receiving in [first, second] {
        assert_eq!(receiving.send(event).await, Some(503), "{event}");
    }
    second.let_end(event);
    second.step(Step::Committed, event, 1).await;
    for receiving in [first, second] {
        receiving.succeeds(event, 200).await;
    }
    assert_eq!((first.runs(event), second.runs(event)), (1, 1), "{event}");
    begun.abort();
    taken.abort();
}

/// The end of a run whose claim another process has taken. A run that fails is recorded as failed,
/// whatever the state of its claim.
fn stale_end(event: &str) -> Step {
    if event.ends_with("fails") {
        Step::Failed
    } else {
        Step::Lost
    }
}

/// The settings of a receiver, as its test knows them too.
#[derive(Clone)]
struct Stage {
    name: &'static str,
    folder: PathBuf,
    address: SocketAddr,
    store: String,
}

impl Stage {
    fn start(self, test: &str) -> Receiving {
        let (folder, address) = (self.folder.display(), self.address);
        let given = format!("{}\n{folder}\n{address}\n{}", self.name, self.store);
        let child = Child::start(test, &given);
        Receiving {
            ledger: Ledger::within(&self.folder),
            stage: self,
            child,
        }
    }
}

fn gate(folder: &Path, name: &str, event: &str) -> PathBuf {
    folder.join(format!("{name}-{event}"))
}

/// The child: its handler waits until it is released. The first one fails where the test sets it
/// so.
async fn receive(given: &str) {
    let [name, folder, address, store] = given.lines().collect::<Vec<_>>()[..] else {
        panic!("{given:?}")
    };
    let ledger = Ledger::within(Path::new(folder));
    let state = (name.to_owned(), PathBuf::from(folder), ledger.clone());
    let handler = async |State(state), delivery: Delivery| {
        let (name, folder, ledger): (String, PathBuf, Ledger) = state;
        let event = delivery.event_id();
        ledger.add(Step::Begun, event);
        while !gate(&folder, &name, event).exists() {
            sleep(Duration::from_millis(10)).await;
        }
        if name == "first" && event.ends_with("fails") {
            return StatusCode::INTERNAL_SERVER_ERROR;
        }
        StatusCode::NO_CONTENT
    };
    let layer = behind(Scheme::WORKSPACE, claims(store), ledger);
    let method = post(handler).layer(layer).with_state(state);
    serve(address.parse().unwrap(), method);
    std::future::pending().await
}

struct Receiving {
    stage: Stage,
    child: Child,
    ledger: Ledger,
}

impl Receiving {
    fn let_end(&self, event: &str) {
        std::fs::write(gate(&self.stage.folder, self.stage.name, event), "").unwrap();
    }

    fn count(&self, step: Step, event: &str) -> usize {
        let lines = self.ledger.lines();
        let own = lines.iter().filter(|line| {
            line.process == self.child.id() && line.step == step && line.event == event
        });
        own.count()
    }

    fn runs(&self, event: &str) -> usize {
        self.count(Step::Begun, event)
    }

    /// Waits until this process has got there.
    async fn step(&self, step: Step, event: &str, times: usize) {
        let is_there = async || self.count(step, event) >= times;
        until(format!("{event} is {step:?}"), is_there).await;
    }

    async fn send(&self, event: &str) -> Option<u16> {
        send(self.stage.address, event).await
    }

    /// Sends until it is answered, as to a process that has just begun to listen.
    fn deliver(&self, event: &str) -> tokio::task::JoinHandle<()> {
        let (address, event) = (self.stage.address, event.to_owned());
        tokio::spawn(async move {
            while send(address, &event).await.is_none() {
                sleep(Duration::from_millis(20)).await;
            }
        })
    }

    /// Sends until the event is free for this process.
    async fn deliver_until_begun(&self, event: &str) -> tokio::task::JoinHandle<()> {
        let (address, text) = (self.stage.address, event.to_owned());
        let sending = tokio::spawn(async move {
            while send(address, &text)
                .await
                .is_none_or(|status| status == 503)
            {
                sleep(Duration::from_millis(20)).await;
            }
        });
        self.step(Step::Begun, event, 1).await;
        sending
    }

    /// Sends until it gets this status. Anything else must be a 503, or no answer.
    async fn succeeds(&self, event: &str, with: u16) {
        until(format!("{event} is {with}"), async || {
            match self.send(event).await {
                Some(status) if status == with => true,
                Some(503) | None => false,
                Some(other) => panic!("{event}: {other}"),
            }
        })
        .await;
    }

    /// All data that the store keeps of claims, byte by byte.
    async fn record(&self) -> Vec<String> {
        let store = &self.stage.store;
        if store.starts_with("host=") {
            let client = client_at(store).await;
            let rows = client.query("SELECT c::text FROM hookgate_claims c ORDER BY 1", &[]);
            return rows.await.unwrap().iter().map(|row| row.get(0)).collect();
        }
        let client = redis::Client::open(&**store).unwrap();
        let mut connection = client.get_connection().unwrap();
        let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
        let mut records = Vec::new();
        for key in keys {
            let ask = |command| redis::cmd(command).arg(&key).to_owned();
            let value: Vec<u8> = ask("GET").query(&mut connection).unwrap();
            let until: i64 = ask("PEXPIRETIME").query(&mut connection).unwrap();
            records.push(format!("{key:?} {value:?} {until}"));
        }
        records.sort();
        records
    }
}

async fn send(address: SocketAddr, event: &str) -> Option<u16> {
    let signer = Signer::new(Secret::new(SECRET).unwrap());
    let body = format!(r#"{{"id":"{event}","type":"page.created"}}"#);
    let sent = sender::post(address, &signer, &body);
    let answer = tokio::time::timeout(Duration::from_secs(5), sent).await;
    answer.ok().flatten()
}
