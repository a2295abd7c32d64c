//! Entries of other rows beside a large backlog.

use tokio::sync::mpsc;

use super::*;
use crate::support::{needed, once_within, unflushed};

/// 2,000 entries of a row of which one runs, and 60,000 rows whose only entry has failed and is due
/// in an hour.
const BACKLOG: &str = "INSERT INTO hookgate_inbox (namespace, key, row_key, digest, event_id, event_type, signed_at, received_at, scope,
    key_name, body, accepted_at, due_at, forget_at, tries, token)
  SELECT 'test', decode(md5('e' || e), 'hex'), decode(md5(CASE WHEN e <= 2000 THEN 'one' ELSE 'r' || e END), 'hex'), 0, 'evt_' || e,
    'row.deleted', '1700000000', 1700000000, 'default', 'default',
    convert_to('{\"id\":\"evt_' || e || '\",\"type\":\"row.deleted\",\"createdAt\":\"2026-11-21T09:30:00Z\",\"data\":{}}', 'UTF8'), now(),
    now() + CASE WHEN e <= 2000 THEN interval '-1 minute' ELSE interval '1 hour' END, now() + interval '2 days',
    CASE WHEN e <= 2000 THEN 0 ELSE 1 END, CASE WHEN e <= 2000 THEN NULL ELSE decode(md5('token'), 'hex') END
  FROM generate_series(1, 62000) AS e ORDER BY e";

// fault Q32: a hundred thousand rows in back-off keep an event of another row waiting for 25 s, beside a backlog of a row that runs
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_is_handled_in_three_seconds_beside_rows_in_back_off() {
    let (server, client) = needed!(unflushed().await);
    for statement in [BACKLOG, "VACUUM ANALYZE hookgate_inbox"] {
        client.batch_execute(statement).await.unwrap();
    }
    let inbox = inbox(&server.config());
    let (begun, mut events) = mpsc::unbounded_channel();
    let workers = Workers::new(&inbox).concurrency(4).serial_by_row();
    let _workers = workers
        .start_handler(move |delivery: Delivery| {
            let id = delivery.event_id().to_string();
            let runs_on = id == "evt_1";
            begun.send(id).unwrap();
            async move {
                if runs_on {
                    tokio::time::sleep(PATIENCE).await;
                }
                StatusCode::OK
            }
        })
        .unwrap();
    assert_eq!(events.recv().await.unwrap(), "evt_1");
    // Each waited for 25 s. On a busy machine, later ones may be faster.
    let mut number = 0;
    for _ in 0..3 {
        once_within(Duration::from_secs(3), "an event", async |_| {
            let (id, began) = (format!("evt_other_{number}"), Instant::now());
            number += 1;
            accept(&inbox, &id).await.unwrap();
            assert_eq!(events.recv().await.unwrap(), id);
            began.elapsed()
        })
        .await;
    }
}
