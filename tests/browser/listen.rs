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
    pub(crate) fn start() -> Self {
        Self::with(&["--keep", "2000"])
    }

    pub(crate) fn with(options: &[&str]) -> Self {
        let mut child = Command::new(command())
            .args(["listen", "--addr", "127.0.0.1:0", "--page"])
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

    /// The same, signed at this time.
    pub(crate) async fn deliver_at(
        &self,
        at: UnixSeconds,
        id: &str,
        body: &str,
        signed: &str,
    ) -> String {
        let now = Timestamp::at(at).unwrap();
        let signature = Signature::sign(&Secret::new(SECRET).unwrap(), &now, signed.as_bytes());
        let request = format!(
            "POST /webhooks HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\nx-service-event-id: {id}\r\n\
             authorization: Bearer made_up_of_a_proxy\r\nx-service-timestamp: {now}\r\nx-service-signature: {}\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            signature.to_header_value(),
            body.len(),
        );
        answer(&self.address, &request).await
    }
}

async fn answer(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_shown_with_verdict_and_explanation_and_without_secrets() {
    if crate::screen::chromium().is_none() {
        return;
    }
    let listening = Listening::start();
    let screen = open!(&listening.page);
    screen.until_text("#connection", "live").await;
    screen.until_text("main", "Nothing has arrived yet").await;
    let hostile = "<img src=x onerror=\"document.title = 'taken'\">";
    let body = json!({ "id": "evt_1", "type": "row.deleted", "createdAt": "2026-11-01T00:00:00Z", "workspaceId": "ws_1",
        "data": { "datamodelId": "dm_1", "datamodelName": hostile, "rowId": "row_1", "deletedBy": { "id": "usr_1", "name": "Bo" } } })
    .to_string();
    let handled = listening.deliver("evt_1", &body, &body).await;
    assert!(handled.starts_with("HTTP/1.1 204"), "{handled}");
    screen
        .until_text("tr[data-state=done]", "row.deleted")
        .await;
    let again = listening.deliver("evt_1", &body, &body).await;
    assert!(again.starts_with("HTTP/1.1 20"), "{again}");
    screen.until_there("tr[data-state=again]").await;
    let refused = listening
        .deliver("evt_2", &format!("{body}\n"), &body)
        .await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    screen.until_text("tr[data-state=refused]", "401").await;

    screen.click("tr[data-state=refused]").await;
    screen.until_text(".detail", "x-service-signature").await;
    let shown = screen.texts(".detail").await.concat();
    assert!(
        shown.contains("[redacted]") && !shown.contains("made_up_of_a_proxy"),
        "{shown}"
    );
    let signature = screen.eval("[...document.querySelectorAll('.headers tr')].find((row) => row.cells[0].textContent === 'x-service-signature').cells[1].textContent").await;
    assert!(
        signature.as_str().unwrap().ends_with('…') && signature.as_str().unwrap().len() < 20,
        "{signature}"
    );
    screen.press(".detail", "Why was it refused?").await;
    screen.until_text(".explained", "line break").await;
    assert!(!screen.texts("html").await.concat().contains(SECRET));
    assert_eq!(
        screen.texts(".detail > .actions button").await,
        [
            "Edit and send again",
            "Copy as curl without signature",
            "Why was it refused?"
        ]
    );

    screen.click("tr[data-state=done]").await;
    screen.until_there(".detail[data-state=done]").await;
    screen.until_text(".detail .json", "onerror=").await;
    assert_eq!(
        screen.texts(".detail > .actions button").await,
        [
            "Deliver again",
            "Edit and send again",
            "Copy as curl without signature"
        ]
    );
    assert_eq!(
        screen
            .eval("document.querySelectorAll('main img').length")
            .await,
        0
    );
    assert_ne!(screen.eval("document.title").await, "taken");
    screen.size(400, 800).await;
    assert_eq!(
        screen
            .eval("document.documentElement.scrollWidth <= 400")
            .await,
        true
    );
    // Here the open delivery stands in the place of the list.
    screen.key("Escape").await;
    screen.fill("Verdict", "again").await;
    screen
        .until("document.querySelectorAll('tr[data-delivery]').length === 1")
        .await;
    screen.fill("Verdict", "failed").await;
    screen
        .until_text("main", "No delivery fits the filter (3 searched).")
        .await;
    assert!(
        !screen
            .eval("document.body.innerText")
            .await
            .to_string()
            .contains("Nothing has arrived")
    );
    screen.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_answers_no_foreign_name_has_the_policy_and_changes_nothing() {
    if crate::screen::chromium().is_none() {
        return;
    }
    let listening = Listening::start();
    let page = listening
        .page_without_token()
        .trim_start_matches("http://")
        .trim_end_matches('/')
        .to_owned();
    for path in [
        "/",
        "/_listen/deliveries",
        "/_listen/stream",
        "/_page/page.css",
    ] {
        let foreign =
            format!("GET {path} HTTP/1.1\r\nhost: example.com\r\nconnection: close\r\n\r\n");
        let foreign = answer(&page, &foreign).await;
        assert!(foreign.starts_with("HTTP/1.1 403"), "{path}: {foreign}");
    }
    let own = answer(
        &page,
        &format!("GET / HTTP/1.1\r\nhost: {page}\r\nconnection: close\r\n\r\n"),
    )
    .await;
    let policy = own
        .lines()
        .find_map(|line| line.strip_prefix("content-security-policy: "))
        .expect(&own);
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'") && !policy.contains("unsafe"),
        "{policy}"
    );
    for (method, path) in [
        ("POST", "/_listen/deliveries"),
        ("DELETE", "/_listen/deliveries/1"),
        ("POST", "/_listen/receiver"),
        ("POST", "/_listen/deliveries/1/redeliver"),
        ("GET", "/_listen/deliveries/1/replay"),
        ("POST", "/_emulator/reset"),
    ] {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {page}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        );
        let none = answer(&page, &request).await;
        assert!(none.starts_with("HTTP/1.1 404"), "{method} {path}: {none}");
    }
    for what in ["explain", "replay", "send"] {
        let foreign = format!(
            "POST /_listen/deliveries/1/{what} HTTP/1.1\r\nhost: {page}\r\norigin: http://example.com\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        );
        let foreign = answer(&page, &foreign).await;
        assert!(foreign.starts_with("HTTP/1.1 403"), "{what}: {foreign}");
    }
    // A changed body is signed for the token alone.
    let without = format!(
        "POST /_listen/deliveries/1/send HTTP/1.1\r\nhost: {page}\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}"
    );
    let without = answer(&page, &without).await;
    assert!(without.starts_with("HTTP/1.1 403"), "{without}");
    // The listener itself serves no page.
    let listener = answer(
        &listening.address,
        &format!(
            "GET / HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
            listening.address
        ),
    )
    .await;
    assert!(listener.starts_with("HTTP/1.1 404"), "{listener}");
}

pub(crate) fn event(id: &str, event_type: &str, text: &str) -> String {
    json!({ "id": id, "type": event_type, "createdAt": "2026-11-01T00:00:00Z", "workspaceId": "ws_1",
        "data": { "datamodelId": "dm_1", "rowId": text } })
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_deliveries_are_searched_and_opened_by_keys_and_by_their_address() {
    if crate::screen::chromium().is_none() {
        return;
    }
    let mut listening = Listening::start();
    let long = event("evt_long", "row.updated", &"x".repeat(100_000));
    listening.deliver("evt_long", &long, &long).await;
    let refused = event("evt_refused", "row.deleted", "row_1");
    listening.deliver("evt_refused", &refused, "other").await;
    for number in 0..998 {
        let id = format!("evt_{number}");
        let body = event(&id, "page.created", "row_2");
        listening.deliver(&id, &body, &body).await;
    }
    let screen = open!(&listening.page);
    screen.allow_clipboard().await;
    let rows = "document.querySelectorAll('tr[data-delivery]').length";
    screen.until(&format!("{rows} === 100")).await;
    // None is empty from top to bottom: there are no subscriptions and no next attempts; and no reason among the newest.
    let columns = "[...document.querySelectorAll('thead th:not([hidden])')].map((one) => one.textContent).join()";
    assert_eq!(
        screen.eval(columns).await,
        "Verdict,Time,Event,Type,Took,Answer"
    );
    screen.until_text("tr[data-state=done]", "✓ done").await;

    // The oldest ones are found, and the number that was searched is said.
    screen.fill("Search", "EVT_LONG").await;
    screen.until(&format!("{rows} === 1")).await;
    screen.fill("Search", "").await;
    screen.fill("Event type", "row.").await;
    screen.until(&format!("{rows} === 2")).await;
    screen.fill("Verdict", "refused").await;
    screen.until(&format!("{rows} === 1")).await;
    screen.until_there("tr[data-state=refused] .failed").await;
    screen.fill("Search", "<img src=x onerror=alert(1)>").await;
    screen
        .until_text("main", "No delivery fits the filter (1,000 searched).")
        .await;
    screen.fill("Search", "").await;
    screen.fill("Verdict", "").await;
    screen.until(&format!("{rows} === 2")).await;

    // By keys alone: the search, the list, the delivery, back.
    screen.eval("document.activeElement.blur()").await;
    screen.key("/").await;
    let focused =
        "(document.activeElement.id || document.activeElement.closest('tr')?.dataset.delivery)";
    screen.until(&format!("{focused} === 'search'")).await;
    screen.key("ArrowDown").await;
    screen
        .until(&format!("{focused}?.startsWith('evt_refused@')"))
        .await;
    screen.key("ArrowDown").await;
    screen
        .until(&format!("{focused}?.startsWith('evt_long@')"))
        .await;
    screen.key("Enter").await;
    screen.until_text(".detail", "xxxxx").await;
    screen
        .until("/^#evt_long@\\d{4}-.*Z\\?type=row\\.$/.test(location.hash)")
        .await;
    screen.press(".detail", "Copy body").await;
    screen.until_text("#told", "Body copied").await;
    assert_eq!(
        screen.eval("navigator.clipboard.readText()").await,
        long.as_str()
    );
    screen.press(".detail", "Show raw").await;
    let raw = "document.querySelector('.detail .json').textContent.length";
    screen.until(&format!("{raw} === {}", long.len())).await;
    screen.press(".detail", "Deliver again").await;
    screen
        .until_text("#told .good", "evt_long delivered again: 20")
        .await;
    screen.key("Escape").await;
    screen.until("location.hash === '#?type=row.'").await;
    screen
        .until(&format!("{focused}?.startsWith('evt_long@')"))
        .await;

    // What is not authentic is not signed as it is; its curl command has no signature.
    screen.click("tr[data-state=refused]").await;
    screen.until_there(".detail .refusal").await;
    assert!(
        !screen
            .texts(".detail button")
            .await
            .contains(&"Deliver again".to_owned())
    );
    screen
        .press(".detail", "Copy as curl without signature")
        .await;
    screen
        .until_text("#told", "Command without the signature")
        .await;
    let command = screen.eval("navigator.clipboard.readText()").await;
    let command = command.as_str().unwrap();
    let url = format!("'http://{}/webhooks'", listening.address);
    assert!(
        command.contains(&url) && !command.contains("x-service-signature"),
        "{command}"
    );

    // The address survives a reload, and names what is not there without harm.
    screen.reload().await;
    screen.until_text(".detail", "evt_refused").await;
    screen
        .eval("location.hash = '#%3Cimg src=x onerror=alert(1)%3E'")
        .await;
    screen.until_text(".detail", "is not kept").await;
    screen.was_refused(404).await;
    screen.eval("location.hash = '#%'").await;
    assert_eq!(screen.eval("document.images.length").await, 0);
    listening.child.kill().unwrap();
    screen.until_text("#connection", "connection lost").await;
    screen.click("tr[data-delivery]").await;
    screen
        .until_text("#told .bad", "The server does not answer.")
        .await;
    let other: Vec<_> = screen
        .problems()
        .into_iter()
        .filter(|problem| !problem.contains("ERR_"))
        .collect();
    assert_eq!(other, Vec::<String>::new());
    screen.end().await;
}
