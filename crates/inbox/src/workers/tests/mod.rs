//! Workers on an engine in memory, in paused time: each wait is exact.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Tests may panic on unexpected results.

mod answers;
mod refused;
mod rows;
mod shutdown;
mod traps;
mod work;

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use hookgate::{
    Delivery, clock::UnixSeconds, dedupe::EventKey, internal::body_digest, sink::Accepted,
};
use http::StatusCode;
use tokio::time::{Instant, sleep};

use super::{AttemptReport, Backoff, DeadEntry, Jitter, LostLease, RunningWorkers, Workers};
use crate::Inbox;
use crate::engine::{Engine, InboxStats, Listed};
use crate::entry::{Entry, EntryState};
use crate::memory::{Fault, MemoryEngine};
use crate::selection::{Page, Selection};

const OK: StatusCode = StatusCode::NO_CONTENT;
const BAD: StatusCode = StatusCode::BAD_GATEWAY;
const DAY: Duration = Duration::from_secs(86_400);

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// 1 s, 2 s, 4 s … without a random part.
fn plain() -> Backoff {
    Backoff::exponential(secs(1), secs(1_000)).with_jitter(Jitter::None)
}

fn entry(id: &str) -> Entry {
    entry_of_row(id, None)
}

fn entry_of_row(id: &str, row: Option<&str>) -> Entry {
    let body = Bytes::from(format!(
        r#"{{"id":"{id}","type":"row.deleted","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"{}","deletedBy":{{"id":"usr_1","name":"Bo"}}}}}}"#,
        row.unwrap_or("row_1")
    ));
    Entry {
        key: EventKey::new("default", id),
        row: row.map(|row| EventKey::new("default", row)),
        digest: body_digest(&body),
        event_id: id.into(),
        event_type: "row.deleted".into(),
        timestamp: "1763690000".into(),
        received_at: UnixSeconds::new(1_763_690_000),
        scope: "default".into(),
        key_name: "current".into(),
        subscription_id: Some("wh_1".into()),
        pinned_workspace: None,
        // The others have none, like most deliveries.
        traceparent: (id == "evt_1").then(|| TRACE.to_owned()),
        body,
    }
}

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// An inbox in memory, and the reports of its workers' hooks.
struct Bench {
    engine: Arc<MemoryEngine>,
    started: Instant,
    reports: Arc<Reports>,
}

#[derive(Default)]
struct Reports {
    attempts: Mutex<Vec<AttemptReport>>,
    failed: Mutex<Vec<AttemptReport>>,
    dead: Mutex<Vec<DeadEntry>>,
    lost: Mutex<Vec<LostLease>>,
}

impl Bench {
    fn new() -> Self {
        Self {
            engine: MemoryEngine::new(),
            started: Instant::now(),
            reports: Arc::default(),
        }
    }

    async fn with(ids: &[&str]) -> Self {
        let bench = Self::new();
        for id in ids {
            bench.accept(entry(id)).await;
        }
        bench
    }

    async fn accept(&self, entry: Entry) {
        let accepted = self.engine.accept(entry, DAY * 2).await.unwrap();
        assert_eq!(accepted, Accepted::New);
    }

    fn inbox(&self) -> Inbox {
        Inbox {
            engine: Arc::clone(&self.engine) as Arc<dyn Engine>,
        }
    }

    /// Returns workers whose hooks record their calls.
    fn workers(&self) -> Workers {
        let reports = || Arc::clone(&self.reports);
        let [settled, failed, dead, lost] = [reports(), reports(), reports(), reports()];
        Workers::new(&self.inbox())
            .backoff(plain())
            .on_settled(move |report| settled.attempts.lock().unwrap().push(report.clone()))
            .on_failed(move |report| failed.failed.lock().unwrap().push(report.clone()))
            .on_dead_letter(move |entry| dead.dead.lock().unwrap().push(entry.clone()))
            .on_lost_lease(move |lease| lost.lost.lock().unwrap().push(lease.clone()))
    }

    /// Starts workers with a handler that gets the delivery and the number of earlier runs.
    fn start<F: Future<Output = StatusCode> + Send + 'static>(
        &self,
        workers: Workers,
        handler: impl Fn(Delivery, usize) -> F + Clone + Send + 'static,
    ) -> RunningWorkers {
        let count = Arc::new(AtomicUsize::new(0));
        let handler =
            move |delivery: Delivery| handler(delivery, count.fetch_add(1, Ordering::SeqCst));
        workers.start_handler(handler).unwrap()
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    async fn stats(&self) -> InboxStats {
        self.engine.stats().await.unwrap()
    }

    async fn listed(&self, id: &str) -> Listed {
        let which = Selection {
            event_id: Some(id.into()),
            ..Selection::default()
        };
        self.engine
            .list(which, Page::first(1))
            .await
            .unwrap()
            .remove(0)
    }

    async fn state(&self, id: &str) -> EntryState {
        self.listed(id).await.state
    }

    fn attempts(&self) -> Vec<AttemptReport> {
        self.reports.attempts.lock().unwrap().clone()
    }

    /// Returns the times of these calls, since the start.
    fn calls(&self, name: &str) -> Vec<Duration> {
        let calls = self.engine.calls.lock().unwrap();
        let times = calls.iter().filter(|(call, _)| *call == name);
        times.map(|(_, at)| *at).collect()
    }
}

/// Records the times since the start at which handlers are called.
#[derive(Clone)]
struct Times(Arc<Mutex<Vec<Duration>>>, Instant);

impl Times {
    fn new() -> Self {
        Self(Arc::default(), Instant::now())
    }

    fn note(&self) {
        self.0.lock().unwrap().push(self.1.elapsed());
    }

    /// Returns whole milliseconds, the precision of tokio's timers.
    fn millis(&self) -> Vec<u128> {
        let times = self.0.lock().unwrap();
        times.iter().map(Duration::as_millis).collect()
    }
}

impl RunningWorkers {
    /// Ends the workers as a kill would: all tasks end, and no entry is settled or renewed any
    /// more.
    async fn kill(self) {
        self.task.abort();
        while !self.task.is_finished() {
            tokio::task::yield_now().await;
        }
        // The tasks that it spawned are aborted at the same moment, and end when they are next
        // polled.
        sleep(millis(1)).await;
    }
}
