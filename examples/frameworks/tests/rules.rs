//! The common behaviour of the examples that listen themselves.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::LedgerFile;
use crate::process::{Example, own_secret, row_created, signed};

fn order(id: &str) -> String {
    row_created(id, r#"{"Customer":"Ada ✓"}"#)
}

/// One run for one event, none for a delivery that is not authentic, and another try for a run that
/// failed.
pub(crate) fn check_the_rules(name: &str) {
    let ledger = LedgerFile::missing(name);
    let path = ledger.path();
    let mut example = Example::start(name, &[("WEBHOOK_SECRET", own_secret()), ("LEDGER", &path)]);

    // The folder is missing: the run fails, and only the operator sees the reason.
    let failed = example.deliver(own_secret(), &order("evt_1"));
    assert_eq!((failed.status, &*failed.body), (500, ""));
    example.line_with("No such file");
    ledger.make();
    assert_eq!(example.deliver(own_secret(), &order("evt_1")).status, 204);
    let again = example.deliver(own_secret(), &order("evt_1"));
    assert!(again.is_replay(), "{again:?}");
    assert_eq!(ledger.lines(), ["evt_1 Ada ✓"]);

    let headers = signed(own_secret(), &order("evt_2"), 0);
    let changed = order("evt_2").replace("row_1", "row_2");
    let changed = example.send("POST", "/webhooks", &headers, &changed);
    assert_eq!(changed.status, 401);
    assert!(changed.has("content-type: application/json"), "{changed:?}");
    let stale = signed(own_secret(), &order("evt_2"), 301);
    let stale = example.send("POST", "/webhooks", &stale, &order("evt_2"));
    assert_eq!((stale.status, &stale.body), (401, &changed.body));
    let mut doubled = headers.clone();
    doubled.push(headers[2].clone());
    let doubled = example.send("POST", "/webhooks", &doubled, &order("evt_2"));
    assert_eq!((doubled.status, &doubled.body), (401, &changed.body));
    // It may come in chunks.
    assert!(changed.body.contains(r#"{"error":{"code":"UNAUTHORIZED""#));

    let misfit = row_created("evt_3", r#"{"Customer":7}"#);
    assert_eq!(example.deliver(own_secret(), &misfit).status, 422);
    example.line_with("Customer does not fit");
    let get = example.send("GET", "/webhooks", &[], "");
    assert_eq!(get.status, 405);
    assert!(get.has("allow: post"), "{get:?}");
    // No body follows: the delivery is refused on its head alone.
    let mut stream = TcpStream::connect(&example.address).unwrap();
    let head = "POST /webhooks HTTP/1.1\r\nhost: a\r\ncontent-length: 1048577\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut status = [0; 12];
    std::io::Read::read_exact(&mut stream, &mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 413");
    assert_eq!(ledger.lines().len(), 1);
}

/// The sender closes the connection before the handler is done.
pub(crate) fn check_a_hang_up(name: &str) {
    // A busy machine may not begin the run in half a second.
    let is_run = [500, 5_000]
        .into_iter()
        .any(|millis| runs_after_a_hang_up(name, millis));
    assert!(is_run, "the run was cut off");
}

/// The sender waits for so long, the handler takes three times as long.
fn runs_after_a_hang_up(name: &str, millis: u64) -> bool {
    let ledger = LedgerFile::made(&format!("{name}-hang-up-{millis}"));
    let (path, takes) = (ledger.path(), (3 * millis).to_string());
    let variables = [
        ("WEBHOOK_SECRET", own_secret()),
        ("LEDGER", &*path),
        ("LEDGER_MILLIS", &*takes),
    ];
    let example = Example::start(name, &variables);
    let body = order("evt_1");
    let mut stream = TcpStream::connect(&example.address).unwrap();
    let mut head = format!(
        "POST /webhooks HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in signed(own_secret(), &body, 0) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream
        .write_all(format!("{head}\r\n{body}").as_bytes())
        .unwrap();
    std::thread::sleep(Duration::from_millis(millis));
    let is_under_way = ledger.lines().is_empty();
    drop(stream);
    let until = Instant::now() + Duration::from_secs(60);
    while ledger.lines().is_empty() {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // It may not be committed yet; a copy waits for the commit.
    assert!(example.deliver(own_secret(), &body).is_replay());
    assert_eq!(ledger.lines(), ["evt_1 Ada ✓"]);
    is_under_way
}

/// A handler that takes longer than the sender waits, a concurrent copy, and a server that is
/// stopped meanwhile.
#[cfg(unix)]
pub(crate) fn check_a_late_run(name: &str) {
    // A busy machine may need longer for the answers than the handler for its run.
    let is_late = [8_000, 13_000]
        .into_iter()
        .any(|millis| is_answered_before_a_late_run_ends(name, millis));
    assert!(is_late, "the answers waited for the run");
}

#[cfg(unix)]
fn is_answered_before_a_late_run_ends(name: &str, millis: u64) -> bool {
    let ledger = LedgerFile::made(&format!("{name}-late-{millis}"));
    let (path, takes) = (ledger.path(), millis.to_string());
    let variables = [
        ("WEBHOOK_SECRET", own_secret()),
        ("LEDGER", &*path),
        ("LEDGER_MILLIS", &*takes),
    ];
    let mut example = Example::start(name, &variables);
    let body = order("evt_1");
    let copies = std::thread::scope(|scope| {
        let deliver = || example.deliver(own_secret(), &body);
        let copies = [scope.spawn(deliver), scope.spawn(deliver)];
        copies.map(|copy| copy.join().unwrap())
    });
    for copy in copies {
        assert_eq!(copy.status, 503, "{copy:?}");
        assert!(copy.body.contains(r#""code":"INTERNAL_ERROR""#), "{copy:?}");
    }
    let is_under_way = ledger.lines().is_empty();
    assert!(example.terminate());
    example.line_with("stopped, 0 runs aborted");
    assert_eq!(ledger.lines(), ["evt_1 Ada ✓"]);
    is_under_way
}

macro_rules! frameworks {
    ($($name:ident),*) => {$(
        mod $name {
            #[test]
            fn handles_once_what_is_authentic_and_fresh() {
                super::check_the_rules(stringify!($name));
            }

            #[test]
            fn a_hang_up_ends_no_run() {
                super::check_a_hang_up(stringify!($name));
            }

            #[cfg(unix)]
            #[test]
            fn a_late_run_is_answered_503_and_ends_before_the_server_does() {
                super::check_a_late_run(stringify!($name));
            }
        }
    )*};
}

frameworks!(actix_web, poem, tonic);
