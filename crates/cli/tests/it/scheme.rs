//! `--scheme`: deliveries as other senders sign them, signed and verified by the command.

use serde_json::json;

use crate::cli::{Folder, Ran, SECRET, typed};
use crate::log::received;

const BYTES: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BODY: &str = r#"{"id":"evt_1","type":"invoice.paid"}"#;

fn run(secret: &str, line: &str) -> Ran {
    Ran::to_its_end(typed(line).env("WEBHOOK_SECRET", secret))
}

/// What the command signs for this scheme: the options that name its headers and its body.
fn signed(folder: &Folder, scheme: &str, secret: &str, header: &str) -> String {
    let body = folder.file("body.json", BODY);
    let signed = run(secret, &format!("sign --scheme {scheme} --body {body}"));
    signed.says(&[header]);
    let headers = folder.file(&format!("{scheme}.txt"), signed.stdout);
    format!("--headers {headers} --body {body}")
}

#[test]
fn what_the_command_signs_for_a_scheme_it_verifies_for_that_and_no_other() {
    let folder = Folder::new();
    for (scheme, secret, header, other) in [
        (
            "workspace",
            SECRET,
            "x-service-signature: sha256=",
            "stripe",
        ),
        (
            "standard-webhooks",
            BYTES,
            "webhook-signature: v1,",
            "stripe",
        ),
        ("stripe", SECRET, "stripe-signature: t=", "workspace"),
        ("github", SECRET, "x-hub-signature-256: sha256=", "stripe"),
    ] {
        let signed = signed(&folder, scheme, secret, header);
        let verify = |scheme| run(secret, &format!("verify --scheme {scheme} {signed}"));
        let verdict = verify(scheme).ends(0);
        verdict.begins("authentic: signed");
        assert!(!verdict.stdout.contains("answers 422") || scheme == "workspace");
        verify(other).ends(1);
    }
}

#[test]
fn a_secret_that_does_not_fit_the_scheme_and_an_unknown_scheme_are_named() {
    let folder = Folder::new();
    let body = folder.file("body.json", BODY);
    for (scheme, said) in [
        ("standard-webhooks", "not base64 after its prefix"),
        ("acme", "expected workspace, standard-webhooks"),
    ] {
        let ran = run(SECRET, &format!("sign --scheme {scheme} --body {body}"));
        ran.tells(&[said]).lacks(&[SECRET]);
    }
}

/// A log of three deliveries, each signed by the command: with its secret, with another one, and
/// with its secret again.
fn log_of(folder: &Folder, scheme: &str, secret: &str, other: &str) -> String {
    let lines = [("evt_1", secret), ("evt_2", other), ("evt_3", secret)].map(|(id, secret)| {
        let text = BODY.replace("evt_1", id);
        let body = folder.file("of-log.json", &text);
        let signed = run(secret, &format!("sign --scheme {scheme} --body {body}"));
        let headers = signed
            .stdout
            .lines()
            .filter_map(|line| line.split_once(": "));
        let headers: Vec<_> = headers.collect();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let (status, outcome, key) = match id {
            "evt_2" => (401, "not_authentic", None),
            _ => (204, "handled", Some("primary")),
        };
        let line = json!({
            "received_at": now.unwrap().as_secs(), "method": "POST", "target": "/webhooks",
            "headers": headers, "body": text,
            "answer": {"status": status, "outcome": outcome, "elapsed_us": 1, "key": key},
        });
        format!("{line}\n")
    });
    folder.file("log.jsonl", lines.concat())
}

#[test]
fn a_log_of_each_scheme_is_listed_explained_and_replayed() {
    let folder = Folder::new();
    let other = "whsec_YW5vdGhlciBvbmUgb2YgYSB0ZXN0IQ==";
    for scheme in ["standard-webhooks", "stripe", "github"] {
        let log = log_of(&folder, scheme, BYTES, other);
        let listed = run(BYTES, &format!("log list {log} --scheme {scheme} --json")).ends(0);
        let rows = listed.stdout.matches(r#""verifiable":true"#).count();
        assert_eq!(rows, 3, "{listed:?}");
        // GitHub signs no type, and the command writes no header that names one.
        let has_type = listed.stdout.contains(r#""eventType":"invoice.paid""#);
        assert_eq!(has_type, scheme != "github", "{listed:?}");
        let shown = run(BYTES, &format!("log show {log} --scheme {scheme} --line 3")).ends(0);
        let has_age = shown.stdout.contains("s after it was signed");
        assert_eq!(has_age, scheme != "github", "{shown:?}");

        let explain = |number: u8| {
            let line = format!("explain --scheme {scheme} --log {log} --line {number}");
            let mut command = typed(&format!("{line} --other-env OTHER_SECRET"));
            command
                .env("WEBHOOK_SECRET", BYTES)
                .env("OTHER_SECRET", other);
            Ran::to_its_end(&mut command)
        };
        let verdict = match scheme {
            "github" => "authentic, signed with WEBHOOK_SECRET",
            _ => "authentic and fresh",
        };
        explain(1).says(&[verdict]);
        explain(2).ends(1).says(&["that of OTHER_SECRET"]);

        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/webhooks", server.local_addr().unwrap());
        let line = format!("replay {log} --to {url} --scheme {scheme} --line 1");
        let replayed = std::thread::spawn(move || run(BYTES, &line));
        let (head, body) = received(&server);
        replayed.join().unwrap().ends(0);
        let headers = folder.file("replayed.txt", head[1..].join("\n"));
        let body = folder.file("replayed.json", body);
        let verify = format!("verify --scheme {scheme} --headers {headers} --body {body}");
        run(BYTES, &verify).ends(0);
    }
}

#[test]
fn an_id_and_a_subscription_are_refused_where_the_scheme_has_none() {
    let folder = Folder::new();
    let body = folder.file("body.json", br#"{"id":"evt.1"}"#);
    let sign = |options: &str| run(BYTES, &format!("sign --body {body} --scheme {options}"));
    for (options, header) in [
        ("standard-webhooks", "webhook-id: msg_"),
        ("standard-webhooks --id msg_7", "webhook-id: msg_7\n"),
        ("github --subscription 77", "x-github-hook-id: 77"),
    ] {
        sign(options).says(&[header]);
    }
    for (options, message) in [
        ("standard-webhooks --id evt.1", "without a dot"),
        ("stripe --id evt_1", "leave out --id"),
        ("stripe --subscription we_1", "leave out --subscription"),
    ] {
        sign(options).ends(2).tells(&[message]);
    }
}

#[test]
fn the_times_of_a_refused_delivery_of_another_scheme_are_printed() {
    let folder = Folder::new();
    let signed = signed(&folder, "stripe", BYTES, "");
    let verdict = run(SECRET, &format!("verify --scheme stripe --json {signed}")).ends(1);
    let json = verdict.json();
    assert!(json["signedAt"].is_string(), "{json}");
    assert!(json["ageSeconds"].is_i64(), "{json}");
}
