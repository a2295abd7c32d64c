//! A store of your own: `cargo run --example custom_store`. docs/try-it.md shows how to deliver to
//! it, `tests/it/examples.rs` how to run the conformance suite over it.

mod store;
use axum::{Router, http::StatusCode, routing::post};
use hookgate::{Delivery, Receiver, Secret, clock::SystemClock};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = store::MapStore(SystemClock, Default::default());
    let secret = Secret::from_env("WEBHOOK_SECRET")?;
    let receiver = Receiver::builder().secret(secret).store(store).build()?;
    let handler = async |delivery: Delivery| {
        eprintln!("{}", delivery.event_id());
        StatusCode::NO_CONTENT
    };
    let app = Router::new().route("/webhooks", post(handler).layer(receiver.layer()));
    let address = std::env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:8787".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("listening on http://{}/webhooks", listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}
