//! The example `shared_claims`, twice over one Redis.

use crate::process::{Example, own_secret, row_created};
use crate::support::{Certificates, RedisServer, free_port, needed, says};

fn start(redis: &str) -> Example {
    Example::start(
        "shared_claims",
        &[("WEBHOOK_SECRET", own_secret()), ("REDIS_URL", redis)],
    )
}

#[test]
fn two_replicas_share_their_claims_and_outlive_redis_and_themselves() {
    let always = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut server = needed!(RedisServer::start(&always));
    let (mut first, mut second) = (start(&server.url()), start(&server.url()));
    first.line_with("redis: memory has no limit");
    let body = row_created("evt_1", "{}");
    assert_eq!(first.deliver(own_secret(), &body).status, 204);
    assert!(second.deliver(own_secret(), &body).is_replay());
    assert!(first.deliver(own_secret(), &body).is_replay());
    first.line_with("evt_1 row.created runs here");
    assert_eq!(second.count_lines_with("runs here"), 0);

    // Redis stops: refused, not lost. It comes back, and no restart is needed.
    server.server.kill();
    let other = row_created("evt_2", "{}");
    assert_eq!(second.deliver(own_secret(), &other).status, 503);
    server.restart();
    while second.deliver(own_secret(), &other).status == 503 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(first.deliver(own_secret(), &other).is_replay());
    // A replica goes, a new one takes its place.
    drop(first);
    let third = start(&server.url());
    assert!(third.deliver(own_secret(), &body).is_replay());
}

#[test]
fn it_says_why_it_does_not_start() {
    let server = needed!(RedisServer::start(&[]));
    let secret = ("WEBHOOK_SECRET", own_secret());
    let (url, strict) = (server.url(), ("STRICT", "1"));
    let refused = Example::refused("shared_claims", &[secret, strict, ("REDIS_URL", &url)]);
    says(&refused, "set appendonly to yes");
    let nobody = format!("redis://127.0.0.1:{}", free_port());
    let refused = Example::refused("shared_claims", &[secret, ("REDIS_URL", &nobody)]);
    says(&refused, "Redis can't be reached");
}

/// The URL is all that decides: the example has no line for servers without TLS, and another one
/// for those with it.
#[test]
fn the_example_speaks_tls_where_its_url_asks_for_it() {
    let certificates = Certificates::new();
    let redis = needed!(certificates.redis());
    let authority = certificates.path("authority.pem");
    let url = format!("rediss://localhost:{}", redis.server.address.port());
    let variables = [
        ("WEBHOOK_SECRET", own_secret()),
        ("REDIS_URL", &url),
        ("SSL_CERT_FILE", &authority),
    ];
    let example = Example::start("shared_claims", &variables);
    let deliver = || example.deliver(own_secret(), &row_created("evt_1", "{}"));
    // Handshakes take a busy machine long.
    let mut answers = (0..100).map(|_| deliver().status);
    assert_eq!(answers.find(|status| *status != 503), Some(204));
    assert!(deliver().is_replay());
}
