//! Each exit code, and the output that goes with it. The exit code of a panic is tested beside the hook:
//! `crates/cli/src/panics.rs`.

use std::io::Read as _;
use std::net::TcpListener;
use std::process::Stdio;

#[cfg(unix)]
use super::Scratch;
use super::https::{self, AUTHORITY};
use super::{PATIENCE, Ran, SECRET, ends, hookgate};

#[test]
fn exit_0_and_1_are_the_answer() {
    let ran = Ran::of(&["doctor"]);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    let ran = Ran::of(&["doctor", "--retention", "1h"]);
    assert_eq!(
        (ran.code, &*ran.stderr),
        (Some(1), ""),
        "told on standard output"
    );
}

#[test]
fn exit_2_is_a_wrong_command_line() {
    for (wrong, named) in [
        (&["doctor", "--retention", "48"][..], "unit"),
        (&["doctor", "--rate=-1"], "0.000001"),
        (&["doctor", "--rate", "nan"], "0.000001"),
        (
            &["doctor", "--url", "localhost:8080/webhooks"],
            "http://localhost:8080/webhooks",
        ),
        (&["doctor", "--url", "/webhooks"], "http://"),
        (
            &["doctor", "--url", "ftp://localhost/"],
            "neither http nor https",
        ),
        (&["doctor", "--url", "http:///webhooks"], "not a URL"),
        (&["doctor", "--url", "two words"], "not a URL"),
        (&["listen", "--port", "8080"], "--addr 127.0.0.1:8787"),
        (
            &["send", "row.created", "--secret", SECRET],
            "a secret never comes as an argument",
        ),
        (
            &["sign", "--secret", SECRET, "--json"],
            "set WEBHOOK_SECRET",
        ),
    ] {
        let ran = Ran::of(wrong);
        assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.contains(named), "{named}: {ran:?}");
    }
    let ran = Ran::of(&["--json", "doctor", "--url", "https://me:hunter2@localhost/"]);
    assert_eq!(ran.code, Some(2));
    assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
    ran.fault();
}

#[test]
fn exit_3_is_what_cannot_be_read() {
    let ran = Ran::of(&["--json", "doctor", "--log", "/nowhere/log.jsonl"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(3), ""));
    let error = ran.fault()["error"].as_str().unwrap().to_owned();
    assert!(error.contains("/nowhere/log.jsonl"), "{error}");
}

// fault E4: one host that does not answer hides the results of all other checks
#[test]
fn exit_4_is_a_host_that_does_not_answer() {
    for (url, advice) in [
        ("http://127.0.0.1:1/webhooks", "is the receiver running"),
        ("http://no-such-host.invalid/", "check the host's name"),
    ] {
        let ran = Ran::of(&["--json", "doctor", "--url", url]);
        assert_eq!(ran.code, Some(4), "{ran:?}");
        // The other checks are reported all the same.
        let report = ran.json();
        let checks = report["checks"].as_array().unwrap();
        let of = |name: &str| checks.iter().find(|check| check["check"] == name);
        assert_eq!(of("retention").unwrap()["verdict"], "ok", "{report}");
        let clock = of("clock by URL").unwrap();
        assert_eq!(clock["verdict"], "not_measured", "{clock}");
        assert!(
            clock["says"]
                .as_str()
                .unwrap()
                .starts_with("no answer from"),
            "{clock}"
        );
        let fault = ran.fault();
        assert!(
            fault["advice"].as_str().unwrap().contains(advice),
            "{fault}"
        );
        // Without the parts that say no more than that it is an error of a client.
        let error = fault["error"].as_str().unwrap();
        assert!(!error.contains("client error"), "{error}");
        assert!(!error.contains("tcp connect error"), "{error}");
    }
    // The text output says the same.
    let ran = Ran::of(&["doctor", "--url", "http://127.0.0.1:1/webhooks"]);
    assert!(
        ran.stderr
            .starts_with("hookgate: no answer from 127.0.0.1:"),
        "{ran:?}"
    );
    assert!(
        ran.stderr.contains("\n  is the receiver running"),
        "{ran:?}"
    );
}

