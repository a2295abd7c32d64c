//! The programs of `tests/programs` that need servers, the examples by TLS, and the durable inbox
//! across kills.

#[allow(dead_code)] // its `main` takes the servers from the environment
#[path = "../programs/replicas.rs"]
mod replicas;

#[allow(dead_code)]
#[path = "../programs/order_rows.rs"]
mod order_rows;

use crate::process::{Example, own_secret, row_created};
use crate::support::{Certificates, Folder, PostgresServer, RedisServer, needed, says};

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

/// Delivers until the answer is another one than 503: handshakes take a busy machine long.
fn deliver(example: &Example, id: &str) -> u16 {
    let order = row_created(id, r#"{"Customer":"Ada","Total":12.50}"#);
    let order = order.replace("dm_1", "dm_orders");
    let mut answers = (0..100).map(|_| example.deliver(own_secret(), &order).status);
    answers.find(|status| *status != 503).unwrap()
}

#[test]
fn durable_inbox_takes_the_published_secret_only_with_try() {
    let folder = Folder::new();
    let file = folder.path().join("inbox.db");
    let inbox = ("INBOX", file.to_str().unwrap());
    let published = "whsec_made_up_for_local_tries";
    for (variables, expected) in [
        (&[inbox][..], "set WEBHOOK_SECRET, or give --try"),
        (
            &[inbox, ("WEBHOOK_SECRET", published)],
            "WEBHOOK_SECRET: this secret is published",
        ),
    ] {
        let said = Example::refused("durable_inbox", variables);
        says(&said, expected);
    }
    let mut example = Example::start_with("durable_inbox", &["--try"], &[inbox]);
    example.line_with("anyone can sign with it");
    let page = row_created("evt_try", "{}");
    assert_eq!(example.deliver(published, &page).status, 200);
}

#[test]
fn durable_inbox_handles_what_it_has_answered_whatever_kills_it() {
    let folder = Folder::new();
    let file = folder.path().join("inbox.db");
    let start = |takes| {
        let inbox = file.to_str().unwrap();
        let variables = [
            ("WEBHOOK_SECRET", own_secret()),
            ("INBOX", inbox),
            ("TAKES_MS", takes),
        ];
        Example::start("durable_inbox", &variables)
    };
    let order = |number: u32| {
        let properties = r#"{"Customer":"Ada","Total":12.50}"#;
        row_created(&format!("evt_{number}"), properties).replace("dm_1", "dm_orders")
    };
    // Handlers that take longer than any sender waits.
    let mut slow = start("600000");
    for number in 0..12 {
        assert_eq!(slow.deliver(own_secret(), &order(number)).status, 200);
    }
    let copy = slow.deliver(own_secret(), &order(3));
    assert!(copy.is_replay(), "{copy:?}");
    assert_eq!(
        slow.deliver("whsec_made_up_and_another", &order(99)).status,
        401
    );
    assert_eq!(slow.count_lines_with("ordered"), 0);
    // Killed, with eight of them begun and four waiting.
    drop(slow);

    let mut next = start("0");
    for number in 0..12 {
        next.line_with(&format!("evt_{number}: Ada ordered for 12.50"));
    }
    assert!(next.deliver(own_secret(), &order(3)).is_replay());
    assert_eq!(next.deliver(own_secret(), &order(12)).status, 200);
    next.line_with("evt_12: Ada ordered");
    assert_eq!(next.count_lines_with("ordered"), 13, "each once");
    // One that does not fit is tried again later, and waits in the file meanwhile.
    let mismatch = order(13).replace("12.50", "\"twelve\"");
    assert_eq!(next.deliver(own_secret(), &mismatch).status, 200);
    next.line_with("evt_13 failed: Retry");
    let held = next.held_open(own_secret());
    assert!(next.terminate(), "ends well when it is told to");
    next.line_with("stopped, 0 given back, 1 left to do");
    drop(held);
}

/// The URL is all that decides: no example has a line for servers without TLS, and another one for
/// those with it.
#[test]
fn the_examples_speak_tls_where_their_url_asks_for_it() {
    let certificates = Certificates::new();
    let postgres = needed!(certificates.postgres());
    let authority = certificates.path("authority.pem");
    let postgres = format!(
        "postgres://hookgate@localhost:{}/postgres?sslmode=verify-full&sslrootcert={authority}",
        postgres.server.address.port(),
    );
    let secret = ("WEBHOOK_SECRET", own_secret());
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
