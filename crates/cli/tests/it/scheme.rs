//! `--scheme`: deliveries as other senders sign them, signed and verified by the command.

use crate::cli::{Ran, SECRET, Scratch, hookgate};
use crate::log::received;

const BYTES: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BODY: &str = r#"{"id":"evt_1","type":"invoice.paid"}"#;

fn run(secret: &str, arguments: &[&str]) -> Ran {
    Ran::to_its_end(hookgate(arguments).env("WEBHOOK_SECRET", secret))
}

#[test]
fn what_the_command_signs_for_a_scheme_it_verifies_for_that_and_no_other() {
    let body = Scratch::file("scheme-body", BODY.as_bytes());
    for (scheme, secret, header) in [
        ("workspace", SECRET, "x-service-signature: sha256="),
        ("standard-webhooks", BYTES, "webhook-signature: v1,"),
        ("stripe", SECRET, "stripe-signature: t="),
        ("github", SECRET, "x-hub-signature-256: sha256="),
    ] {
        let signed = run(secret, &["sign", "--scheme", scheme, "--body", body.path()]);
        assert!(signed.stdout.contains(header), "{signed:?}");
        let headers = Scratch::file(&format!("scheme-{scheme}"), signed.stdout.as_bytes());
        let verify = |scheme: &str| {
            let of = ["--headers", headers.path(), "--body", body.path()];
            run(secret, &[&["verify", "--scheme", scheme][..], &of].concat())
        };
        let verdict = verify(scheme);
        assert_eq!(verdict.code, Some(0), "{verdict:?}");
        assert!(
            verdict.stdout.starts_with("authentic: signed"),
            "{verdict:?}"
        );
        assert!(!verdict.stdout.contains("answers 422") || scheme == "workspace");
        let other = if scheme == "stripe" {
            "workspace"
        } else {
            "stripe"
        };
        assert_eq!(verify(other).code, Some(1));
    }
}

#[test]
fn a_secret_that_does_not_fit_the_scheme_and_an_unknown_scheme_are_named() {
    let body = Scratch::file("scheme-misfit", BODY.as_bytes());
    let sign = |scheme| run(SECRET, &["sign", "--scheme", scheme, "--body", body.path()]);
    let misfit = sign("standard-webhooks");
    assert!(
        misfit.stderr.contains("not base64 after its prefix"),
        "{misfit:?}"
    );
    assert!(!misfit.stderr.contains(SECRET));
    let unknown = sign("acme");
    assert!(
        unknown
            .stderr
            .contains("expected workspace, standard-webhooks"),
        "{unknown:?}"
    );
}

