//! Rows whose first entry waits after a failure.

use super::plans::{plan, reads_few_rows};
use super::*;

/// Makes these entries fail: they have run once, and are due again after this time.
async fn fail(client: &Client, entries: &str, after: &str) {
    let fail = format!(
        "UPDATE hookgate_inbox SET tries = 1, token = decode(md5('x'), 'hex'), due_at = now() + interval '{after}' WHERE {entries}"
    );
    for statement in [fail.as_str(), "VACUUM ANALYZE hookgate_inbox"] {
        client.batch_execute(statement).await.unwrap();
    }
}

/// A row has many entries, one of which runs, and each of very many other rows has one, which has
/// failed and is not due yet.
// fault Q32: a hundred thousand rows in back-off keep an event of another row waiting for 25 s, beside a backlog of a row that runs
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_in_back_off_are_not_read_to_find_an_entry_that_is_due() {
    const ROWS: i32 = 20_000;
    let Some(server) = PostgresServer::start(&["fsync=off"]) else {
        return;
    };
    let (client, table, _) = hot_row(&server, "back_off", 2_000).await;
    fill(&client, ROWS, 1).await;
    // One of them is due.
    let failed =
        format!("event_id LIKE 'evt\\_1\\_%' AND event_id NOT IN ('evt_1_1', 'evt_1_{ROWS}')");
    fail(&client, &failed, "1 hour").await;
    let parameters: [&(dyn ToSql + Sync); 6] = [
        &8_i64,
        &Vec::<i64>::new(),
        &10_i32,
        &"default",
        &Some(165_000.0),
        &[0_u8; 0].as_slice(),
    ];
    let plan = plan(
        &client,
        &serial::BY_ROWS,
        &lease::TYPES[..6],
        &parameters,
        300,
    )
    .await;
    for index in [
        "hookgate_inbox_fresh_by_row",
        "hookgate_inbox_retried_by_name",
    ] {
        assert!(plan.contains(index), "{plan}");
    }
    reads_few_rows(&plan);
    let batch = table.lease(request(8, true)).await.unwrap();
    let events: Vec<_> = batch.jobs.iter().map(|job| &*job.entry.event_id).collect();
    assert_eq!(events, [format!("evt_1_{ROWS}")]);
}

/// Very many entries of a row that runs have failed and are due again, and so has one of another
/// row, behind them.
// fault Q32: a hundred thousand rows in back-off keep an event of another row waiting for 25 s, beside a backlog of a row that runs
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn entries_of_a_row_that_failed_keep_no_other_that_failed_waiting() {
    const FAILED: i32 = 5_000;
    let Some(server) = PostgresServer::start(&["fsync=off"]) else {
        return;
    };
    let (client, table, first) = hot_row(&server, "failed", FAILED + 1).await;
    fill(&client, 3_000, 1).await;
    fail(
        &client,
        "event_id LIKE 'evt\\_1\\_%' AND state = 0",
        "1 hour",
    )
    .await;
    fail(&client, "event_id NOT LIKE 'evt\\_1\\_%'", "-2 seconds").await;
    fail(&client, "event_id = 'evt_1_2'", "-1 second").await;
    let mut calls = 0;
    let batch = loop {
        let batch = table.lease(request(8, true)).await.unwrap();
        calls += 1;
        if !batch.jobs.is_empty() {
            break batch;
        }
        assert!(calls <= FAILED / 1_000 + 1, "{calls} calls");
        assert!(
            batch.next_in <= Some(Duration::from_millis(10)),
            "{batch:?}"
        );
    };
    assert_eq!(&*batch.jobs[0].entry.event_id, "evt_1_2");
    assert_eq!(batch.jobs[0].tries, 2);
    // A settlement of a failure that is repeated after that is one of a lease that another worker
    // has taken.
    let kept = "SELECT count(*) FROM hookgate_inbox WHERE state = 0 AND token IS NOT NULL AND due_at <= now()";
    assert_eq!(
        client.query_one(kept, &[]).await.unwrap().get::<_, i64>(0),
        0
    );
    // When the row is free, its entries follow each other as before.
    let settled = table.settle(first.id, first.token, End::Done);
    assert_eq!(settled.await.unwrap(), Ownership::Held);
    let next = table.lease(request(8, true)).await.unwrap();
    let events: Vec<_> = next.jobs.iter().map(|job| &*job.entry.event_id).collect();
    assert_eq!(events, ["evt_2_1"]);
    assert_eq!(next.jobs[0].tries, 2);
}
