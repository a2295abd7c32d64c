//! The inbox on PostgreSQL: several processes on one table, a server that fails in each of its
//! ways, notifications of new entries.

mod backlog;
mod faults;
mod names;
mod processes;
mod refused;
mod shared;
mod word;

use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use hookgate::{
    Delivery,
    dedupe::StoreError,
    sink::{Accepted, Sink},
};
use hookgate_inbox::{EntryState, Inbox, Page, RunningWorkers, Selection, Workers};
use hookgate_postgres::Postgres;
use hookgate_testing::delivery;
use tokio_postgres::{Config, NoTls};

use super::{database, patient};

const RETAIN: Duration = Duration::from_secs(48 * 3_600);
/// A generous time limit, so that a busy machine fails no test.
const PATIENCE: Duration = Duration::from_secs(90);

/// Its calls may take as long as a busy machine needs.
fn inbox(config: &str) -> Inbox {
    patient(config).inbox("test").unwrap()
}

/// Of a row of its own, or of this one.
fn event(id: &str, row: &str) -> Delivery {
    let body = format!(
        r#"{{"id":"{id}","type":"row.deleted","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"{row}"}}}}"#
    );
    delivery(body).unwrap()
}

async fn accept(inbox: &Inbox, id: &str) -> Result<Accepted, StoreError> {
    inbox.accept(&event(id, id), RETAIN).await
}

async fn count(inbox: &Inbox, state: EntryState) -> usize {
    let which = Selection::all().state(state);
    inbox.list(which, Page::first(10_000)).await.unwrap().len()
}

/// Waits until so many are done, for as long as more and more are.
async fn until_done(inbox: &Inbox, all: u64) {
    let (mut began, mut done) = (Instant::now(), 0);
    loop {
        let stats = inbox.stats().await;
        match &stats {
            Ok(stats) if stats.done == all => return,
            Ok(stats) if stats.done > done => (began, done) = (Instant::now(), stats.done),
            _ => {}
        }
        assert!(began.elapsed() < PATIENCE, "{stats:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Handled events, by their ids.
type Handled = Arc<Mutex<Vec<String>>>;

/// Workers whose handler notes each event.
fn work(inbox: &Inbox, set: impl FnOnce(Workers) -> Workers) -> (RunningWorkers, Handled) {
    let handled = Handled::default();
    let seen = Arc::clone(&handled);
    let handler = async move |event: Delivery| {
        seen.lock().unwrap().push(event.event_id().to_owned());
        StatusCode::OK
    };
    let workers = set(Workers::new(inbox)).start_handler(handler);
    (workers.unwrap(), handled)
}

fn serial(workers: Workers, is_serial: bool) -> Workers {
    match is_serial {
        true => workers.serial_by_row(),
        false => workers,
    }
}
