//! A queue of your own, here a table of jobs that other programs work off: deliveries are put into it, and 2xx means that the job is
//! stored.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::{Router, routing::post_service};
use hookgate::{
    Accepted, Delivery, Outcome, Receiver, Secret, Sink, StoreError, StoreErrorKind, StoreFuture,
};
use hookgate_testing::{EventFactory, Signer};
use rusqlite::Connection;
use tower::ServiceExt;

#[derive(Clone, Debug)]
struct Jobs(Arc<Mutex<Connection>>);

impl Jobs {
    fn put(&self, delivery: &Delivery) -> Result<Accepted, StoreError> {
        let jobs = self
            .0
            .lock()
            .map_err(|_| StoreError::new(StoreErrorKind::Unavailable))?;
        // The key is a digest of scope and id: ids of other subscriptions never meet.
        let job = (
            delivery.key().to_hex(),
            delivery.event_type(),
            delivery.body().as_ref(),
        );
        let put = "INSERT INTO jobs VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        let stored = jobs.execute(put, job).map_err(failed)?;
        if stored == 1 {
            return Ok(Accepted::New);
        }
        // Whether the copy has the body that is kept: a sender may send other data under the same id.
        let same_body = jobs.query_row(
            "SELECT body = ?2 FROM jobs WHERE key = ?1",
            (delivery.key().to_hex(), delivery.body().as_ref()),
            |row| row.get(0),
        );
        let same_body = same_body.map_err(failed)?;
        Ok(Accepted::Duplicate { same_body })
    }
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

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn Error>> {
    let database = Connection::open_in_memory()?; // in production a file, and `PRAGMA synchronous = FULL`
    database.execute_batch(
        "CREATE TABLE jobs (key TEXT PRIMARY KEY, type TEXT NOT NULL, body BLOB NOT NULL)",
    )?;
    let jobs = Jobs(Arc::new(Mutex::new(database)));
    let secret = Secret::new("whsec_made_up_for_a_queue")?;
    // The operator's part: a copy with another body is worth a look.
    let (answered, answers) = std::sync::mpsc::channel();
    let acceptor = Receiver::builder()
        .secret(secret.clone())
        .on_answer(move |answer| {
            let _ = answered.send(answer.outcome);
        })
        .accept_into(jobs.clone())?;
    let app = Router::<()>::new().route("/webhooks", post_service(acceptor.clone()));

    let (event, signer) = (EventFactory::new().row_created(), Signer::new(secret));
    let deliver = async || {
        app.clone()
            .oneshot(signer.request("/webhooks", &event).map(Body::from))
            .await
    };
    assert!(
        !deliver()
            .await?
            .headers()
            .contains_key("idempotent-replayed")
    );
    assert_eq!(deliver().await?.headers()["idempotent-replayed"], "true");
    let other_body = signer.request("/webhooks", event.to_json() + " ");
    assert_eq!(app.oneshot(other_body.map(Body::from)).await?.status(), 200);
    acceptor.drain(Duration::from_secs(5)).await;
    let outcomes: Vec<_> = answers.try_iter().collect();
    let copy = |same_body| Outcome::Replayed { same_body };
    assert_eq!(outcomes, [Outcome::Accepted, copy(true), copy(false)]);

    let jobs = jobs.0.lock().map_err(|_| "a job panicked")?;
    let kept: (u32, Vec<u8>) = jobs.query_row("SELECT count(*), body FROM jobs", [], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    assert_eq!(kept, (1, event.to_json().into_bytes())); // the very bytes that were signed
    Ok(())
}
