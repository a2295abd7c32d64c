//! A receiver that a suite outside this crate, in any language, can test over HTTP. It differs from
//! other receivers only in the probes below.
//!
//! ```sh
//! SECRET=whsec_made_up_for_a_suite cargo run --example conformance
//! ```
//!
//! - `ADDR` (default `127.0.0.1:0`), `SECRET`, optional `SECRET2`, optional `MAX_BODY`.
//! - Prints one line, `listening on http://HOST:PORT`.
//! - `POST /webhooks` is the guarded route: subscription `wh_1` with `SECRET`, `wh_2` with
//!   `SECRET2`, all other settings by default.
//! - `GET /count` answers `{"total": N}`, the number of runs that answered 2xx. With `?id=EVENT_ID`
//!   also `"effects"`, the number of such runs of that id; `"starts"`, the number of all its runs;
//!   `"type"`, the type as handled.
//! - The text property `probe` of a row.created is a program for its runs, joined by `;`:
//!   `sleep=MS` first, then `panic=N`, the first N runs of this id panic, and `fail=N`, the first N
//!   answer 500.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use hookgate::{Event, EventData, MemoryStore, Receiver, Secret};
use serde::Deserialize;
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut subscriptions = vec![("wh_1", secret("SECRET")?)];
    if env::var_os("SECRET2").is_some() {
        subscriptions.push(("wh_2", secret("SECRET2")?));
    }
    let mut builder = Receiver::builder()
        .subscriptions(subscriptions)
        .store(MemoryStore::default());
    if let Ok(bytes) = env::var("MAX_BODY") {
        builder = builder.max_body(bytes.parse()?);
    }
    let receiver = builder.build()?;
    let app = Router::new()
        .route("/webhooks", post(on_event).layer(receiver.layer()))
        .route("/count", get(count))
        .with_state(Runs::default());

    let address = env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:0".into());
    let listener = tokio::net::TcpListener::bind(&address)
        .await
        .map_err(|error| format!("can't listen on {address}: {error}"))?;
    println!("listening on http://{}", listener.local_addr()?);
    std::io::stdout().flush()?;
    axum::serve(listener, app).await?;
    Ok(())
}

/// Reads a secret of any form, since a suite brings its own.
fn secret(variable: &str) -> Result<Secret, Box<dyn Error>> {
    let text = env::var(variable).map_err(|error| format!("{variable}: {error}"))?;
    Ok(Secret::new(&text).or_else(|_| Secret::unprefixed(&text))?)
}

/// The runs of each event, by the id in its signed body.
type Runs = Arc<Mutex<HashMap<String, Counts>>>;

#[derive(Clone, Default)]
struct Counts {
    starts: u64,
    effects: u64,
    event_type: Option<String>,
}

async fn on_event(State(runs): State<Runs>, event: Event) -> StatusCode {
    let id = event.id.as_str();
    let run = update(&runs, id, |counts| {
        counts.starts += 1;
        counts.event_type = Some(event.event_type().to_owned());
        counts.starts
    });

    let probe = Probe::of(&event);
    tokio::time::sleep(Duration::from_millis(probe.sleep_ms)).await;
    assert!(run > probe.panics, "run {run} was told to panic");
    if run <= probe.fails {
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    update(&runs, id, |counts| counts.effects += 1);
    StatusCode::NO_CONTENT
}

fn update<T>(runs: &Runs, id: &str, change: impl FnOnce(&mut Counts) -> T) -> T {
    let mut runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
    change(runs.entry(id.to_owned()).or_default())
}

/// The instructions for the runs of an event.
#[derive(Default)]
struct Probe {
    sleep_ms: u64,
    panics: u64,
    fails: u64,
}

impl Probe {
    fn of(event: &Event) -> Self {
        let EventData::RowCreated(row) = &event.data else {
            return Self::default();
        };
        let program = row.properties.value("probe").text();
        let program = program.ok().and_then(hookgate::event::Field::into_option);
        let mut probe = Self::default();
        for step in program.as_deref().unwrap_or_default().split(';') {
            let Some((word, number)) = step.split_once('=') else {
                continue;
            };
            let Ok(number) = number.trim().parse() else {
                continue;
            };
            match word.trim() {
                "sleep" => probe.sleep_ms = number,
                "panic" => probe.panics = number,
                "fail" => probe.fails = number,
                _ => {}
            }
        }
        probe
    }
}

#[derive(Deserialize)]
struct Asked {
    id: Option<String>,
}

async fn count(State(runs): State<Runs>, Query(asked): Query<Asked>) -> Json<Value> {
    let runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
    let total: u64 = runs.values().map(|counts| counts.effects).sum();
    Json(match asked.id {
        None => json!({ "total": total }),
        Some(id) => {
            let counts = runs.get(&id).cloned().unwrap_or_default();
            json!({
                "total": total,
                "effects": counts.effects,
                "starts": counts.starts,
                "type": counts.event_type,
            })
        }
    })
}
