//! `hookgate listen --page`: real deliveries in the same list and detail.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::SystemTime;

use hookgate::{
    Secret,
    clock::{Clock as _, SystemClock, UnixSeconds},
    verify::{Signature, Timestamp},
};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::screen::first_line;

const SECRET: &str = "whsec_made_up_for_the_listener";

/// The command, ended by its process id.
pub(crate) struct Listening {
    child: Child,
    /// Host and port that take deliveries.
    pub(crate) address: String,
    /// With the token that lets it sign.
    pub(crate) page: String,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command, which is built here where it is missing or older than its sources.
fn command() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let tests = std::env::current_exe().unwrap();
        let folder = tests.ancestors().nth(2).unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let command = folder.join("hookgate");
        let built = modified(&command);
        if built.is_none() || built < newest(&root.join("src")).max(newest(&root.join("crates"))) {
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--locked", "-p", "hookgate-cli", "--target-dir"]);
            build.arg(folder.parent().unwrap()).current_dir(root);
            if folder.ends_with("release") {
                build.arg("--release");
            }
            assert!(
                build.status().unwrap().success(),
                "the command was not built"
            );
        }
        command
    })
}

fn modified(file: &Path) -> Option<SystemTime> {
    file.metadata().and_then(|file| file.modified()).ok()
}

/// When a file of these sources was changed last. Tests are no part of the command.
fn newest(folder: &Path) -> Option<SystemTime> {
    let entries = std::fs::read_dir(folder).unwrap();
    let times = entries.map(|entry| entry.unwrap().path()).map(|path| {
        if !path.is_dir() {
            return modified(&path);
        }
        if path.ends_with("tests") {
            return None;
        }
        newest(&path)
    });
    times.max().flatten()
}

impl Listening {
    /// With these options. The page keeps enough for each test.
    pub(crate) fn with(options: &[&str]) -> Self {
        let keep: &[&str] = match options {
            ["--keep", ..] => &[],
            _ => &["--keep", "2000"],
        };
        let mut child = Command::new(command())
            .args(["listen", "--addr", "127.0.0.1:0", "--page"])
            .args(keep)
            .args(options)
            .env("WEBHOOK_SECRET", SECRET)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let first = first_line(child.stdout.take().unwrap());
        // listening on http://127.0.0.1:1/webhooks, page at http://127.0.0.1:2/?token=1f
        let rest = first.strip_prefix("listening on http://").expect(&first);
        let (url, page) = rest.split_once(", page at ").expect(&first);
        let address = url.split('/').next().unwrap().to_owned();
        Self {
            child,
            address,
            page: page.to_owned(),
        }
    }

    /// The page for who was not given the token.
    pub(crate) fn page_without_token(&self) -> &str {
        self.page.split('?').next().unwrap()
    }

    /// Delivers a body with the signature of another one, or of itself.
    pub(crate) async fn deliver(&self, id: &str, body: &str, signed: &str) -> String {
        self.deliver_at(SystemClock.now(), id, body, signed).await
    }

    /// The same with a wrong signature.
    pub(crate) async fn forged(&self, id: &str, body: &str) -> String {
        self.deliver(id, body, "other").await
    }

    /// Delivers a row of `Orders`. Returns the body.
    pub(crate) async fn row(&self, id: &str, row_id: &str, customer: &str) -> String {
        let body = row(id, "Orders", row_id, customer);
        self.deliver(id, &body, &body).await;
        body
    }

    /// Delivers an event of this type. Returns the body.
    pub(crate) async fn event(&self, id: &str, event_type: &str, row_id: &str) -> String {
        let body = event(id, event_type, row_id);
        self.deliver(id, &body, &body).await;
        body
    }

    /// The same as `deliver`, signed at this time.
    pub(crate) async fn deliver_at(
        &self,
        at: UnixSeconds,
        id: &str,
        body: &str,
        signed: &str,
    ) -> String {
        let now = Timestamp::at(at).unwrap();
        let signature = Signature::sign(&Secret::new(SECRET).unwrap(), &now, signed.as_bytes());
        let signature = signature.to_header_value();
        let headers = format!(
            "content-type: application/json\r\nx-service-event-id: {id}\r\nauthorization: Bearer made_up_of_a_proxy\r\n\
             x-service-timestamp: {now}\r\nx-service-signature: {signature}\r\n"
        );
        ask(
            &self.address,
            "POST /webhooks",
            &self.address,
            &headers,
            body,
        )
        .await
    }
}

