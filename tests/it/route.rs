//! The event router: which arm an event goes to, how an event without an arm is answered, and which
//! types to subscribe to.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{OriginalUri, State};
use axum::response::IntoResponse;
use axum::routing::MethodRouter;
use bytes::Bytes;
use hookgate::{
    ConfigErrorKind, Delivery, Event, EventData, EventRouter, MemoryStore, Outcome, Receiver,
    ReceiverBuilder,
    event::{EventError, EventType},
    layer::{Answer, Settled, Unhandled},
    outcome::Failure,
    route::Subscription,
};
use http::{HeaderMap, StatusCode};
use proptest::prelude::*;

use crate::support::{NOW, Received, Sent, ask, ask_request, manual, receiver};

/// An arm that says its name.
macro_rules! says {
    ($name:expr) => {{
        let name = String::from($name);
        move || async move { name }
    }};
}

fn body(id: &str, event_type: &str, data: &str) -> String {
    format!(
        r#"{{"id":"{id}","type":"{event_type}","createdAt":"2025-11-21T01:53:20Z","workspaceId":"ws_1","data":{data}}}"#
    )
}

/// A whole event; of a row in this model, if its type is a row's.
fn event(id: &str, event_type: &str, model: &str) -> String {
    let row = format!(r#""datamodelId":"{model}","datamodelName":"Orders","rowId":"row_1""#);
    let data = match event_type {
        "row.created" => format!(
            r#"{{{row},"properties":{{"Total":12.5}},"createdBy":{{"id":"usr_1","name":"Ada"}}}}"#
        ),
        "row.updated" => format!(
            r#"{{{row},"changes":{{"Total":{{"before":1,"after":2}}}},"updatedBy":{{"id":"usr_1","name":"Ada"}}}}"#
        ),
        "row.deleted" => format!(r#"{{{row},"deletedBy":{{"id":"usr_1","name":"Ada"}}}}"#),
        _ => r#"{"title":"Plans"}"#.into(),
    };
    body(id, event_type, &data)
}

/// A route with a router behind the layer, and the reports to its hooks.
struct Guarded {
    app: Router,
    told: HookReports,
}

#[derive(Clone, Default)]
struct HookReports {
    answers: Arc<Mutex<Vec<Answer>>>,
    settled: Arc<Mutex<Vec<Settled>>>,
    failed: Arc<Mutex<Vec<Outcome>>>,
}

impl Guarded {
    fn new(events: EventRouter) -> Self {
        Self::with(events, receiver())
    }

    fn with(events: EventRouter, settings: ReceiverBuilder) -> Self {
        let told = HookReports::default();
        let [on_answer, on_settled, on_failed] = [(); 3].map(|()| told.clone());
        let receiver = settings
            .clock(manual())
            .on_answer(move |answer| on_answer.answers.lock().unwrap().push(answer.clone()))
            .on_settled(move |run| on_settled.settled.lock().unwrap().push(run.clone()))
            .on_failed(move |failed| on_failed.failed.lock().unwrap().push(failed.outcome))
            .build()
            .unwrap();
        let events = events.build().unwrap().layer(receiver.layer());
        Self {
            app: Router::new().route("/hook", events),
            told,
        }
    }

    async fn send(&self, body: impl Into<Vec<u8>>) -> Received {
        ask(&self.app, &Sent::at(NOW, body)).await
    }

    /// The arm that ran, by its answer.
    async fn arm(&self, body: impl Into<Vec<u8>>) -> Option<String> {
        let got = self.send(body).await;
        match got.status {
            200 => Some(String::from_utf8(got.body.to_vec()).unwrap()),
            204 => None,
            status => Some(status.to_string()),
        }
    }

    fn last_answer(&self) -> Answer {
        self.told.answers.lock().unwrap().last().unwrap().clone()
    }

    fn settled(&self) -> Vec<Outcome> {
        let settled = self.told.settled.lock().unwrap();
        settled.iter().map(|run| run.outcome).collect()
    }

    fn failed(&self) -> Vec<Outcome> {
        self.told.failed.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn each_delivery_goes_to_its_most_specific_arm() {
    let events = || {
        EventRouter::new()
            .on_rows("dm_rows", says!("rows of dm_rows"))
            .on_model("row.created", "dm_1", says!("created in dm_1"))
            .on_model("row.created", "dm_2", says!("created in dm_2"))
            .on(EventType::ROW_CREATED, says!("created"))
            .on_model("row.updated", "dm_1", says!("updated in dm_1"))
            .on("page.created", says!("page"))
            .on("row.archived", says!("archived"))
            .on("table.dropped", says!("dropped"))
    };
    let without = Guarded::new(events());
    let with = Guarded::new(events().fallback(says!("fallback")));
    for (number, (event_type, model, arm)) in [
        ("row.created", "dm_1", Some("created in dm_1")),
        ("row.created", "dm_2", Some("created in dm_2")),
        ("row.created", "dm_3", Some("created")),
        ("row.created", "DM_1", Some("created")),
        ("row.created", "", Some("created")),
        ("row.created", "dm_rows", Some("rows of dm_rows")),
        ("row.updated", "dm_rows", Some("rows of dm_rows")),
        ("row.deleted", "dm_rows", Some("rows of dm_rows")),
        ("row.updated", "dm_1", Some("updated in dm_1")),
        ("row.updated", "dm_2", None),
        ("row.deleted", "dm_1", None),
        ("page.created", "", Some("page")),
        ("page.deleted", "", None),
        ("row.archived", "", Some("archived")),
        ("table.dropped", "", Some("dropped")),
        ("ROW.CREATED", "", None),
        ("row.created ", "", None),
    ]
    .into_iter()
    .enumerate()
    {
        let body = event(&format!("evt_{number}"), event_type, model);
        let what = format!("{event_type} {model}");
        assert_eq!(without.arm(&*body).await.as_deref(), arm, "{what}");
        let arm = arm.or(Some("fallback"));
        assert_eq!(with.arm(&*body).await.as_deref(), arm, "{what}");
    }
}

#[tokio::test]
async fn type_and_model_are_those_of_the_signed_body_however_it_is_written() {
    let guarded = Guarded::new(
        EventRouter::new()
            .on_model("row.deleted", "dm_1", says!("dm_1"))
            .on("row.deleted", says!("any model"))
            .fallback(says!("fallback")),
    );
    let (by, row) = (r#""deletedBy":{"id":"u","name":"A"}"#, r#""rowId":"row_1""#);
    let datas = [
        format!(r#"{{"datamodelId":"dm_1",{row},{by}}}"#),
        format!(r#"{{{row},{by},"x":{{"datamodelId":"dm_2"}},"datamodelId":"dm_1"}}"#),
        format!(r#"{{"datamodelId":"d\u006d_\u0031",{row},{by}}}"#),
        format!(r#"{{"d\u0061tamodelId" : "dm_1",{row},{by}}}"#),
    ];
    for (number, data) in datas.iter().enumerate() {
        let written = body(&format!("evt_{number}"), r"row.d\u0065leted", data);
        let reversed = format!(
            "\n{{ \"data\":{data}, \"datamodelId\":\"dm_2\", \"type\":\"row.deleted\", \"id\":\"evt_r{number}\" }}\r\n"
        );
        for body in [written, reversed] {
            assert_eq!(guarded.arm(body).await.as_deref(), Some("dm_1"), "{data}");
        }
    }
    // The type in a header decides nothing: here the delivery is refused, as the header differs
    // from the body.
    let sent = Sent::at(NOW, event("evt_9", "row.deleted", "dm_1"));
    let sent = sent.with("X-Service-Event-Type", "row.created");
    assert_eq!(ask(&guarded.app, &sent).await.status, 400);
    let ignoring = Guarded::with(
        EventRouter::new()
            .on("row.deleted", says!("as signed"))
            .on("row.created", says!("as the header says")),
        receiver().ignore_header_mismatch(),
    );
    assert_eq!(ask(&ignoring.app, &sent).await.body, "as signed");
}

/// An arm that must not run.
async fn never() -> StatusCode {
    panic!("made-up panic: the event was not this arm's")
}

#[derive(serde::Deserialize)]
struct Order {
    #[serde(rename = "Total")]
    total: f64,
}

#[derive(serde::Deserialize)]
struct Invoice {
    #[serde(rename = "Number")]
    number: String,
}

#[tokio::test]
async fn an_arm_that_refuses_passes_nothing_on() {
    let store = Arc::new(MemoryStore::default());
    let settings = || receiver().store(Arc::clone(&store));
    let events = EventRouter::new()
        .on_model("row.created", "dm_invoices", async |_: Event<Invoice>| {})
        .on_model("row.created", "dm_gone", || async { StatusCode::NOT_FOUND })
        .on("row.created", never)
        .fallback(never);
    let guarded = Guarded::with(events, settings());
    let mismatch = event("evt_1", "row.created", "dm_invoices");
    assert_eq!(guarded.send(&*mismatch).await.status, 422);
    let answer = guarded.last_answer();
    assert_eq!(answer.outcome, Outcome::Failed(Failure::TypeMismatch));
    let error = answer.reason.unwrap();
    let error = error.downcast_ref::<EventError>().unwrap();
    assert_eq!(error.path(), Some("data.properties.Number"));
    assert_eq!(error.model().unwrap(), "dm_invoices");
    // An answer that looks as if nothing were there is the arm's own, and final too.
    let gone = event("evt_2", "row.created", "dm_gone");
    assert_eq!(guarded.send(gone).await.status, 404);
    assert_eq!(guarded.failed().len(), 2);
    // Both were released: a mended deployment takes the retry.
    let events = EventRouter::new()
        .on_model("row.created", "dm_invoices", async |_: Event<Order>| {})
        .on("row.created", never);
    let mended = Guarded::with(events, settings());
    assert_eq!(mended.send(&*mismatch).await.status, 200);
    assert_eq!(mended.settled(), [Outcome::Handled]);
}

#[tokio::test]
async fn every_arm_has_its_row_type_its_state_and_its_extractors() {
    #[derive(Clone)]
    struct AppState {
        seen: Arc<Mutex<Vec<String>>>,
    }

    async fn on_order(State(shop): State<AppState>, event: Event<Order>) -> StatusCode {
        let EventData::RowCreated(row) = event.data else {
            return StatusCode::BAD_REQUEST;
        };
        let line = format!("{} {}", row.row_id, row.properties.total);
        shop.seen.lock().unwrap().push(line);
        StatusCode::NO_CONTENT
    }

    async fn on_invoice(
        event: Event<Invoice>,
        State(shop): State<AppState>,
    ) -> Result<(), EventError> {
        if let EventData::RowCreated(row) = event.data {
            shop.seen.lock().unwrap().push(row.properties.number);
        }
        Ok(())
    }

    async fn on_page(
        State(shop): State<AppState>,
        OriginalUri(uri): OriginalUri,
        headers: HeaderMap,
        delivery: Delivery,
        bytes: Bytes,
    ) -> Result<StatusCode, Unhandled> {
        assert_eq!(*delivery.body(), bytes);
        let content = headers["content-type"].to_str().unwrap();
        let line = format!("{} {uri} {content}", delivery.event_type());
        shop.seen.lock().unwrap().push(line);
        Ok(StatusCode::ACCEPTED)
    }

    let shop = AppState {
        seen: Arc::default(),
    };
    let receiver = receiver().clock(manual()).build().unwrap();
    let events: MethodRouter<AppState> = EventRouter::new()
        .on_model("row.created", "dm_orders", on_order)
        .on_model("row.created", "dm_invoices", on_invoice)
        .fallback(on_page)
        .build()
        .unwrap();
    // Below a path, under two layers of the same receiver, beside another route.
    let events = Router::new().route("/hook", events.layer(receiver.layer()));
    let app: Router = Router::new()
        .nest("/in", events)
        .layer(receiver.layer())
        .route("/health", axum::routing::get(|| async {}))
        .with_state(shop.clone());
    let send = async |body: String| ask(&app, &Sent::at(NOW, body).to("/in/hook")).await.status;
    assert_eq!(send(event("evt_1", "row.created", "dm_orders")).await, 204);
    let invoice = event("evt_2", "row.created", "dm_invoices")
        .replace(r#""Total":12.5"#, r#""Number":"2026-7""#);
    assert_eq!(send(invoice).await, 200);
    assert_eq!(send(event("evt_3", "page.created", "")).await, 202);
    assert_eq!(send(event("evt_3", "page.created", "")).await, 200);
    let page = "page.created /in/hook application/json";
    assert_eq!(*shop.seen.lock().unwrap(), ["row_1 12.5", "2026-7", page]);
}

#[tokio::test]
async fn an_event_without_an_arm_is_done_and_reported() {
    let events = EventRouter::new()
        .on("page.created", says!("page"))
        .on_model("row.created", "dm_1", says!("row"));
    let guarded = Guarded::new(events);
    for (id, event_type, model, of_the_model) in [
        (
            "evt_1",
            "row.created",
            Some("dm_2"),
            " of the data model dm_2",
        ),
        // Here no arm asked for the model; the operator gets it all the same.
        (
            "evt_2",
            "row.deleted",
            Some("dm_1"),
            " of the data model dm_1",
        ),
        ("evt_3", "page.deleted", None, ""),
        ("evt_4", "not.invented", None, ""),
    ] {
        let reason = format!("no handler for {event_type}{of_the_model}");
        let body = event(id, event_type, model.unwrap_or_default());
        let got = guarded.send(&*body).await;
        assert_eq!((got.status, got.body.len()), (204, 0), "{event_type}");
        let answer = guarded.last_answer();
        assert_eq!((answer.outcome, answer.status), (Outcome::Unhandled, 204));
        assert_eq!(answer.to_string(), format!("204 unhandled: {reason}"));
        let unhandled = answer.reason.unwrap();
        let unhandled = unhandled.downcast_ref::<Unhandled>().unwrap();
        assert_eq!(unhandled.event_type(), &event_type);
        assert_eq!(unhandled.model().map(|id| id.as_str()), model);
        let settled = guarded.told.settled.lock().unwrap().last().unwrap().clone();
        assert_eq!(settled.to_string(), format!("unhandled: {reason}"));
        // Done: a second copy has nothing to do.
        assert!(guarded.send(&*body).await.is_replay());
    }
    assert_eq!(guarded.settled(), [Outcome::Unhandled; 4]);
    assert_eq!(guarded.failed(), []);
    // Text from a body is shown escaped and cut off.
    let long = format!("dm\\n{}", "é".repeat(1_000));
    let long = guarded.send(event("evt_6", "row.deleted", &long)).await;
    assert_eq!(long.status, 204);
    let answer = guarded.last_answer().to_string();
    let shown =
        answer.strip_prefix("204 unhandled: no handler for row.deleted of the data model dm\\né");
    assert!(shown.is_some_and(|rest| rest.ends_with("é…")), "{answer}");
    assert!(answer.chars().count() < 330, "{answer}");
    let reason = guarded.last_answer().reason.unwrap();
    let unhandled = reason.downcast_ref::<Unhandled>().unwrap();
    assert_eq!(
        unhandled.model().unwrap().as_str().len(),
        "dm\n".len() + 2_000
    );
    // Where no code reads the body, the operator's report has nothing from it either.
    let broken = r#"{"id":"evt_5","type":"row.deleted","data":{"datamodelId":"dm_1"#;
    assert_eq!(guarded.send(broken).await.status, 204);
    let answer = guarded.last_answer().to_string();
    assert_eq!(answer, "204 unhandled: no handler for row.deleted");
}

#[tokio::test]
async fn refused_unhandled_events_reach_a_corrected_deployment() {
    let store = Arc::new(MemoryStore::default());
    let settings = || receiver().store(Arc::clone(&store));
    let events = || EventRouter::new().on_model("row.created", "dm_1", says!("row"));
    let body = event("evt_1", "row.created", "dm_2");
    let guarded = Guarded::with(events().refuse_unhandled(), settings());
    let got = guarded.send(&*body).await;
    assert_eq!(got.status, 422);
    assert_eq!(
        got.body,
        r#"{"error":{"code":"VALIDATION_ERROR","message":"the delivery is not an event that is handled here"}}"#
    );
    let told = "422 unhandled_refused: no handler for row.created of the data model dm_2";
    assert_eq!(guarded.last_answer().to_string(), told);
    let refused = Outcome::Failed(Failure::Unhandled);
    assert_eq!(
        (guarded.settled(), guarded.failed()),
        (vec![refused], vec![refused])
    );

    let mended = events().on_model("row.created", "dm_2", says!("the new arm"));
    let mended = Guarded::with(mended, settings());
    assert_eq!(mended.arm(&*body).await.as_deref(), Some("the new arm"));
    assert!(mended.send(&*body).await.is_replay());

    // An answer of the receiver's own, so it has the shape that is set for those.
    let shaped = Guarded::with(
        events().refuse_unhandled(),
        receiver().map_own_responses(|_, response| response.map(|_| "in another shape".into())),
    );
    let got = shaped.send(&*body).await;
    assert_eq!((got.status, &*got.body), (422, &b"in another shape"[..]));
}

#[tokio::test]
async fn a_handler_reports_what_it_does_not_handle_as_the_router_does() {
    async fn on_delivery(delivery: Delivery) -> axum::response::Response {
        let unhandled = Unhandled::new(&delivery);
        match delivery.event_type() {
            "page.created" => StatusCode::NO_CONTENT.into_response(),
            "page.deleted" => unhandled.into_response(),
            _ => unhandled.mark((StatusCode::NOT_IMPLEMENTED, "not yet").into_response()),
        }
    }

    let guarded = Guarded::new(EventRouter::new().fallback(on_delivery));
    let refused = Outcome::Failed(Failure::Unhandled);
    for (id, event_type, status, outcome, said) in [
        ("evt_1", "page.created", 204, Outcome::Handled, ""),
        ("evt_2", "page.deleted", 204, Outcome::Unhandled, ""),
        // An answer of the handler itself stays its own.
        ("evt_3", "page.updated", 501, refused, "not yet"),
    ] {
        let got = guarded.send(event(id, event_type, "")).await;
        assert_eq!((got.status, &*got.body), (status, said.as_bytes()));
        assert_eq!(guarded.last_answer().outcome, outcome);
    }
}

/// Row events whose body does not state their model exactly once and readably.
fn without_a_model(event_type: &str) -> Vec<String> {
    let datas = [
        r#"{"rowId":"row_1"}"#,
        r#"{"datamodelId":null}"#,
        r#"{"datamodelId":1}"#,
        r#"{"datamodelId":["dm_1"]}"#,
        r#"{"datamodelId":"dm_1","datamodelId":"dm_1"}"#,
        r#"{"datamodelId":"dm_1","d\u0061tamodelId":"dm_2"}"#,
        r#"{"datamodelId":"dm_1"},"data":{"datamodelId":"dm_2"}"#,
        r#"{"datamodelId":"dm_1"},"type":"page.created""#,
        r#"{"datamodelId":"dm_1"},"id":"evt_2""#,
        r#"{"datamodelId":"dm_1"},"workspaceId":"ws_2""#,
        r#"["dm_1"]"#,
        r#""dm_1""#,
        "null",
        r#"{"datamodelId":"dm_1","x":"\ud800"}"#,
        r#"{"datamodelId":"dm_1","x":1e400}"#,
        r#"{"datamodelId":"dm_1","x":tru}"#,
        r#"{"datamodelId":"dm_1""#,
        r#"{"datamodelId":"dm_1"}}"#,
    ];
    let whole = |(at, data): (usize, &&str)| body(&format!("evt_{at}"), event_type, data);
    let mut bodies: Vec<_> = datas.iter().enumerate().map(whole).collect();
    bodies.push(format!(r#"{{"id":"evt_a","type":"{event_type}"}}"#));
    let deep = format!(
        r#"{{"datamodelId":"dm_1","x":{}{}}}"#,
        "[".repeat(130),
        "]".repeat(130)
    );
    bodies.push(body("evt_b", event_type, &deep));
    bodies
}

#[tokio::test]
async fn a_row_with_an_unreadable_model_is_refused_as_an_event_is() {
    let asking = Guarded::new(
        EventRouter::new()
            .on_model("row.created", "dm_1", never)
            .on("row.created", never)
            .on("row.updated", says!("updated"))
            .fallback(says!("fallback")),
    );
    let typed = Guarded::new(EventRouter::new().fallback(async |_: Event| {}));
    for body in without_a_model("row.created") {
        let refused = asking.send(&*body).await;
        assert_eq!(refused.status, 422, "{body}");
        let answer = asking.last_answer();
        let mismatch = Outcome::Failed(Failure::TypeMismatch);
        assert_eq!(answer.outcome, mismatch, "{body}");
        assert_eq!(typed.send(&*body).await.status, 422, "{body}");
        let of_an_event = typed.last_answer().to_string();
        assert_eq!(answer.to_string(), of_an_event, "{body}");
        // Released, and so asked again.
        assert_eq!(asking.send(&*body).await.status, 422, "{body}");
    }
    let not_text = b"{\"id\":\"evt_t\",\"type\":\"row.created\",\"data\":{\"datamodelId\":\"dm_1\",\"x\":\"\xff\"}}";
    assert_eq!(asking.send(not_text.as_slice()).await.status, 422);
    // Where no arm for the type asks for the model, the body is not read so far.
    for (event_type, arm) in [("row.updated", "updated"), ("row.deleted", "fallback")] {
        for body in without_a_model(event_type) {
            let body = body.replace("evt_", &format!("evt_{arm}_"));
            assert_eq!(asking.arm(&*body).await.as_deref(), Some(arm), "{body}");
        }
    }
}

#[tokio::test]
async fn without_the_layer_no_arm_runs_and_the_line_to_add_is_named() {
    let events = EventRouter::new().on("row.created", never).fallback(never);
    let app = Router::new().route("/hook", events.build().unwrap());
    let sent = Sent::at(NOW, event("evt_1", "row.created", "dm_1"));
    let sent = sent.with("X-Service-Event-Type", "row.created");
    let got = ask(&app, &sent).await;
    assert_eq!(got.status, 500);
    let line = b".layer(receiver.layer())";
    assert!(got.body.windows(line.len()).any(|window| window == line));
}

#[tokio::test]
async fn only_post_is_taken() {
    let events = || {
        EventRouter::new()
            .fallback(says!("fallback"))
            .build()
            .unwrap()
    };
    let receiver = receiver().build().unwrap();
    for events in [events(), events().layer(receiver.layer())] {
        let app = Router::new().route("/hook", events);
        for method in ["GET", "PUT", "DELETE"] {
            let request = Sent::new("{}").by(method).request();
            let got = ask_request(&app, request).await;
            assert_eq!(
                (got.status, got.headers["allow"].as_bytes()),
                (405, &b"POST"[..])
            );
        }
    }
}

#[test]
fn arms_that_cannot_be_are_refused_by_name() {
    fn router() -> EventRouter {
        EventRouter::new()
    }
    let ok = || async {};
    let of_model = |event_type, model| router().on_model(event_type, model, ok);
    let long = "e".repeat(257);
    #[rustfmt::skip] // a row a case
    let cases = [
        (router(), ".fallback("),
        (router().refuse_unhandled(), ".on("),
        (router().on("row.created", ok).on(EventType::ROW_CREATED, ok), r#""row.created" of any data model"#),
        (of_model("row.created", "dm_1").on_model("row.created", "dm_1", ok), r#""row.created" of the data model "dm_1""#),
        (router().on_rows("dm_1", ok).on_model("row.deleted", "dm_1", ok), r#""row.deleted" of the data model "dm_1""#),
        (router().on("table.made", ok).on("table.made", ok), "table.made"),
        (router().fallback(ok).fallback(ok), "fallback"),
        (router().fallback(ok).refuse_unhandled(), "fallback"),
        (router().on("", ok), r#""""#),
        (router().on(" ", ok), r#"" ""#),
        (router().on("row.created ", ok), r#""row.created ""#),
        (router().on("row\ncreated", ok), r#""row\ncreated""#),
        (router().on(&long, ok), "256"),
        (of_model("row.created", ""), r#""row.created""#),
        (of_model("row.created", " \t"), r#"" \t""#),
        (of_model("row.created", "dm_1\n"), r#""dm_1\n""#),
        (of_model("row.created", "dm\0"), r#""dm\0""#),
        (router().on_rows(" ", ok), r#"" ""#),
        (of_model("page.created", "dm_1"), "page.created"),
        (of_model("member.invited", "dm_1"), "member.invited"),
        (of_model("row.archived", "dm_1"), "row.archived"),
        // The first fault is reported, whatever follows it.
        (router().on("", ok).on("a", ok).on("a", ok), r#""""#),
    ];
    for (router, named) in cases {
        let error = router.build().expect_err(named);
        assert_eq!(error.kind(), ConfigErrorKind::UnusableArm, "{error}");
        let said = error.to_string();
        assert!(said.contains(named), "{named}: {said}");
        assert!(format!("{error:?}").contains(&said), "{error:?}");
    }
    // One type, once with each model and once without: a normal use of arms.
    let all = router()
        .on_rows("dm_1", ok)
        .on_rows("dm_2", ok)
        .on("row.created", ok)
        .fallback(ok);
    assert_eq!(
        format!("{all:?}"),
        r#"["row.created", ("row.created", "dm_1"), ("row.created", "dm_2"), ("row.deleted", "dm_1"), ("row.deleted", "dm_2"), ("row.updated", "dm_1"), ("row.updated", "dm_2"), "fallback"]"#
    );
    assert!(all.build().is_ok());
}

#[test]
fn the_list_of_subscriptions_brings_each_arm_its_events_and_none_twice() {
    fn router() -> EventRouter {
        EventRouter::new()
    }
    let ok = || async {};
    const TWICE: &str = "the subscription to any data model brings that; another one that brings it too needs the same scope, or each event runs twice";
    let warned = |model| format!("warning: row.created of {model}: {TWICE}");
    let [twice_1, twice_2] = ["dm_1", "dm_2"].map(warned);
    let mistyped =
        "warning: row.create is not an event type that the service documents: is it mistyped?";
    let typed = router().on("row.created", ok).on("page.created", ok);
    let rows = router().on_rows("dm_1", ok);
    let overlapping = router()
        .on("row.created", ok)
        .on_model("row.created", "dm_2", ok);
    #[rustfmt::skip] // a line of the list a row
    let cases = [
        (router(), vec![]),
        (router().fallback(ok), vec![]),
        (typed.fallback(ok), vec!["subscription to page.created, row.created; data model: any"]),
        (rows.on_model("row.created", "dm_2", ok), vec![
            "subscription to row.created, row.deleted, row.updated; data model: dm_1",
            "subscription to row.created; data model: dm_2",
        ]),
        // All of dm_2's arm comes with the first one.
        (overlapping.on_rows("dm_1", ok).on("row.create", ok), vec![
            "subscription to row.create, row.created; data model: any",
            "subscription to row.deleted, row.updated; data model: dm_1",
            mistyped,
            &twice_1,
            &twice_2,
        ]),
    ];
    for (router, lines) in cases {
        let shown = router.subscriptions().to_string();
        assert_eq!(shown.lines().collect::<Vec<_>>(), lines);
    }
    let overlapping = router()
        .on("row.created", ok)
        .on_model("row.created", "dm_1", ok);
    let subscriptions = overlapping.subscriptions();
    let listed: Vec<&Subscription> = subscriptions.iter().collect();
    assert_eq!(listed.len(), 1);
    assert_eq!(*listed[0].event_types, [EventType::ROW_CREATED]);
    assert_eq!(listed[0].model, None);
    assert_eq!(subscriptions.warnings(), [twice_1]);
}

/// The reason for the warning: two subscriptions that bring the same event, under one scope and
/// under two.
#[tokio::test]
async fn overlapping_subscriptions_run_an_event_once_only_under_one_scope() {
    use hookgate::{KeyRing, Secret};

    let secrets = ["whsec_made_up_for_any_model", "whsec_made_up_for_one_model"];
    for (scopes, runs) in [(["rows", "rows"], 1), (["wh_any", "wh_one"], 2)] {
        let ring = |at: usize| {
            let ring = KeyRing::new(Secret::new(secrets[at]).unwrap());
            ring.with_scope(scopes[at]).unwrap()
        };
        let settings = Receiver::builder()
            .subscriptions([("wh_any", ring(0)), ("wh_one", ring(1))])
            .store(MemoryStore::default());
        let events = EventRouter::new().on("row.created", says!("any"));
        let events = events.on_model("row.created", "dm_1", says!("one"));
        let guarded = Guarded::with(events, settings);
        for (id, secret) in [("wh_any", secrets[0]), ("wh_one", secrets[1])] {
            let sent = Sent::signed(secret, NOW, event("evt_1", "row.created", "dm_1"));
            let got = ask(&guarded.app, &sent.with("X-Service-Webhook-Id", id)).await;
            assert_eq!(got.status, 200);
        }
        assert_eq!(guarded.settled().len(), runs, "{scopes:?}");
    }
}

#[rustfmt::skip] // those of rows first
const TYPES: [&str; 6] = ["row.created", "row.updated", "row.deleted", "page.created", "row.archived", "not.invented"];
const MODELS: [&str; 3] = ["dm_1", "dm_2", "dm \\ \"ü\u{1F600}"];

/// An arm as it is asked for: a type, and a model if the type has one.
fn arms() -> impl Strategy<Value = Vec<(&'static str, Option<&'static str>)>> {
    let mut all: Vec<_> = TYPES.iter().map(|name| (*name, None)).collect();
    for name in &TYPES[..3] {
        all.extend(MODELS.iter().map(|model| (*name, Some(*model))));
    }
    let count = all.len();
    proptest::sample::subsequence(all, 1..=count).prop_shuffle()
}

/// A body, in one of the many ways to write it.
#[derive(Clone, Debug)]
struct Written {
    event_type: &'static str,
    /// As JSON; `None` where `data` does not name one.
    model: Option<String>,
    data_first: bool,
    model_first: bool,
}

impl Written {
    fn body(&self, id: &str) -> String {
        let row = r#""rowId":"row_1","properties":{"datamodelId":"dm_1","x":[{"data":{}}]}"#;
        let data = match (&self.model, self.model_first) {
            (None, _) => format!("{{{row}}}"),
            (Some(id), true) => format!(r#"{{"datamodelId":{id},{row}}}"#),
            (Some(id), false) => format!(r#"{{{row},"datamodelId":{id}}}"#),
        };
        let name = self.event_type;
        if self.data_first {
            format!(r#"{{"data":{data},"type":"{name}","datamodelId":"dm_2","id":"{id}"}}"#)
        } else {
            format!(r#"{{"id":"{id}","type":"{name}","datamodelId":"dm_2","data":{data}}}"#)
        }
    }
}

fn written() -> impl Strategy<Value = Written> {
    let escaped = |id: &str| {
        let units = id.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
        format!("\"{}\"", units.collect::<String>())
    };
    let plain = |id: &str| serde_json::to_string(id).unwrap();
    let mut models: Vec<_> = ["7", "null", "{}"].map(|id| Some(id.into())).to_vec();
    models.push(None);
    for id in MODELS.iter().chain(&["dm_3", ""]) {
        models.extend([Some(plain(id)), Some(escaped(id))]);
    }
    let select = proptest::sample::select(&TYPES[..]);
    (
        select,
        proptest::sample::select(models),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(event_type, model, data_first, model_first)| Written {
            event_type,
            model,
            data_first,
            model_first,
        })
}

/// The rules as the documentation has them, slowly: number of the arm, `fallback`, unhandled, or
/// refused.
fn expected(arms: &[(&str, Option<&str>)], fallback: bool, body: &str) -> Option<String> {
    let json: serde_json::Value = serde_json::from_str(body).unwrap();
    let event_type = json["type"].as_str().unwrap();
    let model = json["data"]["datamodelId"].as_str();
    let of_type = arms.iter().filter(|arm| arm.0 == event_type);
    if of_type.clone().any(|arm| arm.1.is_some()) && model.is_none() {
        return Some("422".into());
    }
    let place = |wanted| arms.iter().position(|arm| *arm == wanted);
    place((event_type, model.or(Some("none"))))
        .or(place((event_type, None)))
        .map(|number| number.to_string())
        .or(fallback.then(|| "fallback".into()))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn routing_equals_the_rules_read_slowly(
        arms in arms(),
        fallback in any::<bool>(),
        deliveries in proptest::collection::vec(written(), 1..12),
    ) {
        let mut events = EventRouter::new();
        for (number, (name, model)) in arms.iter().enumerate() {
            events = match model {
                Some(model) => events.on_model(name, model, says!(number.to_string())),
                None => events.on(name, says!(number.to_string())),
            };
        }
        if fallback {
            events = events.fallback(says!("fallback"));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let guarded = Guarded::new(events);
            for (number, written) in deliveries.iter().enumerate() {
                let body = written.body(&format!("evt_{number}"));
                let expected = expected(&arms, fallback, &body);
                prop_assert_eq!(guarded.arm(&*body).await, expected, "{}", body);
            }
            Ok(())
        })?;
    }

    /// Every event that an arm takes comes with one subscription, and no event comes that no arm
    /// takes.
    #[test]
    fn the_listed_subscriptions_are_what_the_arms_take(arms in arms()) {
        let mut events: EventRouter = EventRouter::new();
        for (name, model) in &arms {
            events = match model {
                Some(model) => events.on_model(name, model, || async {}),
                None => events.on(name, || async {}),
            };
        }
        let subscriptions = events.subscriptions();
        for name in TYPES {
            for model in MODELS.iter().chain(&["dm_3"]) {
                let brings = subscriptions.iter().filter(|subscription| {
                    let limit = subscription.model.as_ref().map(|id| id.as_str());
                    let types = &subscription.event_types;
                    limit.is_none_or(|limit| limit == *model) && types.iter().any(|known| *known == name)
                });
                let takes = arms.contains(&(name, None)) || arms.contains(&(name, Some(model)));
                prop_assert_eq!(brings.count(), usize::from(takes), "{} {}", name, model);
                let overlaps = arms.contains(&(name, None)) && arms.contains(&(name, Some(model)));
                let warned = subscriptions.warnings().iter().any(|warning| {
                    let (types, _) = warning.split_once(&format!(" of {}: ", model.escape_debug())).unwrap_or_default();
                    types.trim_start_matches("warning: ").split(", ").any(|known| known == name)
                });
                prop_assert_eq!(warned, overlaps, "{} {}", name, model);
            }
        }
    }
}
