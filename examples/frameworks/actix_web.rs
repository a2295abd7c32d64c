//! actix-web: its request becomes one of the `http` crate, and the answer one of actix-web.
//! `Receiver::handle` does the rest.
//!
//! ```sh
//! WEBHOOK_SECRET=whsec_$(openssl rand -hex 16) cargo run -p hookgate-frameworks --example actix_web
//! ```
//!
//! docs/try-it.md shows how to deliver to it.
//!
//! **Guarantees:** all of the crate's. The head is refused before the body is read, the body is
//! hashed as it arrives, under its limit and deadline, though actix keeps it on the connection's
//! thread. When the sender closes the connection, actix drops this handler; the run goes on.
//! **Note:** it goes on in the runtime of its worker, which ends with the server. So the receiver
//! is drained before the server is stopped; actix' own reaction to signals would abort such runs,
//! and their events would stay claimed until their leases end.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::error::Error;
use std::time::Duration;

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use futures_util::TryStreamExt;
use hookgate::{Event, EventData, HandlerError, MemoryStore, Receiver, Secret, layer::Answer};
use hookgate_frameworks::{Ledger, address, stop_signal};
use http::StatusCode; // of http 1, like hookgate; actix-web re-exports that of http 0.2
use http_body::Frame;
use http_body_util::StreamBody;

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
async fn webhooks(
    request: HttpRequest,
    payload: web::Payload,
    receiver: web::Data<Receiver>,
    ledger: web::Data<Ledger>,
) -> actix_web::Result<HttpResponse> {
    let mut head = http::Request::builder().method(request.method().as_str());
    for (name, value) in request.headers() {
        head = head.header(name.as_str(), value.as_bytes());
    }
    let body = StreamBody::new(payload.map_ok(Frame::data));
    let request = head.body(body).map_err(actix_web::error::ErrorBadRequest)?;

    let ledger = Ledger::clone(&ledger);
    let answer = receiver
        .handle(request, |event| on_event(event, ledger))
        .await;

    let status = actix_web::http::StatusCode::from_u16(answer.status().as_u16());
    let mut response =
        HttpResponse::build(status.map_err(actix_web::error::ErrorInternalServerError)?);
    for (name, value) in answer.headers() {
        response.append_header((name.as_str(), value.as_bytes()));
    }
    Ok(response.body(answer.into_body()))
}
// Glue ends.

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let receiver = Receiver::builder()
        .secret(Secret::from_env("WEBHOOK_SECRET")?)
        .store(MemoryStore::default())
        .on_answer(|answer: &Answer| println!("{answer}"))
        .build()?;
    let shared = web::Data::new(receiver.clone());
    let ledger = web::Data::new(Ledger::from_env());
    // `web::to` accepts every method, so that the receiver answers the wrong ones.
    let app = move || {
        let webhooks = web::resource("/webhooks").route(web::to(webhooks));
        App::new()
            .app_data(shared.clone())
            .app_data(ledger.clone())
            .service(webhooks)
    };
    let server = HttpServer::new(app)
        .workers(2)
        .disable_signals()
        .bind(address())?;
    for address in server.addrs() {
        println!("listening on http://{address}/webhooks");
    }
    let server = server.run();
    let handle = server.handle();
    tokio::spawn(async move {
        stop_signal().await;
        // First drain the runs, while their workers live; meanwhile new deliveries are answered
        // 503.
        let drained = receiver.drain(Duration::from_secs(10)).await;
        println!("stopped, {drained} runs aborted");
        handle.stop(true).await;
    });
    server.await?;
    Ok(())
}
