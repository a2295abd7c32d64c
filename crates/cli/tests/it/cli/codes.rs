//! Each exit code, and the output that goes with it. The exit code of a panic is tested beside the
//! hook: `crates/cli/src/panics.rs`.

use std::io::Read as _;
use std::net::TcpListener;

use super::https::{self, AUTHORITY};
#[cfg(unix)]
use super::{PATIENCE, Scratch};
use super::{Ran, SECRET, ends, hookgate, typed};

#[test]
fn exit_0_and_1_are_the_answer() {
    Ran::of(&["doctor"]).ends(0).warns_of_nothing();
    // Told on standard output.
    Ran::of(&["doctor", "--retention", "1h"])
        .ends(1)
        .warns_of_nothing();
}

// fault E4: one host that does not answer hides the results of all other checks
#[test]
fn exit_4_is_a_host_that_does_not_answer() {
    for (url, advice) in [
        ("http://127.0.0.1:1/webhooks", "is the receiver running"),
        ("http://no-such-host.invalid/", "check the host's name"),
    ] {
        let ran = Ran::of(&["--json", "doctor", "--url", url]).ends(4);
        // The other checks are reported all the same.
        let report = ran.json();
        let checks = report["checks"].as_array().unwrap();
        let of = |name: &str| checks.iter().find(|check| check["check"] == name).unwrap();
        assert_eq!(of("retention")["verdict"], "ok", "{report}");
        let clock = of("clock by URL");
        assert_eq!(clock["verdict"], "not_measured", "{clock}");
        let says = clock["says"].as_str().unwrap();
        assert!(says.starts_with("no answer from"), "{says}");
        assert!(ran.fault().contains(advice), "{ran:?}");
        // Without the parts that say no more than that it is an error of a client.
        ran.lacks(&["client error", "tcp connect error"]);
    }
    // The text output says the same.
    let ran = Ran::of(&["doctor", "--url", "http://127.0.0.1:1/webhooks"]);
    let told = "hookgate: no answer from 127.0.0.1:";
    assert!(ran.stderr.starts_with(told), "{ran:?}");
    ran.tells(&["\n  is the receiver running"]);
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
listen --addr foo                                   | 2 | 'foo' for '--addr <HOST:PORT>': write HOST:PORT, such as 127.0.0.1:8787 | can't listen
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
send row.created --to 127.0.0.1:1                   | 2 | write it whole
send row.created --to ftp://x/                      | 2 | write it whole
send row.created NOWHERE --set=Total                | 2 | write --set data.properties.Total=12.50
send row.created NOWHERE --set=id.x=1               | 2 | neither an object nor a list
send row.created NOWHERE --age=soon                 | 2 | 500ms, 30s
send row.created NOWHERE --age=99999d               | 2 | before 1970
send row.created NOWHERE --repeat=0                 | 2 | 0 is not in 1..
send row.created NOWHERE --header=x                 | 2 | write NAME: VALUE
send row.created NOWHERE --subscription=a\\nb        | 2 | fits no header
send row.created NOWHERE --body=-                   | 2 | cannot be used with
simulate                                            | 2 | --to
simulate --to=/hooks                                | 2 | write it whole
simulate NOWHERE --attempts=4                       | 2 | 5..=6
simulate NOWHERE --rate=0                           | 2 | from 0.000001
simulate NOWHERE --rate=nan                         | 2 | from 0.000001
simulate NOWHERE --speed=0                          | 2 | 1..
simulate NOWHERE --duration=5                       | 2 | a number and its unit
simulate NOWHERE --refused=101                      | 2 | from 0 to 100
simulate NOWHERE --data-model=dm_x                  | 2 | dm_orders
simulate NOWHERE --subscription=a\\nb               | 2 | no such subscription can be
api list models --url http://127.0.0.1:1            | 2 | the address of the API has no path & whose path ends in /api/v1 |  id
log list NO_LOG                                     | 3 | line 1 of the log is not a delivery & one delivery a line | LINE
log show NO_LOG 1                                   | 3 | line 1 of the log is not a delivery & one delivery a line | incomplete
doctor --retention 48                | 2 | unit
doctor --rate=-1                     | 2 | 0.000001
doctor --rate nan                    | 2 | 0.000001
doctor --url localhost:8080/webhooks | 2 | http://localhost:8080/webhooks
doctor --url /webhooks               | 2 | http://
doctor --url ftp://localhost/        | 2 | neither http nor https
doctor --url http:///webhooks        | 2 | not a URL
doctor --url two~words               | 2 | not a URL
doctor --url https://me:hunter2@localhost/ | 2 | URL | hunter2
doctor --log /nowhere/log.jsonl      | 3 | /nowhere/log.jsonl
listen --port 8080                   | 2 | --addr 127.0.0.1:8787
send row.created --secret SECRET     | 2 | a secret never comes as an argument
sign --secret SECRET --json          | 2 | set WEBHOOK_SECRET
listen --secret-env NO_SUCH_VARIABLE | 5 | NO_SUCH_VARIABLE & set it
LISTEN --forward localhost:3000      | 2 | not a URL to deliver to & http://localhost:8080/webhooks
LISTEN --record /no/such/directory/log.jsonl | 3 | can't be recorded to & a directory that exists
LISTEN --page 0.0.0.0:0              | 2 | reached from other machines & --page alone
LISTEN --page no.such.host.invalid:1 | 4 | the page can't listen & check the host
LISTEN --path webhooks               | 2 | --path & begins with /
LISTEN --path /a?b                   | 2 | --path & no query
LISTEN --status 100                  | 2 | --status & 200 to 599
LISTEN --status 204 --body x         | 2 | an answer 204 has no body & --body
LISTEN --events row.created,~x       | 2 | --events & without blanks
LISTEN --events row.creatd           | 2 | --events & mean row.created?
LISTEN --events row.created,row      | 2 | --events & mean row.*?
LISTEN --header content-length:~3    | 2 | --header & content-length is the connection's own
LISTEN --header Transfer-Encoding:~chunked | 2 | --header & transfer-encoding is the connection's own
LISTEN --forward-timeout 0s          | 2 | --forward-timeout & 10s or 500ms
LISTEN --header X:~1                 | 2 | --forward & required
LISTEN --log x.jsonl                 | 2 | --page & required
LISTEN --page --log /no/such/log.jsonl | 3 | can't be read & `hookgate listen`, with --record
LISTEN --delay 6                     | 2 | --delay & 30s
LISTEN --status 500 --forward http://localhost:1/ | 2 | cannot be used with & --status
verify                               | 2 | no delivery is given & --headers FILE
verify --headers none.txt            | 3 | the headers in none.txt can't be read & check the path
verify --headers HEAD                | 2 | no body & --body FILE
verify --headers - --body -          | 2 | can't both come from standard input & whole request
verify --headers NO_HEAD             | 3 | line 2: that is not a header & Name: value
verify --log none.jsonl              | 3 | the log none.jsonl can't be read
verify --headers HEAD --at yesterday | 2 | ISO 8601
verify --line 1                      | 2 | --log
explain                              | 2 | no delivery is given & --headers FILE
explain --headers none.txt           | 3 | the headers in none.txt can't be read & check the path
explain --headers HEAD               | 2 | no body & --body FILE
explain --headers - --body -         | 2 | can't both come from standard input & whole request
explain --headers NO_HEAD            | 3 | line 2: that is not a header & Name: value
explain --log none.jsonl             | 3 | the log none.jsonl can't be read
explain --headers HEAD --at yesterday | 2 | ISO 8601
explain --line 1                     | 2 | --log
explain --headers HEAD --body HEAD --secret-env UNSET  | 5 | the environment has no UNSET
explain --headers HEAD --body HEAD --secret-file none  | 3 | the secret in none can't be read
explain --headers HEAD --body HEAD --other-file none   | 3 | the secret in none can't be read
sign --body none.json                | 3 | the body in none.json can't be read
sign --body HEAD --at 0              | 2 | no timestamp can be written for
replay HEAD --to http://127.0.0.1:1/ --secret-env UNSET | 5 | UNSET
replay /no/such/log NOWHERE          | 3 | can't be opened
replay NO_LOG NOWHERE                | 3 | line 1 of the log is not a delivery
replay NO_LOG --to localhost         | 2 | write it whole
replay NO_LOG                        | 2 | --to
replay NO_LOG NOWHERE --rate=0       | 2 | from 0.000001
replay NO_LOG NOWHERE --rate=1e-300  | 2 | from 0.000001
replay NO_LOG NOWHERE --concurrency=0 | 2 | 1..
replay NO_LOG NOWHERE --seed=1       | 2 | --reorder
replay NO_LOG NOWHERE --duplicate 4294967295 | 2 | --duplicate
emulate --switch rateLimit=never     | 2 | on, off
emulate --switch rateLimit           | 2 | NAME=VALUE
emulate --switch none=on             | 2 | expected one of apiEmits
emulate --fault none=1               | 2 | expected one of altered-byte
emulate --fault stale=0              | 2 | at least 1
emulate --fault stale=many           | 2 | FAULT=seed:N
emulate --addr 0.0.0.0:0             | 2 | --expose
log list NO_LOG --status four        | 2 | --status
log show NO_LOG 2 --line 2           | 2 | cannot be used with
log show NO_LOG                      | 2 | required
log show NO_LOG 2 --id evt_2         | 2 | cannot be used with
log show NO_LOG --line 2 --id evt_2  | 2 | cannot be used with
log curl NO_LOG 2 --line 2           | 2 | cannot be used with
log curl NO_LOG                      | 2 | required
log curl NO_LOG 2 --id evt_2         | 2 | cannot be used with
log curl NO_LOG --line 2 --id evt_2  | 2 | cannot be used with
";

/// The same of commands that a feature brings.
#[cfg(all(unix, feature = "sqlite"))]
const MISTAKES_OF_SQLITE: &str = "
reconcile --model m --url http://127.0.0.1:1/       | 2 | the address of the API has no path & whose path ends in /api/v1 |  id
reconcile --model m --url http://127.0.0.1:1/api/v1 --mirror /nowhere/m.db | 3 | the mirror /nowhere/m.db can't be read: No such file & docs/reconciliation.md | may not
inbox stats                                  | 2 | --db
inbox stats --db a.db --database-url-env URL | 2 | cannot be used with
inbox retry --db a.db                        | 2 | --all
inbox dead-letter --db a.db --reason made-up | 2 | --event-id
inbox dead-letter --db a.db --entry 1        | 2 | --reason
inbox purge --db a.db --yes                  | 2 | --all
inbox list --db a.db --state lost            | 2 | --state
inbox list --db a.db --limit 0               | 2 | --limit
inbox show --db a.db -1                      | 2 | -1
inbox show --db a.db evt_1                   | 2 | evt_1
inbox retry --db a.db --state running        | 2 | running
inbox retry --db a.db --state done           | 2 | done
inbox list --db a.db --older-than 5          | 2 | --older-than
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
    let head = Scratch::file("head.txt", b"X-A: 1\n");
    let no_head = Scratch::file("no-head.txt", b"X-A: 1\nnonsense\n");
    let mistakes = MISTAKES.trim().lines();
    #[cfg(feature = "sqlite")]
    let mistakes = mistakes.chain(MISTAKES_OF_SQLITE.trim().lines());
    for mistake in mistakes {
        let mistake = mistake
            .replace("TAKEN", &taken)
            .replace("NOWHERE", "--to=http://127.0.0.1:1/")
            .replace("LISTEN", "listen --addr 127.0.0.1:0")
            .replace("NO_LOG", no_log.path())
            .replace("NO_HEAD", no_head.path())
            .replace("HEAD", head.path())
            .replace("--secret SECRET", &format!("--secret {SECRET}"));
        let cells: Vec<_> = mistake.split(" | ").collect();
        let [line, code, says, ref lacks @ ..] = cells[..] else {
            panic!("{mistake}")
        };
        let run = |json: &str| {
            let mut command = typed(&format!("{json}{line}"));
            command.env("HOOKGATE_API_KEY", "tk_test_admin");
            Ran::to_its_end(command.env("UNPREFIXED", "made_up_for_the_command"))
        };
        let ran = run("");
        assert_eq!(ran.code, code.trim().parse().ok(), "{mistake}: {ran:?}");
        let told = format!("{}{}", ran.stdout, ran.stderr);
        for part in says.split(" & ") {
            assert!(told.contains(part.trim()), "{mistake}: {part}: {told}");
        }
        ran.lacks(lacks).lacks(&[SECRET]);
        if ran.code != Some(1) {
            ran.prints_nothing();
            // A program reads the same.
            let json = run("--json ");
            assert_eq!(json.lacks(&[SECRET]).code, ran.code, "{mistake}");
            if ran.stderr.lines().count() > 1 {
                json.fault();
            }
        }
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
    let ran = ask(AUTHORITY).await.unwrap().ends(1).warns_of_nothing();
    ran.says(&[&format!("localhost:{port}")]);
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tls/server.pem");
    for (trusting, advice) in [
        // An authority that has not signed the certificate, and no certificates at all.
        (other, "SSL_CERT_FILE"),
        ("/nowhere/certificates.pem", "ca-certificates"),
    ] {
        let fault = ask(trusting).await.unwrap().ends(4).fault();
        assert!(fault.contains(advice), "{advice}: {fault}");
    }
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
    asked.await.unwrap().ends(1).warns_of_nothing();
}

/// A command without its secret ends with exit code 5; `doctor` merely reports that it has none.
#[test]
fn a_secret_on_the_command_line_is_not_understood() {
    for option in ["--secret", "--key", "--token"] {
        Ran::of(&["doctor", option, SECRET])
            .ends(2)
            .lacks(&[SECRET]);
    }
}

#[cfg(unix)]
#[test]
fn exit_130_is_ctrl_c() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let child = typed(&format!("doctor --url {url}")).spawn().unwrap();
    // The command has asked, and waits for an answer that never comes.
    let (mut asked, _) = listener.accept().unwrap();
    asked.read_exact(&mut [0; 16]).unwrap();
    crate::process::signal(&child, "INT");
    // The user who pressed Ctrl-C knows it: no message.
    let ran = Ran::with(child.wait_with_output().unwrap()).ends(130);
    ran.warns_of_nothing().prints_nothing();
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
    let mut sender = typed(&format!("send row.created --to {url}"))
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert!(sender.try_wait().unwrap().is_none(), "it waits");
    terminal.signal(Signal::INT);
    assert_eq!(ends(&mut sender).code(), Some(0), "it was answered");
    assert_eq!(terminal.end().code(), Some(130));
    terminal.assert_whole();
}
