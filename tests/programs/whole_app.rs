//! A whole app: webhooks beside other routes, with its state, its own error type, a time-out and
//! CORS around it, and an end that waits for the runs.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use hookgate::{Event, EventData, HandlerError, MemoryStore, Receiver, Secret};
use hookgate_testing::{EventFactory, Signer, factory::JsonText};
use tower_http::cors::CorsLayer;
use tower_http::timeout::TimeoutLayer;

#[derive(serde::Deserialize)]
struct Order {
    #[serde(rename = "Customer")]
    customer: Option<String>,
}

#[derive(Debug, thiserror::Error)]
enum AppError {
    #[error("row {0} has no customer")]
    NoCustomer(String),
}

impl IntoResponse for AppError {
    fn into_response(self) -> Response {
        let Self::NoCustomer(_) = &self;
        HandlerError::from(self).mark(StatusCode::UNPROCESSABLE_ENTITY.into_response())
    }
}

#[derive(Clone)]
struct App {
    receiver: Receiver,
    customers: Arc<Mutex<Vec<String>>>,
}

async fn on_event(State(app): State<App>, event: Event<Order>) -> Result<StatusCode, AppError> {
    if let EventData::RowCreated(row) = event.data {
        let customer = row.properties.customer;
        let customer = customer.ok_or_else(|| AppError::NoCustomer(row.row_id.to_string()))?;
        app.customers.lock().expect("no panic").push(customer);
    }
    Ok(StatusCode::NO_CONTENT)
}

async fn customers(State(app): State<App>) -> Json<Vec<String>> {
    Json(app.customers.lock().expect("no panic").clone())
}

async fn health(State(app): State<App>) -> String {
    app.receiver.health().to_string()
}

fn app(state: App) -> Router {
    let guard = state.receiver.layer();
    // Longer than the sender waits: a run that takes longer goes on.
    let timeout =
        TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(10));
    Router::new()
        .route("/webhooks", post(on_event).layer(guard))
        .route("/customers", get(customers))
        .route("/health", get(health))
        .layer((timeout, CorsLayer::permissive()))
        .with_state(state)
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn Error>> {
    let secret = Secret::new("whsec_made_up_for_a_whole_app")?;
    let told = Arc::new(Mutex::new(Vec::new()));
    let tells = told.clone();
    let receiver = Receiver::builder()
        .secret(secret.clone())
        .store(MemoryStore::default())
        .on_failed(move |failed| tells.lock().expect("no panic").push(failed.to_string()))
        .build()?;
    let state = App {
        receiver: receiver.clone(),
        customers: Arc::default(),
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = axum::serve(listener, app(state)).with_graceful_shutdown(async {
        let _ = stopped.await; // in a program: tokio::signal::ctrl_c()
    });
    let server = tokio::spawn(server.into_future());

    // The sender delivers, and a browser asks the other routes.
    let factory = EventFactory::new();
    let order = factory
        .row_created()
        .property("Customer", JsonText::text("Ada"));
    let nobody = factory.row_created().without_properties();
    let signer = Signer::new(secret);
    assert_eq!(
        status(address, &deliver(&signer, &order.to_json())).await?,
        204
    );
    assert_eq!(
        status(address, &deliver(&signer, &order.to_json())).await?,
        200
    );
    assert_eq!(
        status(address, &deliver(&signer, &nobody.to_json())).await?,
        422
    );
    let answer = send(address, &plain("/customers")).await?;
    assert!(answer.ends_with("[\"Ada\"]"), "{answer}");
    let headers = answer.to_lowercase();
    assert!(
        headers.contains("access-control-allow-origin: *"),
        "{answer}"
    );
    assert!(
        send(address, &plain("/health"))
            .await?
            .starts_with("HTTP/1.1 200")
    );
    let told = told.lock().expect("no panic").clone();
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("has no customer"), "{told:?}");

    let _ = stop.send(());
    server.await??;
    receiver.drain(Duration::from_secs(5)).await;
    Ok(())
}

fn plain(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
}

fn deliver(signer: &Signer, body: &str) -> String {
    let headers = signer.headers(body);
    let headers = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"));
    let headers: String = headers.collect();
    let length = body.len();
    format!(
        "POST /webhooks HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
}

async fn status(address: std::net::SocketAddr, request: &str) -> Result<u16, Box<dyn Error>> {
    let answer = send(address, request).await?;
    let status = answer.split(' ').nth(1).ok_or("no status")?;
    Ok(status.parse()?)
}

async fn send(address: std::net::SocketAddr, request: &str) -> std::io::Result<String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
