//! `--scheme`: deliveries as other senders sign them, signed and verified by the command.

use crate::cli::{Ran, SECRET, Scratch, hookgate};

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
