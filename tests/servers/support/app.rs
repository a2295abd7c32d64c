//! A receiver before a handler that counts its runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::routing::post;
use hookgate::{DedupeStore, Delivery, Receiver, Secret};
use hookgate_testing::Signer;
use tower::ServiceExt;

#[derive(Clone)]
pub struct App {
    router: Router,
    signer: Signer,
    runs: Arc<AtomicUsize>,
}

impl App {
    pub fn on(store: impl DedupeStore) -> Self {
        Self::with_handler(store, || {})
    }

    pub fn with_handler(
        store: impl DedupeStore,
        work: impl Fn() + Clone + Send + Sync + 'static,
    ) -> Self {
        let secret = Secret::new("whsec_made_up_for_this_test").unwrap();
        let receiver = Receiver::builder().secret(secret.clone()).store(store);
        // A claim whose answer was lost holds its event for so long.
        let receiver = receiver.lease(Duration::from_secs(5)).build().unwrap();
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let handler = async move |_: Delivery| {
            counted.fetch_add(1, Ordering::SeqCst);
            work();
            StatusCode::NO_CONTENT
        };
        Self {
            router: Router::new().route("/", post(handler).layer(receiver.layer())),
            signer: Signer::new(secret),
            runs,
        }
    }

    /// The status of the answer: 204 of a run, 200 of a duplicate.
    pub async fn deliver(&self, id: &str) -> u16 {
        let body = format!(r#"{{"id":"{id}","type":"page.created"}}"#);
        let request = self.signer.request("/", body).map(Body::from);
        let answer = self.router.clone().oneshot(request).await.unwrap();
        answer.status().as_u16()
    }

    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}
