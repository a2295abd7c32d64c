//! `hookgate inbox erase` on both engines, with the inbox in use.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use hookgate::layer::IntoAnswer as _;
use hookgate::{
    DeadLetter, Delivery, HandlerError,
    sink::{Accepted, Sink},
};
use hookgate_inbox::{Backoff, Inbox, Workers};
use hookgate_testing::delivery;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::command::{Place, fields, ran};
use crate::support::Folder;

const RETAIN: Duration = Duration::from_secs(48 * 3_600);
const PATIENCE: Duration = Duration::from_secs(60);

fn body(id: &str, person: &str) -> String {
    // So large that the text before its end is on pages of its own.
    let long = format!("{person} ").repeat(2_000);
    format!(
        r#"{{"id":"{id}","type":"row.created","data":{{"datamodelId":"dm_1","rowId":"row_{id}","properties":{{"Note":"{long}"}},"createdBy":{{"id":"{person}"}}}}}}"#
    )
}

async fn accept(inbox: &Inbox, id: &str, person: &str) -> Accepted {
    let delivery = delivery(body(id, person)).unwrap();
    inbox.accept(&delivery, RETAIN).await.unwrap()
}

fn states(values: &[Value]) -> Vec<(&str, &str, bool)> {
    let of = |value: &'_ Value| value["kept"].as_bool();
    let found = values.iter().filter_map(|value| Some((value, of(value)?)));
    let mut states: Vec<_> = found
        .map(|(value, kept)| {
            let text = |key: &str| value[key].as_str().unwrap();
            (text("eventId"), text("state"), kept)
        })
        .collect();
    states.sort_unstable();
    states
}

/// Of two persons, each has an entry in each state; one of them is erased while the workers run.
async fn a_person_is_erased(inbox: Inbox, place: Place) {
    let gate = Arc::new(Semaphore::new(0));
    let hour = Duration::from_secs(3_600);
    let workers = Workers::new(&inbox)
        .concurrency(8)
        .poll_interval(Duration::from_millis(200))
        .backoff(Backoff::exponential(hour, hour));
    let held = Arc::clone(&gate);
    let workers = workers.start_handler(move |event: Delivery| {
        let gate = Arc::clone(&held);
        async move {
            let id = event.event_id();
            if id.starts_with("evt_dead") {
                return DeadLetter::new("no account for usr_1").into_answer();
            }
            if id.starts_with("evt_late") {
                return HandlerError::from("the shop is closed").into_answer();
            }
            if id.starts_with("evt_slow") {
                let _ = gate.acquire().await;
            }
            StatusCode::NO_CONTENT.into_answer()
        }
    });
    let workers = workers.unwrap();
    for (number, person) in [(1, "usr_1"), (2, "usr_2")] {
        for state in ["done", "dead", "late", "slow"] {
            let id = format!("evt_{state}_{number}");
            assert_eq!(accept(&inbox, &id, person).await, Accepted::New);
        }
    }
    let counts = |stats: &Value| fields(stats, ["done", "dead", "retrying", "running"]);
    let in_each = |stats: &Value| counts(stats) == json!([2, 2, 2, 2]);
    place.until("each in its state", in_each).await;

    // Both dead letters name the person: one in its body, and the other's in its last error alone.
    let erased = |values: &[Value]| {
        let last = values.last().unwrap();
        fields(last, ["entries", "kept", "lastErrors"])
    };
    let (code, values) = place.json("erase --person usr_1");
    let found = [
        ("evt_dead_1", "dead", false),
        ("evt_dead_2", "dead", false),
        ("evt_late_1", "queued", true),
        ("evt_slow_1", "running", true),
    ];
    assert_eq!((code, states(&values)), (Some(0), found.to_vec()));
    let of_error = |value: &&Value| value["lastErrorOnly"] == true;
    let only: Vec<_> = values.iter().filter(of_error).collect();
    assert_eq!((only.len(), &only[0]["eventId"]), (1, &"evt_dead_2".into()));
    assert_eq!(values.last().unwrap()["dryRun"], true);
    assert_eq!(erased(&values), json!([1, 2, 1]));
    let (code, said) = place.text("erase --person usr_1");
    let last: Vec<_> = said.lines().rev().take(3).collect();
    let advice = "nothing erased yet, --yes erases 1 entry, the last error of 1 other; \
                  2 entries that wait or run are kept without --including-waiting";
    assert_eq!((code, last[0]), (Some(0), advice));
    assert!(last[1].contains("evt_dead_2"), "{said}");
    assert!(last[2].ends_with("and the entries stay:"), "{said}");
    assert_eq!(place.entry("evt_dead_1").unwrap()["state"], "dead");
    let of_a_row = place.json("erase --row row_evt_late_2").1;
    assert_eq!(states(&of_a_row), [("evt_late_2", "queued", true)]);

    let (code, values) = place.json("erase --person usr_1 --yes");
    assert_eq!((code, erased(&values)), (Some(1), json!([1, 2, 1])));
    let other = place.entry("evt_dead_2").unwrap();
    assert_eq!(
        fields(&other, ["state", "lastError"]),
        json!(["dead", null])
    );
    assert_ne!(other["bodyBytes"], 0);
    let (code, values) = place.json("erase --person usr_1 --yes --including-waiting");
    let last = fields(values.last().unwrap(), ["entries", "kept"]);
    assert_eq!((code, last), (Some(0), json!([2, 0])));
    for state in ["done", "dead", "late", "slow"] {
        let id = format!("evt_{state}_1");
        let entry = place.entry(&id).unwrap();
        let left = fields(&entry, ["state", "bodyBytes", "lastError"]);
        assert_eq!(left, json!(["done", 0, null]), "{id}");
        let copy = accept(&inbox, &id, "usr_1").await;
        assert_eq!(copy, Accepted::Duplicate { same_body: true }, "{id}");
    }
    let (code, values) = place.json("erase --person usr_1");
    assert_eq!((code, values.len()), (Some(1), 1));

    // The entries of the other person are worked off, and so are new ones.
    gate.add_permits(2);
    assert_eq!(accept(&inbox, "evt_done_3", "usr_2").await, Accepted::New);
    let is_worked_off = |stats: &Value| counts(stats) == json!([7, 1, 1, 0]);
    place.until("the rest is handled", is_worked_off).await;
    workers.shutdown(PATIENCE).await;
}