/// The answer of this address to a request by this name of a host.
async fn ask(address: &str, line: &str, host: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let head = format!("{line} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}");
    let request = format!("{head}content-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn of(id: &str, event_type: &str, data: &serde_json::Value) -> String {
    let created_at = "2026-11-01T00:00:00Z";
    json!({ "id": id, "type": event_type, "createdAt": created_at, "workspaceId": "ws_1", "data": data })
        .to_string()
}

pub(crate) fn event(id: &str, event_type: &str, row_id: &str) -> String {
    let data = json!({ "datamodelId": "dm_1", "rowId": row_id });
    of(id, event_type, &data)
}

/// A row that was created.
pub(crate) fn row(id: &str, model: &str, row_id: &str, customer: &str) -> String {
    let data = json!({ "datamodelId": "dm_1", "datamodelName": model, "rowId": row_id,
        "properties": { "Customer": customer } });
    of(id, "row.created", &data)
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_shown_with_verdict_and_explanation_and_without_secrets() {
    let listening = listening!();
    let screen = open!(&listening.page);
    steps! { screen; until_text("#connection", "live"); until_text("main", "Nothing has arrived yet"); }
    let hostile = "<img src=x onerror=\"document.title = 'taken'\">";
    let data = json!({ "datamodelId": "dm_1", "datamodelName": hostile, "rowId": "row_1",
        "deletedBy": { "id": "usr_1", "name": "Bo" } });
    let body = of("evt_1", "row.deleted", &data);
    let changed = format!("{body}\n");
    for (id, body, signed, answered, seen) in [
        (
            "evt_1",
            &body,
            &body,
            "204",
            ("tr[data-state=done]", "row.deleted"),
        ),
        (
            "evt_1",
            &body,
            &body,
            "20",
            ("tr[data-state=again]", "row.deleted"),
        ),
        (
            "evt_2",
            &changed,
            &body,
            "401",
            ("tr[data-state=refused]", "401"),
        ),
    ] {
        let answer = listening.deliver(id, body, signed).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {answered}")),
            "{seen:?}: {answer}"
        );
        screen.until_text(seen.0, seen.1).await;
    }

    steps! { screen; click("tr[data-state=refused]"); until_text(".detail", "x-service-signature"); }
    let shown = screen.texts(".detail").await.concat();
    assert!(shown.contains("[redacted]"), "{shown}");
    assert!(!shown.contains("made_up_of_a_proxy"), "{shown}");
    let signature = screen.eval("[...document.querySelectorAll('.headers tr')].find((row) => row.cells[0].textContent === 'x-service-signature').cells[1].textContent").await;
    let signature = signature.as_str().unwrap();
    assert!(
        signature.ends_with('…') && signature.len() < 20,
        "{signature}"
    );
    steps! { screen; press(".detail", "Why was it refused?"); until_text(".explained", "line break"); }
    assert!(!screen.texts("html").await.concat().contains(SECRET));
    let [again, edit, curl] = [
        "Deliver again",
        "Edit and send again",
        "Copy as curl without signature",
    ];
    steps! { screen;
        are(".detail > .actions button", &[edit, curl, "Why was it refused?"]);
        click("tr[data-state=done]"); until_there(".detail[data-state=done]"); until_text(".detail .json", "onerror=");
        are(".detail > .actions button", &[again, edit, curl]);
        is("document.querySelectorAll('main img').length", 0);
        is("document.title !== 'taken'", true);
        size(400, 800); is("document.documentElement.scrollWidth <= 400", true);
        // Here the open delivery stands in the place of the list.
        key("Escape"); fill("Verdict", "again"); until_count("tr[data-delivery]", 1);
        fill("Verdict", "failed"); until_text("main", "No delivery fits the filter (3 searched).");
        is("document.body.innerText.includes('Nothing has arrived')", false);
        end();
    }
}

/// What is asked of the page with which name of a host and which header, and how it answers. The
/// page's own name is `-`.
const REQUESTS: &str = "
GET /                                 | example.com |                            | 403
GET /_listen/deliveries               | example.com |                            | 403
GET /_listen/stream                   | example.com |                            | 403
GET /_page/page.css                   | example.com |                            | 403
POST /_listen/deliveries              | -           |                            | 404
DELETE /_listen/deliveries/1          | -           |                            | 404
POST /_listen/receiver                | -           |                            | 404
POST /_listen/deliveries/1/redeliver  | -           |                            | 404
GET /_listen/deliveries/1/replay      | -           |                            | 404
POST /_emulator/reset                 | -           |                            | 404
POST /_listen/deliveries/1/explain    | -           | origin: http://example.com | 403
POST /_listen/deliveries/1/replay     | -           | origin: http://example.com | 403
POST /_listen/deliveries/1/send       | -           | origin: http://example.com | 403
";

#[tokio::test(flavor = "multi_thread")]
async fn the_page_answers_no_foreign_name_has_the_policy_and_changes_nothing() {
    let listening = listening!();
    let page = listening.page_without_token().trim_start_matches("http://");
    let page = page.trim_end_matches('/');
    for request in REQUESTS.trim().lines() {
        let cells: Vec<_> = request.split('|').map(str::trim).collect();
        let host = if cells[1] == "-" { page } else { cells[1] };
        let header = match cells[2] {
            "" => String::new(),
            header => format!("{header}\r\n"),
        };
        let answer = ask(page, cells[0], host, &header, "").await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {}", cells[3])),
            "{request}: {answer}"
        );
    }
    let own = ask(page, "GET /", page, "", "").await;
    let mut lines = own.lines();
    let policy = lines.find_map(|line| line.strip_prefix("content-security-policy: "));
    let policy = policy.expect(&own);
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    // A changed body is signed for the token alone.
    let without = ask(page, "POST /_listen/deliveries/1/send", page, "", "{}").await;
    assert!(without.starts_with("HTTP/1.1 403"), "{without}");
    // The listener itself serves no page.
    let listener = ask(&listening.address, "GET /", &listening.address, "", "").await;
    assert!(listener.starts_with("HTTP/1.1 404"), "{listener}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_deliveries_are_searched_and_opened_by_keys_and_by_their_address() {
    let mut listening = listening!();
    let long = listening
        .event("evt_long", "row.updated", &"x".repeat(100_000))
        .await;
    listening
        .forged("evt_refused", &event("evt_refused", "row.deleted", "row_1"))
        .await;
    for number in 0..998 {
        listening
            .event(&format!("evt_{number}"), "page.created", "row_2")
            .await;
    }
    let screen = open!(&listening.page);
    // None is empty from top to bottom: there are no subscriptions and no next attempts; and no
    // reason among the newest.
    let columns = "[...document.querySelectorAll('thead th:not([hidden])')].map((one) => one.textContent).join()";
    let row = "tr[data-delivery]";
    let focused =
        "(document.activeElement.id || document.activeElement.closest('tr')?.dataset.delivery)";
    let on = |id: &str| format!("{focused}?.startsWith('{id}')");
    let all = format!(
        "document.querySelector('.detail .json').textContent.length === {}",
        long.len()
    );
    steps! { screen;
        allow_clipboard(); until_count(row, 100);
        is(columns, "Verdict,Time,Event,Type,Took,Answer");
        until_text("tr[data-state=done]", "✓ done");
        // The oldest ones are found, and the number that was searched is said.
        fill("Search", "EVT_LONG"); until_count(row, 1);
        fill("Search", ""); fill("Event type", "row."); until_count(row, 2);
        fill("Verdict", "refused"); until_count(row, 1); until_there("tr[data-state=refused] .failed");
        fill("Search", "<img src=x onerror=alert(1)>"); until_text("main", "No delivery fits the filter (1,000 searched).");
        fill("Search", ""); fill("Verdict", ""); until_count(row, 2);
        // By keys alone: the search, the list, the delivery, back.
        eval("document.activeElement.blur()"); key("/"); until(&on("search"));
        key("ArrowDown"); until(&on("evt_refused@"));
        key("ArrowDown"); until(&on("evt_long@"));
        key("Enter"); until_text(".detail", "xxxxx"); until("/^#evt_long@\\d{4}-.*Z\\?type=row\\.$/.test(location.hash)");
        press(".detail", "Copy body"); until_text("#told", "Body copied"); is("navigator.clipboard.readText()", &*long);
        press(".detail", "Show raw"); until(&all);
        press(".detail", "Deliver again"); until_text("#told .good", "evt_long delivered again: 20");
        key("Escape"); until("location.hash === '#?type=row.'"); until(&on("evt_long@"));
        // What is not authentic is not signed as it is; its curl command has no signature.
        click("tr[data-state=refused]"); until_there(".detail .refusal");
        press(".detail", "Copy as curl without signature"); until_text("#told", "Command without the signature");
    }
    let buttons = screen.texts(".detail button").await;
    assert!(
        !buttons.contains(&"Deliver again".to_owned()),
        "{buttons:?}"
    );
    let command = screen.copied().await;
    let url = format!("'http://{}/webhooks'", listening.address);
    assert!(command.contains(&url), "{command}");
    assert!(!command.contains("x-service-signature"), "{command}");

    // The address survives a reload, and names what is not there without harm.
    steps! { screen;
        reload(); until_text(".detail", "evt_refused");
        eval("location.hash = '#%3Cimg src=x onerror=alert(1)%3E'"); until_text(".detail", "is not kept"); was_refused(404);
        eval("location.hash = '#%'"); is("document.images.length", 0);
    }
    listening.child.kill().unwrap();
    steps! { screen;
        until_text("#connection", "connection lost");
        click("tr[data-delivery]"); until_text("#told .bad", "The server does not answer.");
    }
    screen.forget_lost();
    screen.end().await;
}
