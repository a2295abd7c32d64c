//! What is forgotten, and what the file takes meanwhile.

use super::*;

#[tokio::test]
async fn ids_are_forgotten_in_chunks_while_nobody_asks() {
    let (folder, clock) = (Folder::new(), manual());
    let options = InboxOptions::default()
        .clock(clock.clone())
        .forget_at_once(3);
    let engine = Arc::new(SqliteEngine::open(&folder.file(), &options).unwrap());
    accept_all(
        &engine,
        (0..10).map(|number| entry(&format!("evt_{number}"), None)),
    )
    .await;
    for job in engine.lease(ask()).await.unwrap().jobs {
        let settled = engine.settle(job.id, job.token, End::Done).await;
        assert_eq!(settled.unwrap(), Ownership::Held);
    }
    assert_eq!(engine.stats().await.unwrap().done, 10);
    clock.advance(2 * DAY);
    let mut counts = vec![10];
    while counts.last() != Some(&0) {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let done = engine.stats().await.unwrap().done;
        assert!(counts.len() < 6_000, "{done} are never forgotten");
        counts.push(done);
    }
    let steps = counts.windows(2).map(|pair| pair[0] - pair[1]);
    assert!(steps.max() <= Some(6), "{counts:?}");
}

/// What the docs of `Inbox` say of its size.
#[tokio::test]
async fn the_file_takes_what_the_docs_say() {
    const EVENTS: usize = 4_000;
    const BODY: usize = 600;
    let (folder, clock) = (Folder::new(), manual());
    let engine = Arc::new(engine(&folder, &clock));
    let entries = (0..EVENTS).map(|number| Entry {
        event_id: format!("evt_{number:024}"),
        key: EventKey::new("default", &number.to_string()),
        row: Some(EventKey::new("default", &format!("row {number}"))),
        body: Bytes::from(vec![b'x'; BODY]),
        ..entry("evt", None)
    });
    accept_all(&engine, entries).await;
    let pages = || {
        let connection = Connection::open(folder.file()).unwrap();
        let number = |pragma| {
            connection
                .query_row(pragma, [], |row| row.get::<_, u32>(0))
                .unwrap()
        };
        (number("PRAGMA page_count") - number("PRAGMA freelist_count")) as usize
    };
    let waiting = pages() * 4_096 / EVENTS - BODY;
    loop {
        let batch = engine.lease(Ask { most: 500, ..ask() }).await.unwrap();
        if batch.jobs.is_empty() {
            break;
        }
        let settle = |job: Job| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move { engine.settle(job.id, job.token, End::Done).await })
        };
        for settled in batch.jobs.into_iter().map(settle).collect::<Vec<_>>() {
            assert_eq!(settled.await.unwrap().unwrap(), Ownership::Held);
        }
    }
    let remembered = pages() * 4_096 / EVENTS;
    println!(
        "{waiting} bytes beside the body of one that waits, {remembered} for one that is remembered"
    );
    assert!((250..=500).contains(&waiting), "{waiting}");
    assert!((150..=350).contains(&remembered), "{remembered}");
}
