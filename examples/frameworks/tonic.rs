//! A gRPC service and the webhooks at one port: tonic's routes become an axum router, and the
//! guarded route joins them.
//!
//! ```sh
//! WEBHOOK_SECRET=whsec_$(openssl rand -hex 16) cargo run -p hookgate-frameworks --example tonic
//! ```
//!
//! docs/try-it.md shows how to deliver to it. The service is gRPC's own health check; add your own
//! in its place or beside it.
//!
//! **Guarantees:** all of the crate's. It is used as with axum: one line guards the route, and
//! gRPC's routes are not changed. Both come over HTTP/1 and HTTP/2, even over one connection.
//! **Note:** guard the route, not the router: `Router::layer` over both would ask every gRPC call
//! for a signature.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use hookgate::{Event, EventData, HandlerError, MemoryStore, Receiver, Secret, layer::Answer};
use hookgate_frameworks::{Ledger, address, stop_signal};
use tokio::net::TcpListener;
use tokio::time::sleep;
use tonic::service::Routes;
use tonic_health::ServingStatus;

/// A row of the data model `Orders`.
#[derive(serde::Deserialize)]
struct Order {
    #[serde(rename = "Customer")]
    customer: String,
}

async fn on_event(
    event: Event<Order>,
    State(ledger): State<Ledger>,
) -> Result<StatusCode, HandlerError> {
    if let EventData::RowCreated(row) = event.data {
        let order = format!("{} {}", event.id, row.properties.customer);
        ledger.book(order).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let receiver = Receiver::builder()
        .secret(Secret::from_env("WEBHOOK_SECRET")?)
        .store(MemoryStore::default())
        .on_answer(|answer: &Answer| println!("{answer}"))
        .build()?;
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter
        .set_service_status("webhooks", ServingStatus::Serving)
        .await;

    // Glue begins.
    let webhooks = Router::new()
        .route("/webhooks", post(on_event).layer(receiver.layer()))
        .with_state(Ledger::from_env());
    let app = Routes::new(health).into_axum_router().merge(webhooks);
    // Glue ends.

    let listener = TcpListener::bind(address()).await?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    let stopping = async move {
        stop_signal().await;
        reporter
            .set_service_status("webhooks", ServingStatus::NotServing)
            .await;
    };
    let server = axum::serve(listener, app).with_graceful_shutdown(stopping);
    tokio::select! {
        served = server.into_future() => served?,
        // Every delivery is answered within 4.5 s. A client that does not end its request can't
        // hold up the end of the program.
        () = async { stop_signal().await; sleep(Duration::from_secs(5)).await } => {}
    }
    let drained = receiver.drain(Duration::from_secs(10)).await;
    println!("stopped, {drained} runs aborted");
    Ok(())
}
