//! poem: `Receiver::handle` as a tower service, which poem takes as an endpoint.
//!
//! ```sh
//! WEBHOOK_SECRET=whsec_$(openssl rand -hex 16) cargo run -p hookgate-frameworks --example poem
//! ```
//!
//! docs/try-it.md shows how to deliver to it.
//!
//! **Guarantees:** all of the crate's, over HTTP/1 and HTTP/2. poem is built on hyper and tokio,
//! and drops an endpoint's future when the sender closes the connection; the run goes on. **Note:**
//! put it outside poem's own body limits and time-outs, like any layer.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use hookgate::{Event, EventData, HandlerError, MemoryStore, Receiver, Secret, layer::Answer};
use hookgate_frameworks::{Ledger, address, stop_signal};
use http::StatusCode;
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use poem::endpoint::TowerCompatExt;
use poem::listener::TcpAcceptor;
use poem::{Endpoint, Route, Server};
use tokio::net::TcpListener;

/// A row of the data model `Orders`.
#[derive(serde::Deserialize)]
struct Order {
    #[serde(rename = "Customer")]
    customer: String,
}

async fn on_event(event: Event<Order>, ledger: Ledger) -> Result<StatusCode, HandlerError> {
    if let EventData::RowCreated(row) = event.data {
        let order = format!("{} {}", event.id, row.properties.customer);
        ledger.book(order).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

// Glue begins.
fn webhooks(receiver: Receiver, ledger: Ledger) -> impl Endpoint {
    tower::service_fn(move |request: http::Request<BoxBody<Bytes, io::Error>>| {
        let ledger = ledger.clone();
        let answer = receiver.handle(request, |event| on_event(event, ledger));
        async { Ok::<_, Infallible>(answer.await.map(Full::new)) }
    })
    .compat()
}
// Glue ends.

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let receiver = Receiver::builder()
        .secret(Secret::from_env("WEBHOOK_SECRET")?)
        .store(MemoryStore::default())
        .on_answer(|answer: &Answer| println!("{answer}"))
        .build()?;
    let app = Route::new().at("/webhooks", webhooks(receiver.clone(), Ledger::from_env()));
    let listener = TcpListener::bind(address()).await?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    Server::new_with_acceptor(TcpAcceptor::from_tokio(listener)?)
        .run_with_graceful_shutdown(app, stop_signal(), Some(Duration::from_secs(10)))
        .await?;
    // Connections are closed; runs that are still under way get ten seconds to end.
    let drained = receiver.drain(Duration::from_secs(10)).await;
    println!("stopped, {drained} runs aborted");
    Ok(())
}
