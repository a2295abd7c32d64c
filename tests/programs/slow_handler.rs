//! A handler that takes 30 s, six times what the sender waits: deliveries are stored in a file,
//! answered, and handled by workers. An operator looks at what failed and makes it due again.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use axum::{Router, http::StatusCode, routing::post, routing::post_service};
use hookgate::{Event, HandlerError, Receiver, Secret};
use hookgate_inbox::{EntryState, Inbox, Page, Selection, Workers};
use hookgate_sqlite::open_inbox;
use hookgate_testing::{EventFactory, Signer};
use tower::ServiceExt;

#[derive(Clone)]
struct Shop {
    carrier_is_up: Arc<AtomicBool>,
    takes: Duration,
}

async fn on_event(State(shop): State<Shop>, event: Event) -> Result<StatusCode, HandlerError> {
    tokio::time::sleep(shop.takes).await;
    if !shop.carrier_is_up.load(Ordering::Relaxed) {
        return Err(format!("{}: the carrier's service is down", event.id).into());
    }
    Ok(StatusCode::NO_CONTENT)
}

pub async fn run(takes: Duration) -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("slow-handler-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let inbox = open_inbox(folder.join("inbox.db"))?;
    let shop = Shop {
        carrier_is_up: Arc::default(),
        takes,
    };
    let workers = Workers::new(&inbox)
        .concurrency(8)
        .max_tries(1) // so that this program sees a dead letter soon; the default is 30, over a day and longer
        .on_dead_letter(|dead| eprintln!("{} is a dead letter: {}", dead.event_id, dead.error))
        .start(post(on_event).with_state(shop.clone()))?;
    let secret = Secret::new("whsec_made_up_for_a_slow_one")?;
    let acceptor = Receiver::builder()
        .secret(secret.clone())
        .accept_into(inbox.clone())?;
    let app = Router::<()>::new().route("/webhooks", post_service(acceptor.clone()));

    // The sender's part. Its answer comes once the delivery is on the disk, and not when it is
    // handled.
    let request = Signer::new(secret).request("/webhooks", EventFactory::new().row_created());
    let began = Instant::now();
    assert_eq!(app.oneshot(request.map(Body::from)).await?.status(), 200);
    assert!(began.elapsed() < takes);

    // The operator's part: what is dead, and why? `hookgate inbox list --db inbox.db --state dead`
    // shows the same.
    let dead = Selection::all().state(EntryState::Dead);
    until(&inbox, EntryState::Dead).await?;
    let listed = inbox.list(dead.clone(), Page::first(10)).await?;
    let reason = listed[0].last_error.as_deref().unwrap_or_default();
    assert!(
        reason.ends_with("evt_1: the carrier's service is down"),
        "{reason}"
    );
    shop.carrier_is_up.store(true, Ordering::Relaxed);
    assert_eq!(inbox.retry(dead).await?, 1);
    until(&inbox, EntryState::Done).await?;

    acceptor.drain(Duration::from_secs(5)).await;
    drop(acceptor); // `close` waits until nothing holds the inbox any more
    assert_eq!(workers.shutdown(Duration::from_secs(5)).await, 0);
    inbox.close().await;
    Ok(std::fs::remove_dir_all(folder)?)
}

/// Waits until an entry is in this state.
async fn until(inbox: &Inbox, state: EntryState) -> Result<(), Box<dyn Error>> {
    let which = Selection::all().state(state);
    while inbox.list(which.clone(), Page::first(1)).await?.is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn Error>> {
    run(Duration::from_secs(30)).await
}
