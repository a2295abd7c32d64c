//! The emulator of `crates/emulator` under made-up requests and seeds. The tests of that package
//! call these two functions with a few thousand inputs, libFuzzer with as many as there is time
//! for.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use hookgate::clock::{ManualClock, UnixSeconds};
use hookgate_emulator::{Emulator, Seed, StartError};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::choices::Choices;

const ORDERS: &str = include_str!("../../crates/emulator/src/seed/orders.json");
const START: UnixSeconds = UnixSeconds::new(1_795_253_400);

/// An emulator with a runtime of its own, which the inputs of a thread share: each begins with a
/// reset.
struct Running {
    runtime: Runtime,
    emulator: Emulator,
}

thread_local! {
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

fn running() -> Running {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    // No port of a receiver: each delivery fails at once. The clock moves by requests alone.
    let seed = Seed::orders().subscription("wh_1", "http://127.0.0.1:9/", SECRET);
    let emulator = Emulator::builder(seed.unwrap())
        .clock(ManualClock::at(START))
        .switch("rateLimit", "off");
    let emulator = runtime.block_on(emulator.start()).unwrap();
    Running { runtime, emulator }
}

const SECRET: &str = "whsec_made_up_for_local_tries";

/// Some requests, one after the other: no panic, each is answered in the envelope or its connection
/// is closed, and the state that they leave is one that a snapshot can hold and restore.
pub fn requests(input: &[u8]) {
    RUNNING.with_borrow_mut(|running| {
        let running = running.get_or_insert_with(self::running);
        let emulator = &running.emulator;
        emulator.reset();
        let mut choices = Choices(input);
        let mut sent = Vec::new();
        for _ in 0..4 {
            let (api, request) = request(&mut choices);
            let answer = answered(emulator, &request);
            sent.push(String::from_utf8_lossy(&request).into_owned());
            if let Some((status, body)) = parsed(&answer) {
                check(api, status, &body, &sent);
            }
            if choices.is_empty() {
                break;
            }
        }
        running.runtime.block_on(emulator.settled());
        let before = emulator.snapshot();
        let restored = emulator.restore(&before);
        assert!(restored.is_ok(), "{restored:?} after {sent:#?}");
        assert!(
            emulator.snapshot() == before,
            "another state after {sent:#?}"
        );
    });
}

/// Sends bytes, and reads what comes until the connection is closed.
fn answered(emulator: &Emulator, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(emulator.address()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    // The emulator may have closed the connection already.
    let _ = stream.write_all(request);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            panic!("no answer to {}", String::from_utf8_lossy(request))
        }
        _ => answer,
    }
}

/// The status and the body of the first answer; `None` where there is none.
fn parsed(answer: &[u8]) -> Option<(u16, Vec<u8>)> {
    let answer = answer
        .strip_prefix(b"HTTP/1.1 100 Continue\r\n\r\n")
        .unwrap_or(answer);
    if answer.is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(answer);
    let head = text.split("\r\n\r\n").next().unwrap();
    let status = head.split(' ').nth(1).unwrap_or_default();
    let status = status.parse().unwrap_or_else(|_| panic!("{head}"));
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let length = name.eq_ignore_ascii_case("content-length");
        length.then(|| value.parse::<usize>().unwrap())
    });
    let body = &answer[head.len() + 4..];
    let body = &body[..length.unwrap_or(0).min(body.len())];
    Some((status, body.to_vec()))
}

const ERRORS: [(u16, &str); 7] = [
    (400, "VALIDATION_ERROR"),
    (401, "UNAUTHORIZED"),
    (403, "FORBIDDEN"),
    (404, "NOT_FOUND"),
    (409, "CONFLICT"),
    (429, "RATE_LIMITED"),
    (500, "INTERNAL_ERROR"),
];

/// `api`: whether the request went to the API or to the control API. hyper itself answers what is
/// no HTTP, without a body.
fn check(api: bool, status: u16, body: &[u8], sent: &[String]) {
    if !api || body.is_empty() {
        let is_by_hyper = body.is_empty() && matches!(status, 204 | 400 | 414 | 431);
        assert!(!api || is_by_hyper, "{status} without a body: {sent:#?}");
        return;
    }
    let json: Value = serde_json::from_slice(body).unwrap_or_else(|_| panic!("{sent:#?}"));
    let fields: Vec<_> = json.as_object().unwrap().keys().collect();
    if status >= 300 {
        let code = json["error"]["code"].as_str().unwrap_or_default();
        assert!(
            ERRORS.contains(&(status, code)),
            "{status} {json}: {sent:#?}"
        );
        assert!(
            json["error"]["message"].is_string() && fields == ["error"],
            "{json}"
        );
        // Only a fault is one of the server.
        let asked = sent.iter().any(|request| request.contains("status-500"));
        assert!(status != 500 || asked, "{json}: {sent:#?}");
    } else {
        assert_eq!(status, 200, "{json}: {sent:#?}");
    }
}

