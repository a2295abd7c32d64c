//! What a careful user writes without this library: signature, age, a typed row, and a bounded set
//! of ids. It calls nothing of ours.
//!
//! It keeps less than a receiver does: an event whose sender hangs up is lost, a copy that comes
//! during the run is answered as done, and one secret is all there is.

#![allow(dead_code, unreachable_pub)] // a bench has no public API, and not each bench uses all of it
#![allow(clippy::unwrap_used)] // A bench panics on an unexpected result.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::extract::DefaultBodyLimit;
use axum::routing::{MethodRouter, post};
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use sha2::Sha256;

use super::delivery::Order;

const MAX_AGE: u64 = 300;
const MAX_BODY: usize = 1 << 20;
const MAX_IDS: usize = 1 << 20;
const RETAIN: Duration = Duration::from_secs(48 * 3600);

/// Returns the route of a handler that checks age and signature.
pub fn verified(secret: &str) -> MethodRouter {
    let key = keyed(secret);
    let handler = async move |headers: HeaderMap, body: Bytes| {
        if is_authentic(&key, &headers, &body) {
            StatusCode::NO_CONTENT
        } else {
            StatusCode::UNAUTHORIZED
        }
    };
    post(handler).layer(DefaultBodyLimit::max(MAX_BODY))
}

/// Returns the route of a handler that also reads the row and handles each id once.
pub fn typed(secret: &str) -> MethodRouter {
    let (key, seen) = (keyed(secret), Arc::new(Mutex::new(Seen::default())));
    let handler = async move |headers: HeaderMap, body: Bytes| run(&key, &seen, &headers, &body);
    post(handler).layer(DefaultBodyLimit::max(MAX_BODY))
}

/// The same in a task of its own, which goes on if the sender hangs up.
pub fn typed_in_a_task(secret: &str) -> MethodRouter {
    let (key, seen) = (keyed(secret), Arc::new(Mutex::new(Seen::default())));
    let handler = async move |headers: HeaderMap, body: Bytes| {
        let (key, seen) = (key.clone(), seen.clone());
        let task = tokio::spawn(async move { run(&key, &seen, &headers, &body) });
        task.await.unwrap()
    };
    post(handler).layer(DefaultBodyLimit::max(MAX_BODY))
}

fn run(key: &Hmac<Sha256>, seen: &Mutex<Seen>, headers: &HeaderMap, body: &[u8]) -> StatusCode {
    if !is_authentic(key, headers, body) {
        return StatusCode::UNAUTHORIZED;
    }
    let Ok(event) = serde_json::from_slice::<RowCreated>(body) else {
        return StatusCode::BAD_REQUEST;
    };
    if event.kind != "row.created" {
        return StatusCode::BAD_REQUEST;
    }
    if seen.lock().unwrap().insert(&event.id, Instant::now()) {
        std::hint::black_box((&event.data.row_id, event.data.properties.weigh()));
    }
    StatusCode::NO_CONTENT
}

fn keyed(secret: &str) -> Hmac<Sha256> {
    Hmac::new_from_slice(secret.as_bytes()).unwrap()
}

fn is_authentic(key: &Hmac<Sha256>, headers: &HeaderMap, body: &[u8]) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(timestamp), Some(signature)) =
        (text("x-service-timestamp"), text("x-service-signature"))
    else {
        return false;
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let fresh = |seconds: u64| seconds.abs_diff(now.as_secs()) <= MAX_AGE;
    if !timestamp.parse().is_ok_and(fresh) {
        return false;
    }
    let mut expected = [0; 32];
    let digits = signature.strip_prefix("sha256=");
    if digits.is_none_or(|digits| hex::decode_to_slice(digits, &mut expected).is_err()) {
        return false;
    }
    let mut mac = key.clone();
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    // In constant time.
    mac.verify_slice(&expected).is_ok()
}

/// What the handler needs of the event.
#[derive(Deserialize)]
struct RowCreated {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    data: Row,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    row_id: String,
    properties: Order,
}

/// The newest ids, at most so many and for so long.
#[derive(Default)]
struct Seen {
    ids: HashSet<Arc<str>>,
    in_order: VecDeque<(Instant, Arc<str>)>,
}

impl Seen {
    /// Returns true if the id is new.
    fn insert(&mut self, id: &str, now: Instant) -> bool {
        while let Some((since, oldest)) = self.in_order.front()
            && (now.duration_since(*since) > RETAIN || self.ids.len() >= MAX_IDS)
        {
            self.ids.remove(oldest);
            self.in_order.pop_front();
        }
        if self.ids.contains(id) {
            return false;
        }
        let id: Arc<str> = id.into();
        self.ids.insert(id.clone());
        self.in_order.push_back((now, id));
        true
    }
}
