//! A queue of your own, here a table of jobs: deliveries are put into it, and 2xx means that the
//! job is stored. A worker verifies each job again, at any age, and runs its handler.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::body::Body;
use axum::{Router, routing::post_service};
use hookgate::outcome::one_line;
use hookgate::{
    DeadLetter, Delivery, Event, EventData, Outcome, Receiver, Secret,
    clock::{Clock, ManualClock, SystemClock, UnixSeconds},
    dedupe::{StoreError, StoreErrorKind, StoreFuture},
    receiver::StoredDelivery,
    run::Run,
    sink::{Accepted, Sink},
    verify::Signature,
};
use hookgate_testing::{EventFactory, Signer};
use rusqlite::{Connection, Row, params};
use tower::ServiceExt;

/// The parts of a delivery. The ring's workspace needs no column: `verify_stored` takes the one
/// that the ring has now.
const JOBS: &str = "CREATE TABLE jobs (
    key TEXT PRIMARY KEY, body BLOB NOT NULL, timestamp TEXT NOT NULL, signature TEXT, event_id TEXT NOT NULL,
    event_type TEXT NOT NULL, received_at INTEGER NOT NULL, scope TEXT NOT NULL, key_name TEXT NOT NULL, subscription_id TEXT,
    traceparent TEXT, state TEXT NOT NULL, reason TEXT)";

#[derive(Clone, Debug)]
struct Jobs(Arc<Mutex<Connection>>);

impl Jobs {
    fn open() -> Result<Self, StoreError> {
        let database = Connection::open_in_memory().map_err(failed)?; // in production a file, and `PRAGMA synchronous = FULL`
        database.execute_batch(JOBS).map_err(failed)?;
        Ok(Self(Arc::new(Mutex::new(database))))
    }

    fn table(&self) -> Result<MutexGuard<'_, Connection>, StoreError> {
        self.0.lock().map_err(|_| failed("a job panicked"))
    }

    fn put(&self, delivery: &Delivery) -> Result<Accepted, StoreError> {
        let jobs = self.table()?;
        // The key is a digest of scope and id: ids of other subscriptions never meet.
        let key = delivery.key().to_hex();
        let parts = delivery.to_stored();
        let put = "INSERT INTO jobs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 'waiting', NULL)
            ON CONFLICT DO NOTHING";
        let job = params![
            key,
            parts.body.as_ref(), // byte for byte
            parts.timestamp,
            parts.signature.as_ref().map(Signature::to_header_value),
            parts.event_id,
            parts.event_type,
            parts.received_at.as_i64(),
            parts.scope,
            parts.key_name,
            parts.subscription_id,
            parts.traceparent,
        ];
        if jobs.execute(put, job).map_err(failed)? == 1 {
            return Ok(Accepted::New);
        }
        // Whether the copy has the body that is kept: a sender may send other data under the same
        // id.
        let same_body = jobs.query_row(
            "SELECT body = ?2 FROM jobs WHERE key = ?1",
            (key, parts.body.as_ref()),
            |row| row.get(0),
        );
        let same_body = same_body.map_err(failed)?;
        Ok(Accepted::Duplicate { same_body })
    }

    fn waiting(&self) -> Result<Vec<(String, StoredDelivery)>, Box<dyn Error>> {
        let jobs = self.table()?;
        let mut jobs =
            jobs.prepare("SELECT * FROM jobs WHERE state = 'waiting' ORDER BY received_at")?;
        let jobs = jobs.query_map([], |job| Ok((job.get("key")?, parts(job)?)))?;
        Ok(jobs.collect::<Result<_, _>>()?)
    }

    fn set(&self, key: &str, state: &str, reason: &str) -> Result<(), Box<dyn Error>> {
        let set = "UPDATE jobs SET state = ?2, reason = ?3 WHERE key = ?1";
        self.table()?.execute(set, (key, state, reason))?;
        Ok(())
    }
}

fn parts(job: &Row<'_>) -> rusqlite::Result<StoredDelivery> {
    let signature: Option<String> = job.get("signature")?;
    Ok(StoredDelivery {
        body: job.get::<_, Vec<u8>>("body")?.into(),
        timestamp: job.get("timestamp")?,
        // One that is malformed is refused by `verify_stored`, as a missing one is.
        signature: signature.and_then(|text| Signature::parse(text.as_bytes()).ok()),
        event_id: job.get("event_id")?,
        event_type: job.get("event_type")?,
        received_at: UnixSeconds::new(job.get("received_at")?),
        scope: job.get("scope")?,
        key_name: job.get("key_name")?,
        subscription_id: job.get("subscription_id")?,
        pinned_workspace: None,
        traceparent: job.get("traceparent")?,
        scheme: "workspace".into(),
    })
}

/// The delivery is answered 503, so the sender tries again.
fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable).caused_by(error)
}

