//! Memory that is full.

use hookgate::{
    DedupeStore,
    dedupe::Claimed::{Fresh, Running},
    dedupe::Ownership::Held,
    dedupe::StoreErrorKind,
};
use hookgate_redis::Risk;

use super::{Direct, LONG, found, key, patient, token};
use crate::support::{App, RedisServer, done_by, needed, says};

// fault C6: memory that is full keeps a finished run from being recorded
#[tokio::test(flavor = "multi_thread")]
async fn full_memory_refuses_new_events_and_forgets_none() {
    let settings = ["--maxmemory", "2mb", "--maxmemory-policy", "noeviction"];
    let server = needed!(RedisServer::start(&settings));
    let store = patient(&server.url());
    let app = App::on(store.clone());
    assert_eq!(app.deliver("early").await, 204);
    let (running, holder) = (key("running"), token());
    store.claim(&running, holder, LONG).await.unwrap();

    let mut done = Vec::new();
    let error = loop {
        let (event, token) = (key(&done.len().to_string()), token());
        match store.claim(&event, token, LONG).await {
            Ok(Fresh) => {}
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error,
        }
        // Also the last one that was taken: it took no more than its claim.
        assert_eq!(store.commit(&event, token, LONG).await.unwrap(), Held);
        done.push((event, token));
        assert!(done.len() < 40_000);
    };
    assert_eq!(error.kind(), StoreErrorKind::Full, "{error:?}");
    println!("{} ids in 2 MB", done.len());
    assert_eq!(app.deliver("late").await, 503);
    assert_eq!(app.runs(), 1);

    // Nothing is forgotten, and runs under way go on: also where the scripts have to be sent again.
    assert_eq!(app.deliver("early").await, 200);
    for (event, by) in &done {
        assert_eq!(found(&store, event).await, done_by(by));
    }
    let mut direct = Direct::to(&server.url()).await;
    direct.tell("CONFIG SET maxmemory 1mb").await;
    direct.tell("SCRIPT FLUSH").await;
    let claimed = found(&store, &running).await;
    assert!(matches!(claimed, Running { .. }));
    assert_eq!(store.renew(&running, holder, LONG).await.unwrap(), Held);
    direct.tell("SCRIPT FLUSH").await;
    assert_eq!(store.commit(&running, holder, LONG).await.unwrap(), Held);
    assert_eq!(found(&store, &running).await, done_by(holder));

    // As soon as there is room, events are taken again.
    direct.tell("CONFIG SET maxmemory 8mb").await;
    assert_eq!(app.deliver("late").await, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_evicts_forgets_and_the_check_says_so() {
    for policy in ["allkeys-lru", "volatile-ttl"] {
        let settings = ["--maxmemory", "3mb", "--maxmemory-policy", policy];
        let server = needed!(RedisServer::start(&settings));
        let store = patient(&server.url());
        let findings = store.check().await.unwrap();
        let expected = Risk::Evicts {
            policy: policy.to_owned(),
        };
        let mut risks = findings.found.iter().map(|finding| &finding.risk);
        assert!(risks.any(|risk| *risk == expected));
        let error = findings.strict().unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::NotDurable);
        says(format!("{error:?}"), policy);

        // The risk is real: each of more ids than fit is accepted, and many are forgotten.
        let mut commands = redis::pipe();
        const EVENTS: usize = 30_000;
        for number in 0..EVENTS {
            let name = format!("hookgate:{}", key(&number.to_string()).to_hex());
            commands.cmd("SET").arg(name).arg("d0123456789abcdef");
            commands.arg("PX").arg(600_000).ignore();
        }
        let mut direct = Direct::to(&server.url()).await;
        commands.query_async::<()>(&mut direct.0).await.unwrap();
        let kept: usize = direct.say("DBSIZE").await;
        assert!(kept < EVENTS / 2, "{kept}");
    }
}
