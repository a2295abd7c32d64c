//! Handlers that use `?`: the answer to the sender, and the report to the operator.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use axum::routing::post;
use axum::{Router, body::Body};
use hookgate::{
    DeadLetter, Delivery, Event, EventData, EventRouter, HandlerError, Outcome, Receiver,
    clock::Clock,
    dedupe::{StoreError, StoreErrorKind},
    layer::{AlreadyHandled, Answer, Failed, ObservedRequest, RequestObserver, Unhandled},
    outcome::Failure,
};
use http::request::Parts;
use http::{Request, StatusCode};
use tower::ServiceExt;

use crate::harness::{Harness, Sent, TokioClock, in_turn};

/// An error with two below it. None of its words may reach the sender.
#[derive(Debug, thiserror::Error)]
#[error("order 7 of Ada was not stored")]
struct NotStored(#[source] DatabaseDown);

#[derive(Debug, thiserror::Error)]
#[error("the database is down")]
struct DatabaseDown(#[source] std::io::Error);

const CHAIN: &str = "order 7 of Ada was not stored: the database is down: no route to 10.0.0.7";

fn store() -> Result<(), NotStored> {
    Err(NotStored(DatabaseDown(std::io::Error::other(
        "no route to 10.0.0.7",
    ))))
}

async fn fails(_: Delivery) -> Result<StatusCode, HandlerError> {
    store()?;
    Ok(StatusCode::NO_CONTENT)
}

fn last_failed(harness: &Harness) -> Failed {
    harness.told.failed.lock().unwrap().last().unwrap().clone()
}

/// Everything that the sender gets.
async fn sent_back(response: axum::response::Response) -> String {
    let (parts, body) = response.into_parts();
    let body = axum::body::to_bytes(body, 9_999).await.unwrap();
    format!("{} {:?} {body:?}", parts.status, parts.headers)
}

fn holds_no_word(sent_back: &str) -> bool {
    let mut words = CHAIN.split([' ', ':']).filter(|word| word.len() > 2);
    words.all(|word| !sent_back.contains(word))
}

#[tokio::test(start_paused = true)]
async fn the_operator_gets_the_whole_chain_of_errors_and_the_sender_none() {
    let harness = Harness::of(|delivery, _| fails(delivery));
    let answer = harness.send(&Sent::event("evt_1")).await;
    assert_eq!(answer.status(), 500);
    let told = answer.extensions().get::<Answer>().unwrap();
    assert_eq!(told.to_string(), format!("500 handler_status: {CHAIN}"));
    let failed = last_failed(&harness);
    assert_eq!(failed.to_string(), format!("handler_status: {CHAIN}"));
    // The error itself is there too: a hook can look for the one that it knows.
    let reason = failed.reason.unwrap();
    assert!(reason.downcast_ref::<NotStored>().is_some());
    let sent_back = sent_back(answer).await;
    assert!(holds_no_word(&sent_back), "{sent_back}");
    assert!(sent_back.ends_with(r#" b"""#), "{sent_back}");
    // Released: the next attempt runs again.
    harness.send(&Sent::event("evt_1")).await;
    assert_eq!(harness.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn it_is_the_same_in_one_call_and_in_an_arm_of_the_router() {
    let harness = Harness::of(in_turn(&[200]));
    let request = |id: &str| Sent::event(id).request(&harness.clock);
    let answer = harness.receiver.handle(request("evt_1"), fails).await;
    assert_eq!((answer.status().as_u16(), answer.body().len()), (500, 0));
    let told = format!("handler_status: {CHAIN}");
    assert_eq!(last_failed(&harness).to_string(), told);

    let events = EventRouter::new().on("row.deleted", fails);
    let route = events.build().unwrap().layer(harness.receiver.layer());
    let app: Router = Router::new().route("/webhooks", route);
    let answer = app.oneshot(request("evt_2")).await.unwrap();
    assert_eq!(last_failed(&harness).to_string(), told);
    assert_eq!(answer.status(), 500);
    let sent_back = sent_back(answer).await;
    assert!(holds_no_word(&sent_back), "{sent_back}");
}

/// Without the layer there is no operator to tell, and the sender gets no word either.
#[tokio::test]
async fn without_the_layer_no_word_is_sent_either() {
    let fails = async || store().map_err(HandlerError::from);
    let app: Router = Router::new().route("/", post(fails));
    let answer = app.oneshot(Request::post("/").body(Body::empty()).unwrap());
    let sent_back = sent_back(answer.await.unwrap()).await;
    assert!(
        sent_back.starts_with("500 ") && holds_no_word(&sent_back),
        "{sent_back}"
    );
}

#[derive(serde::Deserialize)]
struct Order {
    #[serde(rename = "Total")]
    _total: f64,
}

/// The application's own error around that of an event.
#[derive(Debug, thiserror::Error)]
#[error("the order was not read")]
struct NotRead(#[from] hookgate::event::EventError);

#[tokio::test(start_paused = true)]
async fn an_event_that_does_not_fit_is_422_as_without_it() {
    async fn plain(event: Event) -> Result<(), HandlerError> {
        if let EventData::RowCreated(row) = event.data {
            row.properties.to::<Order>()?;
        }
        Ok(())
    }
    async fn wrapped(event: Event) -> Result<(), HandlerError> {
        if let EventData::RowCreated(row) = event.data {
            row.properties.to::<Order>().map_err(NotRead)?;
        }
        Ok(())
    }
    let harness = Harness::of(in_turn(&[200]));
    let sent = Sent::row_created("evt_1", r#"{"Total":"x"}"#);
    let by_layer = post(plain).layer(harness.receiver.layer());
    let by_layer: Router = Router::new().route("/webhooks", by_layer);
    let request = || sent.request(&harness.clock);
    for (way, said) in [(0, "Total"), (1, "Total"), (2, "the order was not read: ")] {
        let status = match way {
            0 => by_layer.clone().oneshot(request()).await.unwrap().status(),
            1 => harness.receiver.handle(request(), plain).await.status(),
            _ => harness.receiver.handle(request(), wrapped).await.status(),
        };
        assert_eq!(status, 422, "{way}");
        let failed = last_failed(&harness);
        assert_eq!(failed.outcome, Outcome::Failed(Failure::TypeMismatch));
        let told = failed.to_string();
        assert!(told.contains("Total") && told.contains(said), "{told}");
    }
}

/// A duplicate that is answered 500 would be sent for a day, and be reported as lost.
// fault F34: a duplicate that a handler passes on with `?` is answered 500 at each attempt, and reported as a lost event
// fault H6: an error that holds the error of a store by `Arc`, or a duplicate in a `Box`, is answered 500 in place of 503 and 200
#[tokio::test(start_paused = true)]
async fn an_error_of_hookgate_keeps_its_answer_on_the_way_through() {
    use hookgate::dedupe::NotFresh;

    #[derive(Clone, Debug, thiserror::Error)]
    #[error("the order was not written")]
    enum NotWritten {
        NotFresh(#[source] NotFresh),
        Store(#[source] StoreError),
        Shared(#[source] Arc<StoreError>),
        Boxed(#[source] Box<NotFresh>),
        Reason(#[source] Arc<dyn Error + Send + Sync>),
    }

    let duplicate = |same_body| NotFresh::Duplicate { same_body };
    let down = StoreError::new(StoreErrorKind::Unavailable);
    const RUNNING: &str =
        "503 handler_status: {}another transaction has claimed the event and has not ended";
    const DOWN: &str = "503 handler_status: {}the store is unavailable";
    #[rustfmt::skip] // a row a case
    let cases = [
        (NotWritten::NotFresh(duplicate(true)), 200, "200 replayed"),
        (NotWritten::NotFresh(duplicate(false)), 200, "200 replayed_with_other_body"),
        (NotWritten::NotFresh(NotFresh::Running), 503, RUNNING),
        (NotWritten::Store(down.clone()), 503, DOWN),
        (NotWritten::Shared(Arc::new(down)), 503, DOWN),
        (NotWritten::Boxed(Box::new(duplicate(true))), 200, "200 replayed"),
        (NotWritten::Reason(Arc::new(duplicate(true))), 200, "200 replayed"),
    ];
    for (number, (error, status, told)) in cases.into_iter().enumerate() {
        // Plain, with an error of the program around it, and outside axum.
        for way in 0..4 {
            let wrapped = error.clone();
            let passed = move || -> Result<StatusCode, HandlerError> {
                match wrapped {
                    _ if way % 2 == 1 => Err(wrapped)?,
                    NotWritten::NotFresh(error) => Err(error)?,
                    NotWritten::Store(error) => Err(error)?,
                    NotWritten::Shared(error) => Err(error)?,
                    NotWritten::Boxed(error) => Err(error)?,
                    NotWritten::Reason(error) => Err(error)?,
                }
            };
            let harness = Harness::of(in_turn(&[200]));
            let request = Sent::event(&format!("evt_{number}")).request(&harness.clock);
            let got = if way < 2 {
                let handler = async move |_: Delivery| passed();
                harness.receiver.handle(request, handler).await.map(drop)
            } else {
                let route = post(async || passed()).layer(harness.receiver.layer());
                let app: Router = Router::new().route("/webhooks", route);
                app.oneshot(request).await.unwrap().map(drop)
            };
            assert_eq!(got.status(), status, "{told}");
            let headers = got.headers();
            assert_eq!(headers.contains_key("idempotent-replayed"), status == 200);
            assert_eq!(headers.contains_key("retry-after"), status == 503);
            let around = ["", "the order was not written: "][way % 2];
            let answer = got.extensions().get::<Answer>().unwrap().to_string();
            assert_eq!(answer, told.replace("{}", around));
        }
    }
}

/// Plain, and with an error of the program around it.
// fault H2: an answer of the library, such as `AlreadyHandled`, does not convert to `HandlerError`, or loses its status there
#[tokio::test(start_paused = true)]
async fn each_answer_of_the_library_can_be_passed_on_as_an_error() {
    #[derive(Debug, thiserror::Error)]
    #[error("nothing was written")]
    struct Around(#[source] Box<dyn std::error::Error + Send + Sync>);

    fn passed(delivery: &Delivery, number: usize) -> Result<StatusCode, HandlerError> {
        match number {
            0 => Err(AlreadyHandled::new())?,
            1 => Err(AlreadyHandled::with_other_body())?,
            2 => Err(DeadLetter::new("no such customer"))?,
            3 => Err(Unhandled::new(delivery))?,
            _ => Err(Around(AlreadyHandled::new().into()))?,
        }
    }
    const DEAD: &str = "500 dead_letter_hook_missing: ";
    let told = [
        "200 replayed",
        "200 replayed_with_other_body",
        DEAD,
        "204 unhandled: no handler for row.deleted of the data model dm_1",
        "200 replayed",
    ];
    let harness = Harness::of(in_turn(&[200]));
    for (number, told) in told.into_iter().enumerate() {
        let handler = async move |delivery: Delivery| passed(&delivery, number);
        let [first, second] = ["a", "b"]
            .map(|way| Sent::event(&format!("evt_{number}_{way}")).request(&harness.clock));
        let answer = harness.receiver.handle(first, handler).await;
        let mut reports = vec![answer.extensions().get::<Answer>().unwrap().to_string()];
        let route = post(async move |delivery: Delivery| passed(&delivery, number));
        let app: Router = Router::new().route("/webhooks", route.layer(harness.receiver.layer()));
        let answer = app.oneshot(second).await.unwrap();
        reports.push(answer.extensions().get::<Answer>().unwrap().to_string());
        for report in reports {
            assert!(
                report == told || told == DEAD && report.starts_with(DEAD),
                "{report}"
            );
        }
    }
}

/// Observes no request. Nevertheless it is an observer that was set.
struct Declines;

impl RequestObserver for Declines {
    fn begin(&self, _: &Parts, _: &dyn Clock) -> Option<Box<dyn ObservedRequest>> {
        None
    }
}

/// Without a hook, an observer or a subscriber, in a process of its own: the others of this one
/// would show the error.
// fault H1: a handler is copied from a page that does not call `migrate`: each delivery is answered 503 until it is discarded, and a program without a hook and without `tracing` says nothing
#[tokio::test]
async fn the_error_of_a_store_is_written_to_stderr_where_nothing_else_shows_it() {
    const CHILD: &str = "HOOKGATE_TEST_WITHOUT_AN_OPERATOR";
    const MISSING: &str = "hookgate: handler_status: the store is missing: create it first";
    if std::env::var_os(CHILD).is_none() {
        let name =
            "handler_errors::the_error_of_a_store_is_written_to_stderr_where_nothing_else_shows_it";
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let stderr = String::from_utf8(child.stderr).unwrap();
        assert!(child.status.success(), "{stderr}");
        let mut lines = stderr.lines().filter(|line| line.contains("hookgate: "));
        assert_eq!((lines.next(), lines.next()), (Some(MISSING), None));
        return;
    }
    let clock = TokioClock::start();
    let builder = || {
        let secret = hookgate::Secret::new(crate::harness::SECRET).unwrap();
        let builder = Receiver::builder().secret(secret).without_deduplication();
        builder.clock(clock.clone())
    };
    let unavailable = async |_: Delivery| -> Result<StatusCode, HandlerError> {
        Err(StoreError::new(StoreErrorKind::Missing))?
    };
    let (silent, told, observed) = (
        builder().build().unwrap(),
        builder().on_failed(|_| ()).build().unwrap(),
        builder().observer(Declines).build().unwrap(),
    );
    for receiver in [silent, told, observed] {
        let request = || Sent::event("evt_1").request(&clock);
        let answer = receiver.handle(request(), unavailable).await;
        assert_eq!(answer.status(), 503);
        // An error of the program itself: its own log has it.
        let answer = receiver.handle(request(), fails).await;
        assert_eq!(answer.status(), 500);
    }
}

/// As `anyhow::Error`: no `Error` itself, but it converts to a boxed one.
struct Report(NotStored);

impl From<Report> for Box<dyn std::error::Error + Send + Sync> {
    fn from(report: Report) -> Self {
        report.0.into()
    }
}

#[test]
fn whatever_converts_to_a_boxed_error_can_be_passed_on() {
    fn passed(number: u8) -> Result<(), HandlerError> {
        match number {
            0 => Ok(store()?),
            1 => Err(Box::<dyn std::error::Error + Send + Sync>::from(
                store().unwrap_err(),
            ))?,
            2 => Err(Report(store().unwrap_err()))?,
            3 => Err("just a text")?,
            _ => Err(format!("made up at {number}"))?,
        }
    }
    let shown: Vec<_> = (0..5)
        .map(|number| format!("{:?}", passed(number).unwrap_err()))
        .collect();
    let told = [CHAIN, CHAIN, CHAIN, "just a text", "made up at 4"];
    assert_eq!(shown, told.map(|told| format!("HandlerError({told})")));
}

/// An error with a very long text, and without an end of its sources.
#[derive(Debug)]
struct Endless;

impl fmt::Display for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&"endless ".repeat(99))
    }
}

impl std::error::Error for Endless {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self)
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_shown_of_an_error_and_of_a_panic_has_a_bounded_length() {
    let harness = Harness::of(|_, run| async move {
        assert!(run != 2, "{}", "made up ".repeat(99_999));
        Err::<StatusCode, _>(HandlerError::from(Endless))
    });
    for longest in [2_100, 600] {
        let answer = harness.send(&Sent::event("evt_1")).await;
        let told = answer.extensions().get::<Answer>().unwrap().to_string();
        let length = told.len();
        assert!(told.ends_with('…') && length < longest, "{length} {told}");
        assert!(last_failed(&harness).to_string().len() < longest);
    }
}
