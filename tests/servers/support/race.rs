//! Two processes, 256 racers, one id.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::routing::post;
use hookgate::{DedupeStore, Delivery, Receiver, Secret};
use hookgate_testing::Signer;
use tower::ServiceExt;

use super::child::{self, Child};
use super::folder::Folder;

/// In each process.
const RACERS: usize = 128;
/// Far more than needed.
const PATIENCE: Duration = Duration::from_secs(180);

/// Has 128 racers in this process and 128 in another deliver the same event, each process through a
/// receiver of its own on a store that `open` opens. One handler runs, once; no racer gets a 2xx
/// before it is done; in the end all of them do.
///
/// `test` is the whole name of the calling test. `server` is called in its first process alone: it
/// starts a server, and returns the address that `open` needs to reach it. Returns early where
/// there is no server.
pub fn one_run_in_two_processes<T, S: DedupeStore>(
    test: &str,
    server: impl FnOnce() -> Option<(T, String)>,
    open: impl AsyncFnOnce(&str) -> S,
) {
    if let Some(given) = child::given() {
        let (folder, address) = given.split_once('\n').unwrap();
        return race(Path::new(folder), "child", address, open);
    }
    let Some((_server, address)) = server() else {
        return;
    };
    let folder = Folder::new();
    let given = format!("{}\n{address}", folder.path().display());
    let mut other = Child::start(test, &given);
    race(folder.path(), "parent", &address, open);
    assert!(other.wait().success());

    let lines = |file: &str| {
        let text = fs::read_to_string(folder.path().join(file)).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines("runs").len(), 1, "{:?}", lines("runs"));
    let heard = lines("heard");
    let of = |what: &str| heard.iter().filter(|line| line.contains(what)).count();
    assert_eq!(heard.len(), 2 * RACERS);
    assert_eq!(of("early"), 0, "a 2xx was heard before the run was done");
    assert_eq!((of("ran"), of("replayed")), (1, 2 * RACERS - 1));
    assert_eq!((of("parent"), of("child")), (RACERS, RACERS));
}

fn race<S: DedupeStore>(
    folder: &Path,
    process: &'static str,
    address: &str,
    open: impl AsyncFnOnce(&str) -> S,
) {
    let folder: Arc<Path> = Arc::from(folder);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let secret = Secret::new("whsec_made_up_for_this_race").unwrap();
        let receiver = Receiver::builder()
            .secret(secret.clone())
            .store(open(address).await)
            .build()
            .unwrap();
        let runs = Arc::clone(&folder);
        let handler = async move |_: Delivery| {
            append(&runs, "runs", process);
            tokio::time::sleep(Duration::from_millis(500)).await;
            fs::write(runs.join("done"), "").unwrap();
            StatusCode::NO_CONTENT
        };
        let app: Router = Router::new().route("/", post(handler).layer(receiver.layer()));
        let signer = Signer::new(secret);

        start_together(&folder, process).await;
        let racers: Vec<_> = (0..RACERS)
            .map(|_| tokio::spawn(deliver(app.clone(), signer.clone(), Arc::clone(&folder))))
            .collect();
        for racer in racers {
            append(
                &folder,
                "heard",
                &format!("{process} {}", racer.await.unwrap()),
            );
        }
    });
}

/// Delivers until it gets a 2xx, as the service does, only sooner. The pauses grow as the service's
/// do: a busy machine could not answer all racers in time again and again.
async fn deliver(app: Router, signer: Signer, folder: Arc<Path>) -> &'static str {
    let until = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(50);
    loop {
        let request = signer.request("/", r#"{"id":"evt_race","type":"page.created"}"#);
        let answer = app.clone().oneshot(request.map(Body::from)).await.unwrap();
        if answer.status().is_success() {
            // Looked at after the answer: where it is missing now, it was missing then.
            return match (
                folder.join("done").exists(),
                answer.headers().contains_key("idempotent-replayed"),
            ) {
                (false, _) => "early",
                (true, false) => "ran",
                (true, true) => "replayed",
            };
        }
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(Instant::now() < until, "nothing but 503");
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(Duration::from_secs(4));
    }
}

/// Waits until both processes are here.
async fn start_together(folder: &Path, process: &str) {
    fs::write(folder.join(process), "").unwrap();
    let until = Instant::now() + PATIENCE;
    while !(folder.join("parent").exists() && folder.join("child").exists()) {
        assert!(Instant::now() < until, "the other process does not start");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn append(folder: &Path, file: &str, line: &str) {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join(file))
        .unwrap();
    // One write, so that lines of two processes do not mix.
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}