/// A command line, its exit code, the parts of its message, and a text that the message lacks.
#[cfg(unix)]
const MISTAKES: &str = "
sign --body /dev/null --secret-file /nowhere/secret | 3 | the secret in /nowhere/secret can't be read: No such file & check the path | can't be right
listen --secret-file /nowhere/secret                | 3 | the secret in /nowhere/secret can't be read: No such file & check the path | can't be right
api list models --url http://127.0.0.1:1/api/v1 --key-file /nowhere/secret | 3 | the secret in /nowhere/secret can't be read | can't be right
sign --body /dev/null --secret-env UNSET            | 5 | no secret is given: UNSET: the environment variable is not set & set it | can't be right
sign --body /dev/null --secret-env UNPREFIXED       | 5 | does not start with whsec_ & --any-secret | ::
doctor --secret-env UNPREFIXED                      | 1 | does not start with whsec_ & --any-secret | ::
listen --addr foo                                   | 2 | '--addr <HOST:PORT>': write HOST:PORT, such as 127.0.0.1:8787 | can't listen
listen --addr 127.0.0.1:65536                       | 2 | '--addr <HOST:PORT>': write HOST:PORT | can't listen
listen --addr :8787                                 | 2 | '--addr <HOST:PORT>': write HOST:PORT | can't listen
listen --addr ::1                                   | 2 | '--addr <HOST:PORT>': write HOST:PORT, such as 127.0.0.1:8787 or [::1]:8787 | can't listen
emulate --addr fe80::1                              | 2 | '--addr <HOST:PORT>': write HOST:PORT | can't listen
listen --addr 127.0.0.1:+80                         | 2 | '--addr <HOST:PORT>': write HOST:PORT | can't listen
listen --page foo                                   | 2 | '--page [<HOST:PORT>]': write HOST:PORT | can't listen
emulate --addr foo                                  | 2 | '--addr <HOST:PORT>': write HOST:PORT | can't listen
listen --addr TAKEN  | 4 | can't listen on TAKEN: Address already in use & something listens there already: --addr 127.0.0.1:0 takes a free port | HOST
emulate --addr TAKEN | 4 | can't listen on TAKEN: Address already in use & something listens there already: --addr 127.0.0.1:0 takes a free port | HOST
send --to http://127.0.0.1:1/                       | 2 | no event type is given & row.created, row.updated, & member.removed; or & --body FILE | EVENT_TYPE
send row.created --to 127.0.0.1:1                   | 2 | write it whole | panicked
send row.created --to ftp://x/                      | 2 | write it whole | panicked
send row.created NOWHERE --set=Total                | 2 | write --set data.properties.Total=12.50 | panicked
send row.created NOWHERE --set=id.x=1               | 2 | neither an object nor a list | panicked
send row.created NOWHERE --age=soon                 | 2 | 500ms, 30s | panicked
send row.created NOWHERE --age=99999d               | 2 | before 1970 | panicked
send row.created NOWHERE --repeat=0                 | 2 | 0 is not in 1.. | panicked
send row.created NOWHERE --header=x                 | 2 | write NAME: VALUE | panicked
send row.created NOWHERE --subscription=a\\nb        | 2 | fits no header | panicked
send row.created NOWHERE --body=-                   | 2 | cannot be used with | panicked
simulate                                            | 2 | --to | panicked
simulate --to=/hooks                                | 2 | write it whole | panicked
simulate NOWHERE --attempts=4                       | 2 | 5..=6 | panicked
simulate NOWHERE --rate=0                           | 2 | from 0.000001 | panicked
simulate NOWHERE --rate=nan                         | 2 | from 0.000001 | panicked
simulate NOWHERE --speed=0                          | 2 | 1.. | panicked
simulate NOWHERE --duration=5                       | 2 | a number and its unit | panicked
simulate NOWHERE --refused=101                      | 2 | from 0 to 100 | panicked
simulate NOWHERE --data-model=dm_x                  | 2 | dm_orders | panicked
simulate NOWHERE --subscription=a\\nb               | 2 | no such subscription can be | panicked
api list models --url http://127.0.0.1:1            | 2 | the address of the API has no path & whose path ends in /api/v1 |  id
reconcile --model m --url http://127.0.0.1:1/       | 2 | the address of the API has no path & whose path ends in /api/v1 |  id
log list NO_LOG                                     | 3 | line 1 of the log is not a delivery & one delivery a line | LINE
log show NO_LOG 1                                   | 3 | line 1 of the log is not a delivery & one delivery a line | incomplete
reconcile --model m --url http://127.0.0.1:1/api/v1 --mirror /nowhere/m.db | 3 | the mirror /nowhere/m.db can't be read: No such file & docs/reconciliation.md | may not
";