/// Whether one of the inbox's files has the text.
fn is_in_files(folder: &Path, text: &str) -> bool {
    let files = fs::read_dir(folder).unwrap();
    let mut contents = files.map(|file| fs::read(file.unwrap().path()).unwrap());
    let has = |bytes: Vec<u8>| {
        bytes
            .windows(text.len())
            .any(|found| found == text.as_bytes())
    };
    contents.any(has)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_erased_on_sqlite_and_no_byte_is_left_in_its_files() {
    let folder = Folder::new();
    let file = folder.path().join("inbox.db");
    let (inbox, place) = Place::on_sqlite(&file);
    a_person_is_erased(inbox.clone(), place).await;
    assert!(!is_in_files(folder.path(), "usr_1"));
    // The other one is still there.
    assert!(is_in_files(folder.path(), "usr_2"));
    inbox.close().await;
}

/// Handled entries have no body that could be found, but their bytes may be on free pages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_deleted_earlier_is_overwritten_too() {
    let folder = Folder::new();
    let file = folder.path().join("inbox.db");
    let inbox = hookgate_sqlite::open_inbox(&file).unwrap();
    let workers = Workers::new(&inbox).poll_interval(Duration::from_millis(100));
    let handled = |_: Delivery| async { StatusCode::NO_CONTENT.into_answer() };
    let workers = workers.start_handler(handled).unwrap();
    for number in 0..20 {
        accept(&inbox, &format!("evt_{number}"), "usr_1").await;
    }
    while inbox.stats().await.unwrap().done < 20 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    workers.shutdown(PATIENCE).await;
    assert!(
        is_in_files(folder.path(), "usr_1"),
        "the test shows nothing"
    );
    let path = file.to_str().unwrap();
    let erase = ["inbox", "erase", "--db", path, "--person", "usr_1", "--yes"];
    let (code, said, _) = ran(&mut crate::command::hookgate(&erase));
    assert_eq!((code, &*said), (Some(1), "0 entries erased\n"));
    assert!(!is_in_files(folder.path(), "usr_1"));
    assert_eq!(inbox.stats().await.unwrap().done, 20);
    let copy = accept(&inbox, "evt_7", "usr_1").await;
    assert_eq!(copy, Accepted::Duplicate { same_body: true });
    inbox.close().await;
}

// fault Q34: `inbox erase` erases another's entry because its last error names the person
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_erased_on_postgres() {
    let Some((_server, inbox, place)) = Place::on_postgres().await else {
        return;
    };
    a_person_is_erased(inbox, place).await;
}
