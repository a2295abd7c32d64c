//! The commands on the wire, and the stored records.

use std::collections::BTreeMap;
use std::time::Duration;

use hookgate::{
    DedupeStore,
    dedupe::Claimed::{Fresh, Running},
    dedupe::Ownership::{Held, Lost},
    dedupe::StoreErrorKind,
};

use super::{Direct, LONG, found, key, patient, started, token};
use crate::support::{RedisServer, done_by, needed};

/// How many commands of each kind the server has seen since `CONFIG RESETSTAT`.
async fn seen(direct: &mut Direct, counts: &[(&str, u64)]) {
    let stats: String = direct.say("INFO commandstats").await;
    let line = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(':')?;
        let calls = rest.strip_prefix("calls=")?.split(',').next()?;
        Some((name.to_owned(), calls.parse().unwrap()))
    };
    let mut commands: BTreeMap<_, u64> = stats.lines().filter_map(line).collect();
    // The test's own.
    commands.retain(|name, _| !["info", "config|resetstat"].contains(&name.as_str()));
    let expected = counts
        .iter()
        .map(|(name, count)| (name.to_string(), *count));
    assert_eq!(commands, expected.collect());
}

#[tokio::test]
async fn a_claim_and_its_commit_take_a_round_trip_each() {
    let (_server, store, mut direct) = needed!(started(&[]).await);
    let (first, copy) = (key("first"), token());
    // The scripts are known from here on.
    store.claim(&first, copy, LONG).await.unwrap();
    store.claim(&first, copy, LONG).await.unwrap();
    store.commit(&first, copy, LONG).await.unwrap();

    direct.tell("CONFIG RESETSTAT").await;
    for number in 0..100 {
        let (event, token) = (key(&format!("event-{number}")), token());
        assert_eq!(store.claim(&event, token, LONG).await.unwrap(), Fresh);
        assert_eq!(store.commit(&event, token, LONG).await.unwrap(), Held);
    }
    // A hundred of each were sent: `SET` and `EVALSHA`. The calls of a script are counted as well,
    // here one `GET` and one `SET`, and need no trip.
    seen(&mut direct, &[("evalsha", 100), ("get", 100), ("set", 200)]).await;

    // A duplicate of a done event takes one, a copy of a running one two.
    direct.tell("CONFIG RESETSTAT").await;
    assert_eq!(found(&store, &first).await, done_by(copy));
    seen(&mut direct, &[("set", 1)]).await;
    direct.tell("CONFIG RESETSTAT").await;
    let running = key("running");
    found(&store, &running).await;
    let claimed = found(&store, &running).await;
    assert!(matches!(claimed, Running { retry_after } if retry_after <= LONG));
    // Two claims, and the second one's look.
    seen(
        &mut direct,
        &[("evalsha", 1), ("get", 1), ("pttl", 1), ("set", 2)],
    )
    .await;
}

// fault C7: a script that the server has forgotten is an error
#[tokio::test]
async fn scripts_that_the_server_forgot_are_sent_again() {
    let (_server, store, mut direct) = needed!(started(&[]).await);
    let (event, holder) = (key("event"), token());
    store.claim(&event, holder, LONG).await.unwrap();
    for _ in 0..2 {
        direct.tell("SCRIPT FLUSH").await;
        assert_eq!(store.renew(&event, holder, LONG).await.unwrap(), Held);
        direct.tell("SCRIPT FLUSH").await;
        let claimed = found(&store, &event).await;
        assert!(matches!(claimed, Running { .. }));
        direct.tell("SCRIPT FLUSH").await;
        assert_eq!(store.claim(&event, holder, LONG).await.unwrap(), Fresh);
        direct.tell("SCRIPT FLUSH").await;
        assert_eq!(store.release(&event, token()).await.unwrap(), Lost);
    }
    direct.tell("SCRIPT FLUSH").await;
    assert_eq!(store.commit(&event, holder, LONG).await.unwrap(), Held);
}

