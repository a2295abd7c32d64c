//! A queue of your own, here a table of jobs that other programs work off: deliveries are put into it, and 2xx means that the job is
//! stored.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::{Router, routing::post_service};
use hookgate::{
    Accepted, Delivery, Receiver, Secret, Sink, StoreError, StoreErrorKind, StoreFuture,
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
        let stored = jobs.execute(
            "INSERT INTO jobs VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
            job,
        )?;
        Ok(if stored == 1 {
            Accepted::New
        } else {
            Accepted::Duplicate { same_body: true }
        })
    }
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
            stored.map_err(|error| StoreError::new(StoreErrorKind::Unavailable).caused_by(error))?
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
    let acceptor = Receiver::builder()
        .secret(secret.clone())
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
    acceptor.drain(Duration::from_secs(5)).await;

    let jobs = jobs.0.lock().map_err(|_| "a job panicked")?;
    let kept: (u32, Vec<u8>) = jobs.query_row("SELECT count(*), body FROM jobs", [], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    assert_eq!(kept, (1, event.to_json().into_bytes())); // the very bytes that were signed
    Ok(())
}
