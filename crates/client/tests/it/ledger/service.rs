//! A service in memory whose answers a test decides, and the events of it.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use hookgate::{
    Event, Properties,
    clock::{ManualClock, UnixSeconds},
};
use hookgate_client::{ApiKey, Body, Client, Ledger, Options, Rows};
use http::{Request, Response};
use http_body::Body as _;
use serde_json::{Value, json};

use crate::support::Whole;

pub const MODEL: &str = "dm_orders";
/// 2025-11-21T02:00:00Z, the time of the clock at the start of a test.
const START: i64 = 1_763_690_400;

pub fn clock() -> ManualClock {
    ManualClock::at(UnixSeconds::new(START))
}

/// So many seconds after the start.
pub fn iso(seconds: i64) -> String {
    let of_day = 2 * 60 * 60 + seconds;
    let (day, of_day) = (21 + of_day.div_euclid(86_400), of_day.rem_euclid(86_400));
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("2025-11-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z")
}

/// A request, as the service reads it.
pub struct Asked {
    pub method: String,
    pub path: String,
    pub body: Value,
}

impl Asked {
    pub fn is(&self, method: &str) -> bool {
        self.method == method
    }
}

/// Writes rows as they are sent, numbered from 1 within the process, at the start's time.
pub fn usual(asked: &Asked) -> (u16, Value) {
    static ROWS: AtomicU64 = AtomicU64::new(1);
    let new = |data: &Value| {
        let number = ROWS.fetch_add(1, Ordering::Relaxed);
        json!({ "id": format!("row_new_{number}"), "data": data, "createdAt": iso(0) })
    };
    match (&*asked.method, asked.body.get("rows")) {
        ("GET", _) => (200, json!({ "data": detail() })),
        ("POST", Some(rows)) => {
            let rows: Vec<_> = rows.as_array().unwrap().iter().map(new).collect();
            let meta = json!({ "createdCount": rows.len(), "errors": [] });
            (200, json!({ "data": rows, "meta": meta }))
        }
        ("POST", None) => (200, json!({ "data": new(&asked.body["values"]) })),
        ("PATCH", _) => {
            let row = asked.path.rsplit('/').next();
            let data = json!({ "id": row, "data": asked.body["values"], "updatedAt": iso(0) });
            (200, json!({ "data": data }))
        }
        _ => (200, json!({ "data": { "deleted": true } })),
    }
}

pub fn refusal(status: u16) -> (u16, Value) {
    let error = json!({ "code": "CODE", "message": "refused by the test" });
    (status, json!({ "error": error }))
}

fn detail() -> Value {
    let property = |(id, name): (&str, &str)| json!({ "id": id, "name": name, "type": "TEXT" });
    let properties = [
        ("prop_1", "Customer"),
        ("prop_2", "Total"),
        ("prop_3", "Status"),
        ("prop_4", "Twin"),
        ("prop_5", "Twin"),
        ("prop_6", "Tags"),
    ]
    .map(property);
    json!({ "id": MODEL, "title": "Orders", "properties": properties })
}

type Answered = Pin<Box<dyn Future<Output = (u16, Value)> + Send>>;

#[derive(Clone)]
struct Fake(Arc<dyn Fn(Asked) -> Answered + Send + Sync>);

impl tower_service::Service<Request<Body>> for Fake {
    type Response = Response<Whole>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Whole>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (head, body) = request.into_parts();
        // The body is in one piece.
        let mut context = Context::from_waker(Waker::noop());
        let data = match pin!(body).poll_frame(&mut context) {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            _ => bytes::Bytes::new(),
        };
        let asked = Asked {
            method: head.method.to_string(),
            path: head.uri.path().to_owned(),
            body: serde_json::from_slice(&data).unwrap_or_default(),
        };
        let answered = (self.0)(asked);
        Box::pin(async move {
            let (status, body) = answered.await;
            let body = Whole(Some(body.to_string().into()));
            Ok(Response::builder().status(status).body(body).unwrap())
        })
    }
}

/// A client of a service that answers like this. No request is repeated.
pub fn client<F>(answer: impl Fn(Asked) -> F + Send + Sync + 'static) -> Client
where
    F: Future<Output = (u16, Value)> + Send + 'static,
{
    let fake = Fake(Arc::new(move |asked| Box::pin(answer(asked))));
    let key = ApiKey::new("tk_test_made_up").unwrap();
    Client::builder("https://service.example/api/v1", key)
        .options(Options::default().retries(0))
        .with_service(fake)
        .build()
        .unwrap()
}

/// The orders of a service that answers as usual but for writes, which are noted as those of
/// `sync`.
pub fn orders(
    ledger: &Ledger,
    answer: impl Fn(&Asked) -> (u16, Value) + Send + Sync + 'static,
) -> Rows<Properties> {
    let answer = move |asked: Asked| {
        std::future::ready(match asked.is("GET") {
            true => usual(&asked),
            false => answer(&asked),
        })
    };
    client(answer).writer("sync", ledger).rows(MODEL)
}

fn event(id: &str, kind: &str, seconds: i64, row: &str, rest: Value) -> Event {
    let mut data = json!({ "datamodelId": MODEL, "datamodelName": "Orders", "rowId": row });
    for (name, value) in rest.as_object().unwrap() {
        data[name] = value.clone();
    }
    let body = json!({ "id": id, "type": kind, "createdAt": iso(seconds), "workspaceId": "ws_1", "data": data });
    signed(&body.to_string())
}

pub fn signed(body: &str) -> Event {
    hookgate_testing::event(body).unwrap()
}

pub fn created(id: &str, row: &str, properties: Value) -> Event {
    let rest = json!({ "properties": properties });
    event(id, "row.created", 0, row, rest)
}

/// Values after the update, by name.
pub fn updated(id: &str, seconds: i64, row: &str, after: Value) -> Event {
    let mut changes = json!({});
    for (name, after) in after.as_object().unwrap() {
        changes[name] = json!({ "before": "old", "after": after });
    }
    let rest = json!({ "changes": changes });
    event(id, "row.updated", seconds, row, rest)
}

/// An update of the total alone, to 1.
pub fn to_one(id: &str, seconds: i64, row: &str) -> Event {
    updated(id, seconds, row, json!({ "Total": 1 }))
}

/// Writes a total of 1.
pub async fn set_to_one(orders: &Rows<Properties>, row: &str) {
    let total = json!({ "Total": 1 });
    orders.update(row, &total).await.unwrap();
}

pub fn deleted(id: &str, row: &str) -> Event {
    event(id, "row.deleted", 0, row, json!({}))
}

/// Whether the event is an echo, of the writer `sync` then.
pub async fn is_echo(ledger: &Ledger, event: &Event) -> bool {
    let echo = ledger.echo(event).await.unwrap();
    echo.inspect(|echo| assert_eq!(echo.writer, "sync"))
        .is_some()
}