#[tokio::test]
async fn records_are_readable_and_small() {
    let (_server, store, mut direct) = needed!(started(&[]).await);
    let (event, holder) = (key("evt_1"), token());
    store.claim(&event, holder, LONG).await.unwrap();
    let name = format!("hookgate:{}", event.to_hex());
    let value: Vec<u8> = direct.say(&format!("GET {name}")).await;
    assert_eq!(value, [b"c", &holder.as_bytes()[..]].concat());
    // Under another prefix it is the event of another application.
    let theirs = store.clone().with_prefix("theirs:");
    assert_eq!(found(&theirs, &event).await, Fresh);
    store.commit(&event, holder, LONG).await.unwrap();
    let value: Vec<u8> = direct.say(&format!("GET {name}")).await;
    assert_eq!(value, [b"d", &holder.as_bytes()[..]].concat());
    // The terms of the docs' formula, and the tables of keys and of ends besides.
    let bytes: u64 = direct.say(&format!("MEMORY USAGE {name}")).await;
    println!("{bytes} bytes a record alone");
    assert!(bytes <= 120, "{bytes}");

    const EVENTS: u64 = 20_000;
    let used = async |direct: &mut Direct| -> u64 {
        let info: String = direct.say("INFO memory").await;
        let mut lines = info.lines();
        let used = lines.find_map(|line| line.strip_prefix("used_memory:"));
        used.unwrap().trim().parse().unwrap()
    };
    let before = used(&mut direct).await;
    let mut commands = redis::pipe();
    for number in 0..EVENTS {
        let name = format!("hookgate:{}", key(&number.to_string()).to_hex());
        commands.cmd("SET").arg(name).arg(&value);
        commands.arg("PX").arg(600_000).ignore();
    }
    commands.query_async::<()>(&mut direct.0).await.unwrap();
    let each = (used(&mut direct).await - before) / EVENTS;
    println!("{each} bytes a record with its places in both tables");
    assert!(each <= hookgate_redis::BYTES_PER_RECORD as u64, "{each}");
}

#[tokio::test]
async fn no_duration_is_an_error_or_ends_before_its_time() {
    let server = needed!(RedisServer::start(&[]));
    let store = patient(&server.url());
    let short = [0, 1, 1_500_000].map(Duration::from_nanos);
    for (number, time) in short.into_iter().enumerate() {
        // Such a lease is over at once, or all but; a claim with it is none that Redis refuses.
        let (event, holder) = (key(&format!("short-{number}")), token());
        assert_eq!(store.claim(&event, holder, time).await.unwrap(), Fresh);
        store.renew(&event, holder, time).await.unwrap();
        store.commit(&event, holder, time).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(found(&store, &event).await, Fresh);
    }
    let long = [Duration::MAX, Duration::from_millis(u64::MAX), LONG];
    for (number, time) in long.into_iter().enumerate() {
        let (event, holder) = (key(&format!("long-{number}")), token());
        assert_eq!(store.claim(&event, holder, time).await.unwrap(), Fresh);
        assert_eq!(store.claim(&event, holder, time).await.unwrap(), Fresh);
        assert_eq!(store.renew(&event, holder, time).await.unwrap(), Held);
        let Running { retry_after } = store.claim(&event, token(), time).await.unwrap() else {
            panic!("the lease goes on");
        };
        assert!(retry_after > LONG / 2);
        assert_eq!(store.commit(&event, holder, time).await.unwrap(), Held);
        let copy = store.claim(&event, token(), time).await;
        assert_eq!(copy.unwrap(), done_by(holder));
    }
}

#[tokio::test]
async fn a_foreign_value_under_an_events_key_is_an_error_and_left_alone() {
    let (_server, store, mut direct) = needed!(started(&[]).await);
    for (id, write) in [("text", "SET"), ("list", "LPUSH")] {
        let name = format!("hookgate:{}", key(id).to_hex());
        let _: redis::Value = direct.say(&format!("{write} {name} somebody's")).await;
        let error = store.claim(&key(id), token(), LONG).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    }
    let name = format!("hookgate:{}", key("text").to_hex());
    let text = key("text");
    assert_eq!(store.commit(&text, token(), LONG).await.unwrap(), Lost);
    assert_eq!(store.release(&text, token()).await.unwrap(), Lost);
    let left: String = direct.say(&format!("GET {name}")).await;
    assert_eq!(left, "somebody's");
}
