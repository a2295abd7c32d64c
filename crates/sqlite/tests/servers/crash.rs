//! Killed at any moment: every answered delivery is there.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use hookgate::sink::{Accepted, Sink};
use hookgate_inbox::{Page, Selection};
use hookgate_sqlite::open_inbox;

use super::{RETAIN, delivery, receiver, until};
use crate::support::{Child, Folder, given};

const KILLS: usize = 6;

#[tokio::test]
async fn what_was_accepted_outlives_its_process() {
    if let Some(given) = given() {
        let (folder, round) = given.split_once('\n').unwrap();
        return accept_for_ever(Path::new(folder), round).await;
    }
    let folder = Folder::new();
    let test = "crash::what_was_accepted_outlives_its_process";
    let file = folder.path().join("inbox.db");
    let answered = || {
        let text = fs::read_to_string(folder.path().join("answered")).unwrap_or_default();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    for round in 0..KILLS {
        let given = format!("{}\n{round}", folder.path().display());
        let mut child = Child::start(test, &given);
        let before = answered().len();
        until("hundred more are accepted", async || {
            answered().len() >= before + 100
        })
        .await;
        child.kill();

        let inbox = open_inbox(&file).unwrap();
        let mut kept = HashSet::new();
        let mut page = Page::first(1_000);
        loop {
            let listed = inbox.list(Selection::all(), page).await.unwrap();
            let Some(last) = listed.last() else { break };
            page = Page::after(last.id, 1_000);
            kept.extend(
                listed
                    .iter()
                    .map(|listed| listed.event_id.as_str().to_owned()),
            );
        }
        for id in answered() {
            assert!(kept.contains(&id), "{id} was answered, and is lost");
        }
        // The count equals the number of entries.
        let stats = inbox.stats().await.unwrap();
        assert_eq!(stats.queued, kept.len() as u64);
        inbox.close().await;
    }
}

async fn accept_for_ever(folder: &Path, round: &str) {
    let inbox = open_inbox(folder.join("inbox.db")).unwrap();
    let receiver = Arc::new(receiver());
    let answered = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("answered"))
        .unwrap();
    let answered = Arc::new(answered);
    let producers: Vec<_> = (0..8)
        .map(|producer| {
            let (inbox, receiver) = (inbox.clone(), Arc::clone(&receiver));
            let (answered, round) = (Arc::clone(&answered), round.to_owned());
            tokio::spawn(async move {
                for number in 0.. {
                    let id = format!("evt_{round}_{producer}_{number}");
                    let accepted = inbox.accept(&delivery(&receiver, &id), RETAIN).await;
                    assert_eq!(accepted.unwrap(), Accepted::New);
                    // One call of the system, which a kill can't take back.
                    (&*answered)
                        .write_all(format!("{id}\n").as_bytes())
                        .unwrap();
                }
            })
        })
        .collect();
    for producer in producers {
        producer.await.unwrap();
    }
}
