//! The programs of `tests/programs` that need servers, and the examples by TLS.

#[allow(dead_code)] // its `main` takes the servers from the environment
#[path = "../programs/replicas.rs"]
mod replicas;

#[allow(dead_code)]
#[path = "../programs/order_rows.rs"]
mod order_rows;

use crate::process::{Example, row_created};
use crate::support::{Certificates, PostgresServer, RedisServer};

#[tokio::test(flavor = "multi_thread")]
async fn ten_replicas_share_their_claims() -> Result<(), Box<dyn std::error::Error>> {
    let redis = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let (Some(redis), Some(postgres)) = (redis, PostgresServer::start(&["max_connections=200"]))
    else {
        return Ok(());
    };
    let postgres = format!("postgres://hookgate@{}/postgres", postgres.server.address);
    replicas::run(&redis.url(), &postgres).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_a_row_of_postgres_exactly_once() -> Result<(), Box<dyn std::error::Error>> {
    let Some(postgres) = PostgresServer::start(&[]) else {
        return Ok(());
    };
    let url = format!("postgres://hookgate@{}/postgres", postgres.server.address);
    order_rows::run(&url).await
}

const SECRET: &str = "whsec_made_up_for_the_examples";

/// Delivers until the answer is another one than 503: handshakes take a busy machine long.
fn deliver(example: &Example, id: &str) -> u16 {
    let order = row_created(id, r#"{"Customer":"Ada","Total":12.50}"#);
    let order = order.replace("dm_1", "dm_orders");
    let mut answers = (0..100).map(|_| example.deliver(SECRET, &order).status);
    answers.find(|status| *status != 503).unwrap()
}

/// The URL is all that decides: no example has a line for servers without TLS, and another one for those with it.
#[test]
fn the_examples_speak_tls_where_their_url_asks_for_it() {
    let certificates = Certificates::new();
    let Some(postgres) = certificates.postgres() else {
        return;
    };
    let authority = certificates.path("authority.pem");
    let postgres = format!(
        "postgres://hookgate@localhost:{}/postgres?sslmode=verify-full&sslrootcert={authority}",
        postgres.server.address.port(),
    );
    let secret = ("WEBHOOK_SECRET", SECRET);
    for (name, place, handled) in [
        ("exactly_once", ("DATABASE_URL", &postgres), 204),
        ("durable_inbox", ("INBOX", &postgres), 200),
    ] {
        let variables = [
            secret,
            (place.0, place.1),
            ("SSL_CERT_FILE", &authority),
            ("TAKES_MS", "0"),
        ];
        let mut example = Example::start(name, &variables);
        assert_eq!(deliver(&example, name), handled, "{name}");
        assert_eq!(deliver(&example, name), 200, "{name}");
        if name == "durable_inbox" {
            example.line_with("durable_inbox: Ada ordered for 12.50");
        }
    }
}