impl Sink for Jobs {
    // The table keeps each key for longer than `retain`: nothing is ever deleted here.
    fn accept<'a>(
        &'a self,
        delivery: &'a Delivery,
        _retain: Duration,
    ) -> StoreFuture<'a, Accepted> {
        let (jobs, delivery) = (self.clone(), delivery.clone());
        StoreFuture::boxed(async move {
            let stored = tokio::task::spawn_blocking(move || jobs.put(&delivery)).await;
            stored.map_err(failed)?
        })
    }
}

async fn on_event(event: Event) -> Result<(), DeadLetter> {
    match event.data {
        EventData::RowCreated(_) => Ok(()),
        _ => Err(DeadLetter::new("not subscribed")),
    }
}

/// Runs each job that waits, once. One worker at a time: several would have to claim their jobs.
///
/// A job whose worker dies runs again, and whoever can write to the table can put an authentic
/// delivery in again. Where an effect must not happen twice, the handler claims the event in its
/// own transaction: see `remembers`.
async fn work_off(jobs: &Jobs, receiver: &Receiver) -> Result<(), Box<dyn Error>> {
    for (key, stored) in jobs.waiting()? {
        let (state, reason) = match receiver.verify_stored(&stored).await {
            Ok(delivery) => {
                let run = Run::new(&delivery).limit(Duration::from_secs(60));
                let ran = run.handler(on_event).await;
                let state = match ran.outcome {
                    Outcome::Failed(_) => "waiting",
                    Outcome::DeadLettered => "dead",
                    _ => "done",
                };
                (state, ran.to_string())
            }
            // Its keys could not be looked up now.
            Err(refusal) if refusal.retry_after().is_some() => {
                ("waiting", one_line(&refusal).to_string())
            }
            // Refused for good, and kept for an operator.
            Err(refusal) => ("dead", one_line(&refusal).to_string()),
        };
        jobs.set(&key, state, &reason)?;
    }
    Ok(())
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn Error>> {
    let jobs = Jobs::open()?;
    let secret = Secret::new("whsec_made_up_for_a_queue")?;
    // The deliveries arrive a day before the worker runs.
    let yesterday = UnixSeconds::new(SystemClock.now().as_i64() - 24 * 3_600);
    // The operator's part: a copy with another body is worth a look.
    let (answered, answers) = std::sync::mpsc::channel();
    let acceptor = Receiver::builder()
        .secret(secret.clone())
        .clock(ManualClock::at(yesterday))
        .on_answer(move |answer| {
            let _ = answered.send(answer.outcome);
        })
        .accept_into(jobs.clone())?;
    let app = Router::<()>::new().route("/webhooks", post_service(acceptor.clone()));

    let events = EventFactory::new();
    let signer = Signer::new(secret.clone()).at(yesterday);
    let deliver = async |body: String| {
        let request = signer.request("/webhooks", body);
        app.clone().oneshot(request.map(Body::from)).await
    };
    let event = events.row_created().to_json();
    let first = deliver(event.clone()).await?;
    assert!(!first.headers().contains_key("idempotent-replayed"));
    let copy = deliver(event.clone()).await?;
    assert_eq!(copy.headers()["idempotent-replayed"], "true");
    assert_eq!(deliver(event.clone() + " ").await?.status(), 200);
    let changed = events.row_created().to_json();
    assert_eq!(deliver(changed.clone()).await?.status(), 200);
    acceptor.drain(Duration::from_secs(5)).await;
    let outcomes: Vec<_> = answers.try_iter().collect();
    let copy = |same_body| Outcome::Replayed { same_body };
    let new = Outcome::Accepted;
    assert_eq!(outcomes, [new, copy(true), copy(false), new]);

    // A body is changed in the table.
    let forged = changed.clone() + " ";
    let change = "UPDATE jobs SET body = ?2 WHERE body = ?1";
    let rows = jobs
        .table()?
        .execute(change, (changed.as_bytes(), forged.as_bytes()))?;
    assert_eq!(rows, 1);

    // The worker, in production a process of its own.
    let builder = Receiver::builder().secret(secret);
    work_off(&jobs, &builder.without_deduplication().build()?).await?;

    let table = jobs.table()?;
    let job = |body: &str| {
        let job = "SELECT state, reason FROM jobs WHERE body = ?1";
        table.query_row(job, [body.as_bytes()], |job| {
            Ok((job.get::<_, String>(0)?, job.get::<_, String>(1)?))
        })
    };
    assert_eq!(job(&event)?, ("done".into(), "handled".into())); // the very bytes that were signed, a day ago
    let (state, reason) = job(&forged)?;
    assert_eq!(state, "dead"); // and not dropped
    assert!(reason.contains("signature"), "{reason}");
    let count: u32 = table.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0))?;
    assert_eq!(count, 2);
    Ok(())
}