/// A sound call of each kind, which is changed in places.
const CALLS: &[(&str, &str, &str)] = &[
    ("GET", "/api/v1/blocks", ""),
    ("POST", "/api/v1/blocks", r#"{"a": 1}"#),
    ("PATCH", "/api/v1/blocks/block_1", r#"{"text": "x"}"#),
    ("DELETE", "/api/v1/blocks/block_1", ""),
    ("GET", "/api/v1/datamodels", ""),
    (
        "POST",
        "/api/v1/datamodels",
        r#"{"title": "X", "icon": {"type": "emoji", "name": "x"}, "properties": [{"name": "N", "type": "NUMBER"}]}"#,
    ),
    (
        "PATCH",
        "/api/v1/datamodels/dm_orders",
        r#"{"title": "X", "description": "y", "extra": [1]}"#,
    ),
    ("DELETE", "/api/v1/datamodels/dm_clients", ""),
    ("DELETE", "/api/v1/datamodels/dm_orders", ""),
    (
        "PATCH",
        "/api/v1/datamodels/dm_orders/properties",
        r#"{"remove": ["prop_tags"], "add": [{"id": "prop_x", "name": "X", "type": "SELECT", "options": [{"value": "a"}]}]}"#,
    ),
    ("GET", "/api/v1/datamodels/dm_orders/rows", ""),
    (
        "POST",
        "/api/v1/datamodels/dm_orders/rows",
        r#"{"values": {"prop_customer": "A", "prop_total": 1.5, "prop_due": "2026-03-04", "prop_status": "open"}}"#,
    ),
    (
        "POST",
        "/api/v1/datamodels/dm_orders/rows",
        r#"{"rows": [{"prop_quantity": 1}, {"prop_tags": ["a"]}, {"prop_gift": true}]}"#,
    ),
    (
        "PATCH",
        "/api/v1/datamodels/dm_orders/rows/row_order_1",
        r#"{"values": {"prop_client": ["row_client_1"], "prop_invoice": [{"url": "u", "name": "n"}]}}"#,
    ),
    (
        "DELETE",
        "/api/v1/datamodels/dm_orders/rows/row_order_1",
        "",
    ),
    ("POST", "/api/v1/workflows", r#"{"title": "W"}"#),
    ("POST", "/api/v1/workflows/wf_1/run", r#"{"input": 1}"#),
    (
        "PATCH",
        "/api/v1/stats/stat_1",
        r#"{"result": {"value": 2}}"#,
    ),
    ("POST", "/api/v1/stats/stat_1/run", ""),
    ("GET", "/api/v1/pages/page_1", ""),
    ("GET", "/api/v1//", ""),
    ("GET", "/api/v1/datamodels/%00/rows", ""),
    ("POST", "/webhooks/wf_1", r#"{"a": {"b": [1]}}"#),
    ("GET", "/", ""),
    ("POST", "/_emulator/reset", ""),
    ("POST", "/_emulator/clock/advance", r#"{"by": "26h36m"}"#),
    ("GET", "/_emulator/deliveries", ""),
    ("GET", "/_emulator/requests", ""),
    ("POST", "/_emulator/deliveries/dlv_1/redeliver", ""),
    (
        "POST",
        "/_emulator/faults",
        r#"{"fault": "gzip", "first": 2}"#,
    ),
    (
        "POST",
        "/_emulator/faults",
        r#"{"fault": "closed-after-write", "seed": 3}"#,
    ),
    ("DELETE", "/_emulator/faults", ""),
    (
        "POST",
        "/_emulator/events",
        r#"{"type": "page.updated", "data": {"a": 1}}"#,
    ),
    (
        "POST",
        "/_emulator/events/test",
        r#"{"subscriptionId": "wh_1"}"#,
    ),
    (
        "POST",
        "/_emulator/subscriptions",
        r#"{"name": "n", "url": "http://127.0.0.1:9/x", "events": ["row.created"], "dataModelId": "dm_orders"}"#,
    ),
    (
        "PATCH",
        "/_emulator/subscriptions/wh_1",
        r#"{"name": "n", "disabled": true}"#,
    ),
    ("DELETE", "/_emulator/subscriptions/wh_1", ""),
    (
        "POST",
        "/_emulator/keys",
        r#"{"name": "k", "scope": "write", "form": "mcp_", "expiresAt": "2027-01-01T00:00:00Z"}"#,
    ),
    ("PATCH", "/_emulator/keys/read", r#"{"disabled": true}"#),
    ("GET", "/_emulator/keys", ""),
    (
        "PATCH",
        "/_emulator/switches",
        r#"{"attempts": 6, "listOrder": "newest"}"#,
    ),
    ("GET", "/_emulator/snapshot", ""),
    (
        "PUT",
        "/_emulator/snapshot",
        r#"{"hookgateEmulator": 2, "seed": {}, "clockOffsetMs": 5, "ids": 1, "faults": {"entries": [], "calls": 0}, "deliveries": {"subscriptions": [], "deliveries": []}, "rates": {}, "requests": [], "triggerCalls": []}"#,
    ),
    ("PATCH", "/_emulator/workspace", r#"{"tier": "premium"}"#),
    (
        "POST",
        "/_emulator/members",
        r#"{"name": "n", "email": "e"}"#,
    ),
    ("DELETE", "/_emulator/members/usr_1", ""),
    ("POST", "/_emulator/pages", r#"{"title": "P"}"#),
    ("PATCH", "/_emulator/pages/page_1", r#"{"title": "Q"}"#),
    ("GET", "/_emulator/models/dm_orders/rows", ""),
    (
        "POST",
        "/_emulator/models/dm_orders/rows",
        r#"{"values": {"prop_customer": "B"}}"#,
    ),
    (
        "POST",
        "/_emulator/triggers",
        r#"{"workflowId": "wf_2", "method": "GET", "auth": {"mode": "basic", "username": "u", "password": "p"}}"#,
    ),
    (
        "PATCH",
        "/_emulator/triggers/wf_1",
        r#"{"response": {"mode": "immediate", "status": 202}}"#,
    ),
];
const METHODS: [&str; 8] = [
    "GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS", "x",
];
const QUERY: [&str; 12] = [
    "limit=3",
    "limit=0",
    "limit=99999999999999999999",
    "offset=1",
    "offset=18446744073709551615",
    "orderBy=prop_total:desc,prop_due:asc",
    "orderBy=:",
    "search=%C3%28",
    "includeDetails=true",
    "includeRowCounts=true",
    "eventId=evt_1",
    "method=GET",
];
const KEYS: [&str; 5] = [
    "Bearer tk_test_admin",
    "Bearer tk_test_write",
    "Bearer tk_test_read",
    "Bearer mcp_none",
    "Basic x",
];
const HEADERS: [&str; 8] = [
    "origin: http://example.com",
    "host: example.com",
    "content-length: 5",
    "transfer-encoding: chunked",
    "expect: 100-continue",
    "x-api-key: made_up_for_local_tries",
    "x-odd: \u{e9}",
    "upgrade: h2c",
];

/// Makes a request, and says whether it goes to the API or the control API.
fn request(choices: &mut Choices<'_>) -> (bool, Vec<u8>) {
    if choices.once_in(32) {
        return (false, choices.bytes().to_vec());
    }
    let (mut method, path, body) = choices.one_of(CALLS);
    let mut path = path.to_owned();
    if choices.once_in(8) {
        method = choices.one_of(&METHODS);
    }
    if choices.once_in(16) {
        let odd = String::from_utf8_lossy(choices.bytes()).into_owned();
        path.push_str(&odd.replace(char::is_whitespace, "+"));
    }
    for mark in ["?", "&"] {
        if choices.once_in(4) {
            path.push_str(mark);
            path.push_str(choices.one_of(&QUERY));
        }
    }
    // A stream has no end.
    let api = (path.starts_with("/api/v1") || path.starts_with("/_emulator"))
        && method != "HEAD"
        && !path.contains("stream");
    let key = KEYS[choices.below(20).saturating_sub(15)];
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {key}\r\n");
    if choices.once_in(8) {
        head.push_str(choices.one_of(&HEADERS));
        head.push_str("\r\n");
    }
    let body = match choices.below(8) {
        0 => choices.bytes().to_vec(),
        1 => object(choices, 3).to_string().into_bytes(),
        2..=4 if !body.is_empty() => {
            let mut body = serde_json::from_str(body).unwrap();
            let new = value(choices, 2);
            put(&mut body, choices, new);
            body.to_string().into_bytes()
        }
        _ => body.as_bytes().to_vec(),
    };
    // That fault takes ten seconds of real time.
    let body = if body.windows(4).any(|part| part == b"slow") {
        Vec::new()
    } else {
        body
    };
    head.push_str(&format!(
        "content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    ));
    (api, [head.into_bytes(), body].concat())
}

const NAMES: [&str; 40] = [
    "values",
    "rows",
    "title",
    "description",
    "icon",
    "properties",
    "add",
    "remove",
    "id",
    "name",
    "type",
    "options",
    "value",
    "order",
    "visible",
    "relationConfig",
    "targetDataModelId",
    "prop_customer",
    "prop_quantity",
    "prop_due",
    "prop_status",
    "prop_tags",
    "prop_client",
    "prop_invoice",
    "fault",
    "first",
    "seed",
    "by",
    "subscriptionId",
    "url",
    "events",
    "secret",
    "dataModelId",
    "scope",
    "expiresAt",
    "disabled",
    "tier",
    "email",
    "workflowId",
    "response",
];
const TEXTS: [&str; 24] = [
    "",
    "x",
    "dm_orders",
    "prop_customer",
    "row_order_1",
    "2026-03-04",
    "open",
    "TEXT",
    "RELATION",
    "stale",
    "status-500",
    "gzip",
    "26h36m",
    "3650d",
    "wh_1",
    "http://127.0.0.1:9/",
    "http://example.com/",
    "row.created",
    "page.updated",
    "write",
    "enterprise",
    "GET",
    "\u{0}\u{7f}é",
    "{{trigger.body.x}}",
];

fn object(choices: &mut Choices<'_>, depth: usize) -> Value {
    let count = choices.below(4);
    let fields = (0..count).map(|_| (choices.one_of(&NAMES).to_owned(), value(choices, depth)));
    Value::Object(fields.collect())
}

fn value(choices: &mut Choices<'_>, depth: usize) -> Value {
    match choices.below(if depth == 0 { 7 } else { 11 }) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(choices.byte()),
        3 => json!(-1.5e300),
        4 => json!(u64::MAX),
        5 => String::from_utf8_lossy(choices.bytes()).into(),
        6..=8 => choices.one_of(&TEXTS).into(),
        9 => (0..choices.below(4))
            .map(|_| value(choices, depth - 1))
            .collect(),
        _ => object(choices, depth - 1),
    }
}

/// A seed that was changed in some places: it is refused with a place and what was expected, or an
/// emulator starts with it, and a snapshot of that is restored.
pub fn seeds(input: &[u8]) {
    let mut choices = Choices(input);
    let text = if choices.once_in(8) {
        String::from_utf8_lossy(choices.0).into_owned()
    } else {
        changed(&mut choices)
    };
    let seed = match Seed::parse(&text) {
        Ok(seed) => seed,
        Err(error) => {
            let lines = text.lines().count().max(1) + 1;
            assert!(
                (1..=lines).contains(&error.line()) && error.column() > 0,
                "{error}: {text}"
            );
            assert!(error.to_string().contains("expect"), "{error}: {text}");
            return;
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let builder = Emulator::builder(seed).clock(ManualClock::at(START));
    match runtime.block_on(builder.start()) {
        Ok(emulator) => {
            let before = emulator.snapshot();
            let restored = emulator.restore(&before);
            assert!(restored.is_ok(), "{restored:?}: {text}");
            assert!(emulator.snapshot() == before, "another state: {text}");
        }
        Err(StartError::Seed(_)) => {}
        Err(other) => panic!("{other}: {text}"),
    }
}

/// The sample with a few values in other places, and a byte or two.
fn changed(choices: &mut Choices<'_>) -> String {
    let mut seed: Value = serde_json::from_str(ORDERS).unwrap();
    for _ in 0..=choices.below(3) {
        let new = value(choices, 2);
        put(&mut seed, choices, new);
    }
    let mut text = seed.to_string();
    if choices.once_in(3) {
        let at = choices.below(256) * 256 + choices.below(256);
        let at = (0..=at % (text.len() + 1))
            .rev()
            .find(|at| text.is_char_boundary(*at));
        let new = String::from_utf8_lossy(choices.bytes()).into_owned();
        text.insert_str(at.unwrap_or_default(), &new);
    }
    text
}

/// Goes down to some part and puts the value there, or takes the part away.
fn put(part: &mut Value, choices: &mut Choices<'_>, new: Value) {
    let stop = choices.once_in(6);
    match part {
        Value::Object(fields) if !stop && !fields.is_empty() => {
            let at = choices.below(fields.len());
            if let Some((_, below)) = fields.iter_mut().nth(at) {
                put(below, choices, new);
            }
        }
        Value::Array(items) if !stop && !items.is_empty() => {
            let at = choices.below(items.len().min(256));
            if choices.once_in(8) {
                let item = items[at].clone();
                items.push(item);
            } else {
                put(&mut items[at], choices, new);
            }
        }
        Value::Object(fields) if choices.once_in(2) => {
            fields.insert(choices.one_of(&NAMES).to_owned(), new);
        }
        other => *other = new,
    }
}
