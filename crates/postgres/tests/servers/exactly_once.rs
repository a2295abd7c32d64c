//! The example `exactly_once`, killed at chosen points. Kills at random: `tests/servers/kill.rs`.

use std::sync::Arc;
use std::thread;

use tokio_postgres::Client;

use crate::process::{Example, own_secret, row_created};
use crate::support::{Fault, PostgresServer, Proxy, client_at, needed, until, value};

fn start(database: &str) -> Arc<Example> {
    let variables = [("WEBHOOK_SECRET", own_secret()), ("DATABASE_URL", database)];
    Arc::new(Example::start("exactly_once", &variables))
}

fn deliver(example: &Example, id: &str) -> u16 {
    let order = row_created(id, r#"{"Customer":"Bo"}"#);
    example.deliver(own_secret(), &order).status
}

/// How many orders there are, each with the record of its event.
async fn orders(client: &Client) -> i64 {
    let orders = value(client, "SELECT count(*) FROM orders").await;
    let effects: i64 = value(client, "SELECT count(*) FROM hookgate_effects").await;
    assert_eq!(effects, orders);
    orders
}

/// Stops the insert, or the commit, for as long as the test holds lock 1 or 2.
const POINTS: &str = "
CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN PERFORM pg_advisory_xact_lock_shared(TG_ARGV[0]::bigint); RETURN NEW; END $$;
CREATE TRIGGER at_insert BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION stop(1);
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION stop(2)";

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_a_chosen_point_leaves_both_or_neither() {
    let server = needed!(PostgresServer::start(&[]));
    let proxy = Proxy::before(server.server.address);
    let config = PostgresServer::config_at(proxy.address);
    let mut example = start(&config);
    let client = client_at(&server.config()).await;
    client.batch_execute(POINTS).await.unwrap();

    // Lock, whether the answer of the server is lost as well, and how many orders the kill leaves.
    let points = [(1, false, 0), (2, false, 1), (2, true, 1)];
    for (number, (lock, lost, left)) in points.into_iter().enumerate() {
        let id = format!("evt_{number}");
        let before = orders(&client).await;
        let take = format!("SELECT pg_advisory_lock({lock})");
        client.batch_execute(&take).await.unwrap();
        let (first, of_first) = (Arc::clone(&example), id.clone());
        let attempt = thread::spawn(move || deliver(&first, &of_first));
        let waits = "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
        until("something waits at the point", async || {
            value(&client, waits).await
        })
        .await;
        match lost {
            true => proxy.set(Fault::DropReplies),
            false => example.kill(),
        }
        let give = format!("SELECT pg_advisory_unlock({lock})");
        client.batch_execute(&give).await.unwrap();
        let ended = "SELECT count(*) = 0 FROM pg_stat_activity WHERE state IN ('active', 'idle in transaction') AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
        until("the transaction ends", async || value(&client, ended).await).await;
        example.kill();
        assert!(attempt.join().is_err(), "killed before it answered");
        proxy.set(Fault::None);
        assert_eq!(orders(&client).await - before, left, "point {number}");

        example = start(&config);
        let mut status = 0;
        until("it is handled", async || {
            status = deliver(&example, &id);
            ![500, 503].contains(&status) // an error of the database, or of the claim
        })
        .await;
        // 200: it is a duplicate. 204: the handler has run.
        assert_eq!(status, if left == 1 { 200 } else { 204 }, "point {number}");
        assert_eq!(orders(&client).await - before, 1, "point {number}");
    }
}
