//! For handlers that take longer than the sender waits, or that must survive a deploy: deliveries
//! are stored in a file, answered, and handled afterwards. Even if this process is killed, each
//! event that was answered 2xx is handled.
//!
//! ```sh
//! cargo run -p hookgate-inbox --example durable_inbox -- --try
//! ```
//!
//! With `INBOX=postgres://…?sslmode=verify-full` the entries are in a table that many machines
//! share, by TLS where the URL asks for it: the package `hookgate-postgres` with its features
//! `inbox`, `tls` and `ring`.
//!
//! The secret comes from `WEBHOOK_SECRET`. With `--try` it is a published one, with which anyone
//! can sign: for deliveries from this machine. `ADDR` sets another address, `INBOX` another file
//! than `inbox.db`, `TAKES_MS` how long an order takes. Ctrl-C or SIGTERM ends the program once the
//! orders under way are done, or returned.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::env;
use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post_service;
use hookgate::{
    Delivery, Event, EventData, EventRouter, Receiver, Secret,
    event::{EventType, Number},
};
use hookgate_inbox::{Inbox, Workers};
use hookgate_postgres::{Postgres, Tls, migrate};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::time::sleep;

/// A row of the data model `dm_orders`.
#[derive(Deserialize)]
struct Order {
    #[serde(rename = "Customer")]
    customer: String,
    #[serde(rename = "Total")]
    total: Number,
}

/// The state that the handlers share.
#[derive(Clone)]
struct Shop {
    takes: Duration,
}

/// Takes some time, like a handler that calls other services. It may run again after it was
/// interrupted, so its effect is identified by the event's id.
async fn on_order(State(shop): State<Shop>, event: Event<Order>) -> StatusCode {
    tokio::time::sleep(shop.takes).await;
    if let EventData::RowCreated(row) = event.data {
        let order = row.properties;
        println!(
            "{}: {} ordered for {}",
            event.id,
            order.customer,
            order.total.as_str()
        );
    }
    StatusCode::NO_CONTENT
}

async fn on_page(delivery: Delivery) -> StatusCode {
    println!("{}: a page", delivery.event_id());
    StatusCode::NO_CONTENT
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = env::var("INBOX").unwrap_or_else(|_| "inbox.db".into());
    let inbox = open(&path).await?;

    // First handle the entries that an earlier process has left.
    let events = EventRouter::new()
        .on_rows("dm_orders", on_order)
        .on(EventType::PAGE_CREATED, on_page)
        .build()?
        .with_state(Shop { takes: takes()? });
    let workers = Workers::new(&inbox)
        .concurrency(8)
        .lease(Duration::from_secs(2)) // so that work is soon repeated after a kill; the default fits a deploy
        .on_failed(|tried| {
            println!(
                "{} failed: {:?}",
                tried.delivery.event_id(),
                tried.disposition
            )
        })
        .on_dead_letter(|dead| println!("{} is a dead letter: {}", dead.event_id, dead.error))
        .start(events)?;

    let address = env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:8787".into());
    let listener = TcpListener::bind(&address)
        .await
        .map_err(|error| format!("can't listen on {address}: {error}"))?;
    let acceptor = Receiver::builder()
        .secret(secret()?)
        .on_answer(|answer| println!("{answer}"))
        .accept_into(inbox.clone())?;
    let app = Router::new().route("/webhooks", post_service(acceptor.clone()));
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    let server = axum::serve(listener, app).with_graceful_shutdown(stop_signal());
    tokio::select! {
        served = server.into_future() => served?,
        // Every delivery is answered within 4.5 s. A client that does not end its request can't
        // hold up the end of the program.
        () = async { stop_signal().await; sleep(Duration::from_secs(5)).await } => {}
    }

    // No new deliveries come. Wait for entries being stored, then for entries being handled. The
    // other entries stay in the file.
    acceptor.drain(Duration::from_secs(5)).await;
    let ended = workers.shutdown(Duration::from_secs(10)).await;
    let left = inbox.stats().await?;
    println!("stopped, {ended} given back, {} left to do", left.queued);
    Ok(())
}

/// In a file, or in a database that several machines share.
async fn open(place: &str) -> Result<Inbox, Box<dyn Error>> {
    if !place.starts_with("postgres") {
        return Ok(hookgate_sqlite::open_inbox(place)?);
    }
    let (config, tls) = Tls::for_url(place)?; // with TLS where the URL asks for it
    let (client, connection) = config.connect(tls.clone()).await?;
    tokio::spawn(connection);
    migrate(&client).await?;
    Ok(Postgres::new(config, tls).inbox("orders")?)
}

fn takes() -> Result<Duration, Box<dyn Error>> {
    let millis = env::var("TAKES_MS").unwrap_or_else(|_| "6000".into());
    Ok(Duration::from_millis(millis.parse()?))
}

fn secret() -> Result<Secret, Box<dyn Error>> {
    if env::args().any(|argument| argument == "--try") {
        let published = "whsec_made_up_for_local_tries";
        println!("--try: the secret is {published}, which is published: anyone can sign with it");
        return Ok(Secret::new(published)?);
    }
    if env::var_os("WEBHOOK_SECRET").is_none() {
        return Err("set WEBHOOK_SECRET, or give --try for deliveries from this machine".into());
    }
    Ok(Secret::from_env("WEBHOOK_SECRET")?)
}

/// Ends at Ctrl-C, or at SIGTERM, as orchestrators send it.
async fn stop_signal() {
    #[cfg(unix)]
    let terminate = async {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut signals) => signals.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminate = std::future::pending::<Option<()>>();
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate => {}
    }
}
