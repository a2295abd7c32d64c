//! What the engine does in one process; what takes two, or a failing disk, is in `tests/servers/sqlite`.

mod model;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::block_on;
use crate::clock::{ManualClock, UnixSeconds};
use crate::dedupe::{EventKey, body_digest};
use crate::inbox::contract::{self, Subject, Time};
use crate::inbox::engine::{EntryState, Job};

const DAY: Duration = Duration::from_secs(86_400);
const SECOND: Duration = Duration::from_secs(1);

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hookgate-inbox-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("inbox.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn clock() -> ManualClock {
    ManualClock::at(UnixSeconds::new(1_763_690_000))
}

fn engine(folder: &Folder, clock: &ManualClock) -> SqliteEngine {
    let options = InboxOptions::default().clock(clock.clone());
    SqliteEngine::open(&folder.file(), &options).unwrap()
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
        subscription: None,
        workspace: None,
        body,
    }
}

fn ask() -> Ask {
    Ask {
        most: 10,
        lease: 30 * SECOND,
        max_tries: 3,
        serial_by_row: false,
        except: Vec::new(),
    }
}

fn accept(engine: &SqliteEngine, id: &str) -> Accepted {
    block_on(engine.accept(entry(id, None), 2 * DAY)).unwrap()
}

fn lease(engine: &SqliteEngine) -> Vec<Job> {
    block_on(engine.lease(ask())).unwrap().jobs
}

fn stats(engine: &SqliteEngine) -> InboxStats {
    block_on(engine.stats()).unwrap()
}

#[tokio::test]
async fn sqlite_passes_what_every_engine_must() {
    // Kept until the last of them has ended.
    let folder = std::sync::Arc::new(Folder::new());
    let files = std::sync::Arc::clone(&folder);
    contract::run_all(move |test| {
        let clock = clock();
        let options = InboxOptions::default().clock(clock.clone());
        let file = files.0.join(format!("{test}.db"));
        let engine = SqliteEngine::open(&file, &options).unwrap();
        async move { Subject::new(Arc::new(engine), Time::Manual(clock)) }
    })
    .await;
}

#[test]
fn an_entry_is_accepted_once_leased_and_done() {
    let (folder, clock) = (Folder::new(), clock());
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
