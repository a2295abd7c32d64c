//! A real receiver of hookgate on a port, which notes the events that it handled.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::{Router, http::StatusCode, routing::post};
use hookgate::{Delivery, MemoryStore, Receiver, Secret};
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub(crate) const SECRET: &str = "whsec_made_up_for_the_browser";

/// The receiver. Its task ends with the test's runtime.
pub(crate) struct Receives {
    pub(crate) url: String,
    events: Arc<Mutex<Vec<(Instant, Value)>>>,
    status: Arc<Mutex<StatusCode>>,
}

impl Receives {
    pub(crate) async fn start() -> Self {
        Self::with(SECRET).await
    }

    pub(crate) async fn with(secret: &str) -> Self {
        let receiver = Receiver::builder()
            .secret(Secret::new(secret).unwrap())
            .store(MemoryStore::default())
            .build()
            .unwrap();
        let events: Arc<Mutex<Vec<(Instant, Value)>>> = Arc::default();
        let status = Arc::new(Mutex::new(StatusCode::NO_CONTENT));
        let (noted, answer) = (Arc::clone(&events), Arc::clone(&status));
        let handler = async move |delivery: Delivery| {
            let event = serde_json::from_slice(delivery.body()).unwrap();
            noted.lock().unwrap().push((Instant::now(), event));
            *answer.lock().unwrap()
        };
        let app: Router = Router::new().route("/webhooks", post(handler).layer(receiver.layer()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self {
            url: format!("http://{address}/webhooks"),
            events,
            status,
        }
    }

    /// Answers with this status from now on.
    pub(crate) fn answer(&self, status: u16) {
        *self.status.lock().unwrap() = StatusCode::from_u16(status).unwrap();
    }

    pub(crate) fn events(&self) -> Vec<(Instant, Value)> {
        self.events.lock().unwrap().clone()
    }

    /// Changes the quantity of the first order once for each, and answers the delivery of it with
    /// this status.
    pub(crate) async fn tries(&self, service: &crate::Served, answers: &[(u16, u64)]) {
        for (number, (status, quantity)) in (1..).zip(answers) {
            self.answer(*status);
            service.change(json!({ "prop_quantity": quantity })).await;
            let is_tried = |all: &[Value]| all.len() == number && all[0]["attempts"][0].is_object();
            service.until_deliveries(is_tried).await;
        }
    }
}
