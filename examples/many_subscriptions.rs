//! Ten thousand subscriptions, whose secrets are in a database: each is looked up when a delivery
//! needs it, and remembered for a minute. The database here is a slow map; every query is printed.
//!
//! ```sh
//! cargo run --example many_subscriptions --features lookup -- --try
//! ```
//!
//! With `--try`, subscription `wh_7` has the secret `whsec_made_up_for_wh_7`, and so on: anyone can
//! sign with them. Without it the database is empty. docs/try-it.md shows how to deliver; add the
//! header `X-Service-Webhook-Id: wh_7`. A second port, for the operator alone, changes
//! subscriptions while deliveries arrive:
//!
//! ```sh
//! curl -X PUT --data whsec_$(openssl rand -hex 16) http://127.0.0.1:8788/subscriptions/wh_7   # rotate, or add
//! curl -X DELETE http://127.0.0.1:8788/subscriptions/wh_7
//! curl http://127.0.0.1:8788/stats
//! ```
//!
//! Both make the receiver forget the result of its look-up, so that the change applies to the next
//! delivery. Another process that changes the database can't do that: a new secret applies there 10
//! s after a delivery that it signed was refused, and a removed one is refused after a minute.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use axum::{Router, serve};
use hookgate::{
    ConfigError, Delivery, MemoryStore, Receiver, Secret,
    clock::UnixSeconds,
    lookup::{Keys, SubscriptionId},
};
use tokio::net::TcpListener;

/// The time of a query, for example over a network.
const DELAY: Duration = Duration::from_millis(50);

/// Takes the place of a table of keys: subscription, name, secret, end date.
#[derive(Clone)]
struct Database {
    rows: Arc<RwLock<HashMap<String, String>>>,
    /// Whether the secrets of this page are taken, with which anyone can sign.
    is_trial: bool,
}

/// A key as the receiver takes it: its name, its secret, its end date.
type Key = (String, Secret, Option<UnixSeconds>);

impl Database {
    fn empty() -> Self {
        Self {
            rows: Arc::default(),
            is_trial: false,
        }
    }

    fn of_trial() -> Self {
        let row = |id: String| (id.clone(), format!("whsec_made_up_for_{id}"));
        let rows = (1..=10_000).map(|number| row(format!("wh_{number}")));
        Self {
            rows: Arc::new(RwLock::new(rows.collect())),
            is_trial: true,
        }
    }

    fn secret(&self, text: &str) -> Result<Secret, ConfigError> {
        let secret = Secret::new(text)?;
        if self.is_trial {
            return Ok(secret);
        }
        secret.unpublished()
    }

    async fn secret_of(&self, id: &str) -> io::Result<Option<String>> {
        tokio::time::sleep(DELAY).await;
        if id == "wh_down" {
            return Err(io::Error::other("made up: the database is down"));
        }
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        Ok(rows.get(id).cloned())
    }

    /// Sets or removes a row; returns whether there was one.
    fn set(&self, id: String, secret: Option<String>) -> bool {
        let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        match secret {
            Some(secret) => rows.insert(id, secret).is_some(),
            None => rows.remove(&id).is_some(),
        }
    }
}

/// Finds the keys of a subscription: here one without an end date. During a rotation there are two.
async fn keys_of(
    database: Database,
    id: SubscriptionId,
) -> Result<Option<Vec<Key>>, Box<dyn Error + Send + Sync>> {
    let Some(text) = database.secret_of(id.as_str()).await? else {
        println!("query: {id} is unknown");
        return Ok(None);
    };
    println!("query: {id} is there");
    let secret = database.secret(&text)?;
    Ok(Some(vec![("primary".into(), secret, None)]))
}

async fn on_delivery(delivery: Delivery) -> StatusCode {
    let scope = delivery.verified().scope();
    println!("{} for {scope}", delivery.event_id());
    StatusCode::NO_CONTENT
}

/// The operator's interface: changes the database, and makes the receiver forget the look-up.
#[derive(Clone)]
struct Operator {
    database: Database,
    keys: Keys,
}

async fn rotate(
    State(operator): State<Operator>,
    Path(id): Path<String>,
    secret: String,
) -> Result<StatusCode, (StatusCode, String)> {
    // A wrong secret is refused here, with advice, rather than at each delivery.
    let refused = |error: &dyn Error| (StatusCode::BAD_REQUEST, format!("{error}\n"));
    SubscriptionId::parse(&id).map_err(|error| refused(&error))?;
    let checked = operator.database.secret(&secret);
    checked.map_err(|error| refused(&error))?;
    operator.database.set(id.clone(), Some(secret));
    Ok(forgotten(&operator, &id))
}

async fn remove(State(operator): State<Operator>, Path(id): Path<String>) -> StatusCode {
    if operator.database.set(id.clone(), None) {
        forgotten(&operator, &id)
    } else {
        StatusCode::NOT_FOUND
    }
}

fn forgotten(operator: &Operator, id: &str) -> StatusCode {
    match operator.keys.forget(id) {
        Ok(()) => StatusCode::NO_CONTENT,
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR, // these keys are not looked up
    }
}

async fn stats(State(operator): State<Operator>) -> String {
    format!("{:?}\n", operator.keys.lookup_stats())
}

async fn listen(variable: &str, default: &str) -> Result<TcpListener, String> {
    let address = env::var(variable).unwrap_or_else(|_| default.into());
    let listening = TcpListener::bind(&address).await;
    listening.map_err(|error| format!("can't listen on {address}: {error}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let database = if env::args().any(|argument| argument == "--try") {
        println!("--try: the secrets are published: anyone can sign with them");
        Database::of_trial()
    } else {
        Database::empty()
    };
    let asked = database.clone();
    let receiver = Receiver::builder()
        .provider(move |id| keys_of(asked.clone(), id))
        .store(MemoryStore::default())
        .on_answer(|answer| println!("{answer}"))
        .build()?;

    let operator = Operator {
        database,
        keys: receiver.keys().clone(),
    };
    let operators = Router::new()
        .route("/subscriptions/{id}", put(rotate).delete(remove))
        .route("/stats", get(stats))
        .with_state(operator);
    let app = Router::new().route("/webhooks", post(on_delivery).layer(receiver.layer()));

    let operators_port = listen("OPERATOR_ADDR", "127.0.0.1:8788").await?;
    println!("operator: {}", operators_port.local_addr()?);
    let port = listen("ADDR", "127.0.0.1:8787").await?;
    println!("listening on http://{}/webhooks", port.local_addr()?);
    tokio::try_join!(async { serve(operators_port, operators).await }, async {
        serve(port, app).await
    },)?;
    Ok(())
}
