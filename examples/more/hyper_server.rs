//! Plain hyper, without axum: the layer wraps any tower service, HTTP/1 and HTTP/2.
//!
//! ```sh
//! WEBHOOK_SECRET=whsec_$(openssl rand -hex 16) cargo run -p hookgate-more --example hyper_server
//! ```
//!
//! docs/try-it.md shows how to deliver to it.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::convert::Infallible;
use std::env;
use std::error::Error;

use bytes::Bytes;
use hookgate::layer::VerifiedBody;
use hookgate::{Delivery, MemoryStore, Receiver, Secret};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tower_layer::Layer;

/// The inner service gets authentic, fresh deliveries only, each once. The delivery is in the
/// request's extensions.
async fn on_delivery(request: Request<VerifiedBody>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = match request.extensions().get::<Delivery>() {
        Some(delivery) => {
            println!("{} {}", delivery.event_id(), delivery.event_type());
            StatusCode::NO_CONTENT
        }
        None => StatusCode::INTERNAL_SERVER_ERROR, // served without the layer
    };
    Ok(response)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let receiver = Receiver::builder()
        .secret(Secret::from_env("WEBHOOK_SECRET")?)
        .store(MemoryStore::default())
        .build()?;
    let service = receiver.layer().layer(tower::service_fn(on_delivery));

    let address = env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:8787".into());
    let listener = TcpListener::bind(&address)
        .await
        .map_err(|error| format!("can't listen on {address}: {error}"))?;
    println!("listening on http://{}/webhooks", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let server = auto::Builder::new(TokioExecutor::new());
            // An error here is a connection that broke: its run, if any, still goes on.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
