//! The Lambda function as a process, with a small runtime API on this machine: the function gets
//! the next event from it, and sends its answer to it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

use crate::LedgerFile;
use crate::process::{Example, own_secret, row_created, signed};

const PATIENCE: Duration = Duration::from_secs(60);

/// The server side of Lambda's runtime API.
struct Lambda {
    events: mpsc::UnboundedSender<Value>,
    answers: mpsc::UnboundedReceiver<(String, Value)>,
    function: Example,
    _ledger: LedgerFile,
    sent: usize,
}

#[derive(Clone)]
struct Api {
    events: Arc<Mutex<mpsc::UnboundedReceiver<Value>>>,
    answers: mpsc::UnboundedSender<(String, Value)>,
}

async fn next(State(api): State<Api>) -> Response {
    let Some(event) = api.events.lock().await.recv().await else {
        return StatusCode::GONE.into_response();
    };
    let id = event["requestContext"]["requestId"].as_str().unwrap();
    let headers = [
        ("lambda-runtime-aws-request-id", id.to_owned()),
        ("lambda-runtime-deadline-ms", "4102444800000".to_owned()),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:made-up".to_owned(),
        ),
    ];
    (headers, event.to_string()).into_response()
}

async fn answered(
    State(api): State<Api>,
    Path((id, what)): Path<(String, String)>,
    body: String,
) -> StatusCode {
    assert_eq!(what, "response", "{body}");
    let _ = api.answers.send((id, serde_json::from_str(&body).unwrap()));
    StatusCode::ACCEPTED
}

impl Lambda {
    async fn start(ledger: LedgerFile, takes: &str) -> Self {
        let (events, received) = mpsc::unbounded_channel();
        let (answers, told) = mpsc::unbounded_channel();
        let api = Api {
            events: Arc::new(Mutex::new(received)),
            answers,
        };
        let app = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/{what}", post(answered))
            .with_state(api);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { axum::serve(listener, app).await });
        let path = ledger.path();
        let variables = [
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"),
            ("AWS_LAMBDA_FUNCTION_NAME", "webhooks"),
            ("AWS_LAMBDA_FUNCTION_VERSION", "1"),
            ("AWS_LAMBDA_RUNTIME_API", &address),
            ("LEDGER", &path),
            ("LEDGER_MILLIS", takes),
            ("WEBHOOK_SECRET", own_secret()),
        ];
        Self {
            events,
            answers: told,
            function: Example::spawn("lambda_http", &[], &variables),
            _ledger: ledger,
            sent: 0,
        }
    }

    /// Passes the function an HTTP API event (version 2.0), and waits for its answer.
    async fn invoke(&mut self, headers: &[(&str, String)], body: &str, base64: bool) -> Value {
        self.sent += 1;
        let id = format!("request-{}", self.sent);
        let lower = |(name, value): &(&str, String)| (name.to_lowercase(), json!(value));
        let sent = if base64 {
            STANDARD.encode(body)
        } else {
            body.to_owned()
        };
        let http = json!({
            "method": "POST", "path": "/webhooks", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "service"
        });
        let event = json!({
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": "/webhooks",
            "rawQueryString": "",
            "headers": headers.iter().map(lower).collect::<serde_json::Map<_, _>>(),
            "requestContext": {
                "accountId": "123456789012",
                "apiId": "api-id",
                "domainName": "id.execute-api.example",
                "domainPrefix": "id",
                "http": http,
                "requestId": id,
                "routeKey": "$default",
                "stage": "$default",
                "time": "21/Nov/2026:09:30:00 +0000",
                "timeEpoch": 1_795_253_400_000_i64
            },
            "body": sent,
            "isBase64Encoded": base64
        });
        self.events.send(event).unwrap();
        let answer = timeout(PATIENCE, self.answers.recv()).await;
        let (to, answer) = answer.expect("an answer in time").unwrap();
        assert_eq!(to, id);
        answer
    }

    async fn deliver(&mut self, body: &str) -> Value {
        self.invoke(&signed(own_secret(), body, 0), body, true)
            .await
    }
}

fn is_replay(answer: &Value) -> bool {
    answer["statusCode"] == 200 && answer["headers"]["idempotent-replayed"] == "true"
}

/// Valid JSON whose bytes differ from the output of every serialiser: white space, an escape, a
/// letter of two bytes, one of three.
fn order(id: &str) -> String {
    row_created(id, "{ \"Customer\" :\r\n\t\"\\u0041da é ✓\" }")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_exact_bytes_behind_the_base64_are_verified() {
    let ledger = LedgerFile::missing("lambda");
    let shown = LedgerFile {
        folder: ledger.folder.clone(),
    };
    let mut lambda = Lambda::start(ledger, "0").await;

    let failed = lambda.deliver(&order("evt_1")).await;
    assert_eq!(failed["statusCode"], 500, "{failed}");
    lambda.function.line_with("No such file");
    shown.make();
    assert_eq!(lambda.deliver(&order("evt_1")).await["statusCode"], 204);
    let again = lambda.deliver(&order("evt_1")).await;
    assert!(is_replay(&again), "{again}");
    assert_eq!(shown.lines(), ["evt_1 Ada é ✓"]);

    let body = order("evt_2");
    let headers = signed(own_secret(), &body, 0);
    let changed = body.replace("\r\n", "\n");
    let changed = lambda.invoke(&headers, &changed, true).await;
    assert_eq!(changed["statusCode"], 401);
    assert_eq!(changed["headers"]["content-type"], "application/json");
    let stale = lambda
        .invoke(&signed(own_secret(), &body, 301), &body, true)
        .await;
    assert_eq!(
        (&stale["statusCode"], &stale["body"]),
        (&json!(401), &changed["body"])
    );
    let told: Value = serde_json::from_str(changed["body"].as_str().unwrap()).unwrap();
    assert_eq!(told["error"]["code"], "UNAUTHORIZED");
    // A duplicate header, as joined by API Gateway.
    let mut doubled = headers.clone();
    doubled[2].1 = format!("{0},{0}", doubled[2].1);
    assert_eq!(
        lambda.invoke(&doubled, &body, true).await["statusCode"],
        401
    );
    // The base64 text is not the text that was signed.
    let encoded = STANDARD.encode(&body);
    assert_eq!(
        lambda.invoke(&headers, &encoded, true).await["statusCode"],
        401
    );
    // A gateway that sends the body as plain text.
    assert_eq!(
        lambda.invoke(&headers, &body, false).await["statusCode"],
        204
    );
    assert!(is_replay(&lambda.deliver(&body).await));
    let misfit = row_created("evt_3", r#"{"Customer":7}"#);
    assert_eq!(lambda.deliver(&misfit).await["statusCode"], 422);
    assert_eq!(shown.lines().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_run_has_ended_before_lambda_can_freeze_it() {
    let ledger = LedgerFile::made("lambda-late");
    let shown = LedgerFile {
        folder: ledger.folder.clone(),
    };
    let mut lambda = Lambda::start(ledger, "5500").await;
    let began = Instant::now();
    let late = lambda.deliver(&order("evt_1")).await;
    assert!(began.elapsed() >= Duration::from_millis(5_500));
    assert_eq!(late["statusCode"], 503, "{late}");
    assert_eq!(shown.lines(), ["evt_1 Ada é ✓"], "frozen half-way");
    assert!(is_replay(&lambda.deliver(&order("evt_1")).await));
}
