//! The size of an id, and of a row's record: the figures of the crate's page are those measured
//! here.

use crate::support::{client_at, migrated, needed, value};

/// A hundred thousand ids, claimed and committed one by one as the store does; and as many rows of
/// eight properties, each with two events in transactions.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_takes_the_room_that_is_said() {
    let server = needed!(migrated(&["fsync=off", "autovacuum_naptime=1"]).await);
    let client = client_at(&server.config()).await;
    let fill = "DO $$ BEGIN FOR n IN 1..100000 LOOP
      INSERT INTO hookgate_claims VALUES (decode(md5(n::text), 'hex'), decode(md5(n::text), 'hex'), false, clock_timestamp() + interval '30 s');
      COMMIT;
      UPDATE hookgate_claims SET done = true, until = clock_timestamp() + interval '48 h' WHERE key = decode(md5(n::text), 'hex');
      INSERT INTO hookgate_effects VALUES (decode(md5(n::text), 'hex'), n, clock_timestamp() + interval '48 h');
      COMMIT;
      INSERT INTO hookgate_order VALUES (decode(md5(n::text), 'hex'), 1, '', clock_timestamp());
      UPDATE hookgate_order SET last = decode(repeat('a7', 159), 'hex'), until = clock_timestamp() + interval '48 h' WHERE key = decode(md5(n::text), 'hex');
      COMMIT;
      UPDATE hookgate_order SET revision = 2, until = clock_timestamp() + interval '48 h' WHERE key = decode(md5(n::text), 'hex');
      COMMIT;
    END LOOP; END $$";
    client.batch_execute(fill).await.unwrap();
    for (table, said) in [
        ("hookgate_claims", 300),
        ("hookgate_effects", 200),
        ("hookgate_order", 500),
    ] {
        let size = format!("SELECT pg_total_relation_size('{table}') / 100000");
        let bytes: i64 = value(&client, &size).await;
        println!("{table}: {bytes} bytes an id");
        assert!((said / 2..=said).contains(&bytes), "{table}: {bytes}");
    }
}