#[cfg(unix)]
// fault X4: a mirror that does not exist is said to be a file that may not be written
// fault X5: a secret's file that can't be read ends with the code of a wrong secret, and a wrong address on the command line with that of the network
// fault X6: a message of the command names a function of the library, or an argument in place of the event types
// fault X9: an address of the API without its path is answered 404, and the advice is to check an id
// fault X10: a file that is no log and has no line break passes for a log whose last line is incomplete
// fault X11: an IPv6 address without brackets passes for a host with a port, and the command ends with the code of the network
#[test]
fn each_mistake_has_the_exit_code_of_its_kind_and_names_the_way_out() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let no_log = Scratch::file("no-log.json", br#"{"id":"evt_1","type":"row.created"}"#);
    for mistake in MISTAKES.trim().lines() {
        let mistake = mistake
            .replace("TAKEN", &taken)
            .replace("NOWHERE", "--to=http://127.0.0.1:1/")
            .replace("NO_LOG", no_log.path());
        let cells: Vec<_> = mistake.split(" | ").collect();
        let [arguments, code, says, lacks] = cells[..] else {
            panic!("{mistake}")
        };
        let arguments: Vec<_> = arguments.split_whitespace().collect();
        let arguments: Vec<_> = arguments.iter().map(|it| it.replace("\\n", "\n")).collect();
        let mut command = hookgate(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        command
            .env("WEBHOOK_SECRET", SECRET)
            .env("HOOKGATE_API_KEY", "tk_test_admin")
            .env("UNPREFIXED", "made_up_for_the_command");
        let ran = Ran::to_its_end(&mut command);
        assert_eq!(ran.code, code.parse().ok(), "{mistake}: {ran:?}");
        let told = format!("{}{}", ran.stdout, ran.stderr);
        for part in says.split(" & ") {
            assert!(told.contains(part.trim()), "{part}: {told}");
        }
        assert!(!told.contains(lacks) && !told.contains(SECRET), "{told}");
    }
}

const ANSWER: &str = "HTTP/1.1 405 Method Not Allowed\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: close\r\n\r\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_https_an_authority_must_be_trusted_and_one_that_is_named_is() {
    let port = https::serve(ANSWER).await;
    let url = format!("https://localhost:{port}/webhooks");
    let ask = |trusting: &str| {
        let mut command = hookgate(&["--json", "doctor", "--url", &url]);
        command.env("SSL_CERT_FILE", trusting);
        tokio::task::spawn_blocking(move || Ran::to_its_end(&mut command))
    };
    // The clock of 1994 is bad, and the certificate good.
    let ran = ask(AUTHORITY).await.unwrap();
    assert_eq!((ran.code, &*ran.stderr), (Some(1), ""), "{ran:?}");
    assert!(ran.stdout.contains(&format!("localhost:{port}")), "{ran:?}");
    // An authority that has not signed the certificate.
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tls/server.pem");
    let ran = ask(other).await.unwrap();
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(
        ran.fault()["advice"]
            .as_str()
            .unwrap()
            .contains("SSL_CERT_FILE"),
        "{ran:?}"
    );
    // No certificates at all.
    let ran = ask("/nowhere/certificates.pem").await.unwrap();
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(
        ran.fault()["advice"]
            .as_str()
            .unwrap()
            .contains("ca-certificates"),
        "{ran:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_http_asks_for_no_certificates() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 1_024];
        let read = stream.read(&mut request).await.unwrap();
        assert!(request[..read].starts_with(b"HEAD / HTTP/1.1\r\n"));
        stream.write_all(ANSWER.as_bytes()).await.unwrap();
    });
    let mut command = hookgate(&["doctor", "--url", &url]);
    command
        .env("SSL_CERT_FILE", "/nowhere/certificates.pem")
        .env("SSL_CERT_DIR", "/nowhere");
    let asked = tokio::task::spawn_blocking(move || Ran::to_its_end(&mut command));
    let ran = asked.await.unwrap();
    assert_eq!((ran.code, &*ran.stderr), (Some(1), ""), "{ran:?}");
}

/// A command without its secret ends with exit code 5; `doctor` merely reports that it has none.
#[test]
fn a_secret_on_the_command_line_is_not_understood() {
    for option in ["--secret", "--key", "--token"] {
        let ran = Ran::of(&["doctor", option, SECRET]);
        assert_eq!(ran.code, Some(2), "{option}");
        assert!(!ran.stderr.contains(SECRET), "{ran:?}");
    }
}

#[cfg(unix)]
#[test]
fn exit_130_is_ctrl_c() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut child = hookgate(&["doctor", "--url", &url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The command has asked, and waits for an answer that never comes.
    let (mut asked, _) = listener.accept().unwrap();
    let mut request = [0; 16];
    asked.read_exact(&mut request).unwrap();
    crate::process::signal(&child, "INT");
    assert_eq!(ends(&mut child).code(), Some(130));
    let mut said = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(said, "", "whoever pressed it knows");
}

/// The prompt takes Ctrl-C over, and hands it to the code that runs after it.
#[cfg(unix)]
#[test]
fn ctrl_c_lets_what_is_under_way_end_also_after_a_secret_was_typed() {
    use crate::server::free_port;
    use crate::terminal::Terminal;
    use rustix::process::Signal;

    let address = format!("127.0.0.1:{}", free_port());
    let arguments = ["listen", "--addr", &address, "--delay", "4s"];
    let mut terminal = Terminal::start(&arguments, &[], (24, 100));
    terminal.shows(&["(not shown): "]);
    // The prompt appears before the terminal is set to hide the input.
    let shown = std::time::Instant::now();
    while terminal.is_cooked() {
        assert!(shown.elapsed() < PATIENCE, "the input is not hidden");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    terminal.press(&format!("{SECRET}\n"));
    terminal.shows(&[&address]);
    let url = format!("http://{address}/webhooks");
    let mut sender = hookgate(&["send", "row.created", "--to", &url])
        .env("WEBHOOK_SECRET", SECRET)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert!(sender.try_wait().unwrap().is_none(), "it waits");
    terminal.signal(Signal::INT);
    assert_eq!(ends(&mut sender).code(), Some(0), "it was answered");
    assert_eq!(terminal.end().code(), Some(130));
    terminal.assert_whole();
}