/// A log of three deliveries, each signed by the command: with its secret, with another one, and with its secret again.
fn log_of(scheme: &str, secret: &str, other: &str) -> Scratch {
    let lines = [("evt_1", secret), ("evt_2", other), ("evt_3", secret)].map(|(id, secret)| {
        let text = format!(r#"{{"id":"{id}","type":"invoice.paid"}}"#);
        let body = Scratch::file(&format!("scheme-log-{scheme}-{id}"), text.as_bytes());
        let signed = run(secret, &["sign", "--scheme", scheme, "--body", body.path()]);
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
        let line = serde_json::json!({
            "received_at": now.unwrap().as_secs(), "method": "POST", "target": "/webhooks",
            "headers": headers, "body": text,
            "answer": {"status": status, "outcome": outcome, "elapsed_us": 1, "key": key},
        });
        format!("{line}\n")
    });
    Scratch::file(&format!("scheme-log-{scheme}"), lines.concat().as_bytes())
}

#[test]
fn a_log_of_each_scheme_is_listed_explained_and_replayed() {
    let other = "whsec_YW5vdGhlciBvbmUgb2YgYSB0ZXN0IQ==";
    for scheme in ["standard-webhooks", "stripe", "github"] {
        let log = log_of(scheme, BYTES, other);
        let listed = run(
            BYTES,
            &["log", "list", log.path(), "--scheme", scheme, "--json"],
        );
        let rows = listed.stdout.matches(r#""verifiable":true"#).count();
        assert_eq!((listed.code, rows), (Some(0), 3), "{listed:?}");
        // GitHub signs no type, and the command writes no header that names one.
        let has_type = listed.stdout.contains(r#""eventType":"invoice.paid""#);
        assert_eq!(has_type, scheme != "github", "{listed:?}");
        let shown = ["log", "show", log.path(), "--scheme", scheme, "--line", "3"];
        let shown = run(BYTES, &shown);
        assert_eq!(shown.code, Some(0), "{shown:?}");
        let has_age = shown.stdout.contains("s after it was signed");
        assert_eq!(has_age, scheme != "github", "{shown:?}");

        let explain = |line: &str, held: &str, known: &str| {
            let of = [
                "explain",
                "--scheme",
                scheme,
                "--log",
                log.path(),
                "--line",
                line,
            ];
            let other = ["--other-env", "OTHER_SECRET"];
            let mut command = hookgate(&[&of[..], &other].concat());
            command
                .env("WEBHOOK_SECRET", held)
                .env("OTHER_SECRET", known);
            Ran::to_its_end(&mut command)
        };
        let sound = explain("1", BYTES, other);
        let verdict = match scheme {
            "github" => "authentic, signed with WEBHOOK_SECRET",
            _ => "authentic and fresh",
        };
        assert!(sound.stdout.contains(verdict), "{sound:?}");
        let of_another = explain("2", BYTES, other);
        assert_eq!(of_another.code, Some(1));
        assert!(
            of_another.stdout.contains("that of OTHER_SECRET"),
            "{of_another:?}"
        );

        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/webhooks", server.local_addr().unwrap());
        let replayed = std::thread::spawn({
            let (log, url) = (log.path().to_owned(), url.clone());
            move || {
                run(
                    BYTES,
                    &[
                        "replay", &log, "--to", &url, "--scheme", scheme, "--line", "1",
                    ],
                )
            }
        });
        let (head, body) = received(&server);
        let replayed = replayed.join().unwrap();
        assert_eq!(replayed.code, Some(0), "{replayed:?}");
        let headers = head[1..].join("\n");
        let headers = Scratch::file("scheme-replayed", headers.as_bytes());
        let body = Scratch::file("scheme-replayed-body", &body);
        let verify = [
            "verify",
            "--scheme",
            scheme,
            "--headers",
            headers.path(),
            "--body",
            body.path(),
        ];
        let verdict = run(BYTES, &verify);
        assert_eq!(verdict.code, Some(0), "{verdict:?}");
    }
}

#[test]
fn an_id_and_a_subscription_are_refused_where_the_scheme_has_none() {
    let body = Scratch::file("scheme-id", br#"{"id":"evt.1"}"#);
    let sign = |scheme, option: &[&str]| {
        let of = ["sign", "--scheme", scheme, "--body", body.path()];
        run(BYTES, &[&of[..], option].concat())
    };
    let made = sign("standard-webhooks", &[]);
    assert!(made.stdout.contains("webhook-id: msg_"), "{made:?}");
    let given = sign("standard-webhooks", &["--id", "msg_7"]);
    assert!(given.stdout.contains("webhook-id: msg_7\n"), "{given:?}");
    let hook = sign("github", &["--subscription", "77"]);
    assert!(hook.stdout.contains("x-github-hook-id: 77"), "{hook:?}");
    for (scheme, option, message) in [
        ("standard-webhooks", ["--id", "evt.1"], "without a dot"),
        ("stripe", ["--id", "evt_1"], "leave out --id"),
        (
            "stripe",
            ["--subscription", "we_1"],
            "leave out --subscription",
        ),
    ] {
        let refused = sign(scheme, &option);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(message), "{refused:?}");
    }
}

#[test]
fn the_times_of_a_refused_delivery_of_another_scheme_are_printed() {
    let body = Scratch::file("scheme-refused", BODY.as_bytes());
    let of = ["sign", "--scheme", "stripe", "--body", body.path()];
    let signed = run(BYTES, &of);
    let headers = Scratch::file("scheme-refused-headers", signed.stdout.as_bytes());
    let verify = [
        "verify",
        "--scheme",
        "stripe",
        "--json",
        "--headers",
        headers.path(),
    ];
    let verdict = run(SECRET, &[&verify[..], &["--body", body.path()]].concat());
    assert_eq!(verdict.code, Some(1), "{verdict:?}");
    let json: serde_json::Value = serde_json::from_str(&verdict.stdout).unwrap();
    assert!(json["signedAt"].is_string(), "{json}");
    assert!(json["ageSeconds"].is_i64(), "{json}");
}
