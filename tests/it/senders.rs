//! Deliveries that the senders' own libraries have signed: Stripe's, Standard Webhooks' and Svix'
//! from PyPI, GitHub's from npm.
//!
//! `scripts/senders` installs them, and `scripts/test` calls it. Without them the test says so, and
//! fails where tools are required.

use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use hookgate::clock::{ManualClock, UnixSeconds};
use hookgate::scheme::{Encoding, Form, Place};
use hookgate::{MemoryStore, Receiver, Scheme, Secret, Signed};
use http::{Request, StatusCode};
use http_body_util::Full;

use crate::process::none_is_missing;

const NOW: i64 = 1_763_690_000;
const EACH: usize = 200;

/// Svix' names of the headers of Standard Webhooks.
const SVIX: Scheme = Scheme::STANDARD_WEBHOOKS
    .with_name("svix")
    .signature(
        "svix-signature",
        Form::List {
            separator: ' ',
            version: "v1,",
        },
        Encoding::Base64,
    )
    .timestamp(Place::Header("svix-timestamp"))
    .event_id(Place::Header("svix-id"));

#[derive(serde::Deserialize)]
struct Sent {
    scheme: String,
    secret: String,
    body: String,
    headers: Vec<(String, String)>,
}

impl Sent {
    fn request(&self) -> Request<Full<Bytes>> {
        let mut request = Request::post("/").header("content-type", "application/json");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request
            .body(Full::new(Bytes::from(self.body.clone())))
            .unwrap()
    }

    /// Changes one byte of the body, or of a header that is signed, in one of two deliveries each.
    fn with_one_changed_byte(mut self, random: &mut fastrand::Rng) -> Self {
        let text = match random.bool() {
            true => &mut self.body,
            // GitHub's others are hints, and stand behind it.
            false if self.scheme == "github" => &mut self.headers[0].1,
            false => &mut random.choice(&mut self.headers).unwrap().1,
        };
        // A version that is skipped, Stripe's `v0`, is not signed.
        let end = text.find(",v0=").unwrap_or(text.len());
        let letters: Vec<_> = (0..end)
            .filter(|at| text.as_bytes()[*at].is_ascii_alphanumeric())
            .collect();
        let at = *random.choice(&letters).unwrap();
        let old = text.as_bytes()[at];
        let new = if old == b'x' { "y" } else { "x" };
        text.replace_range(at..=at, new);
        self
    }
}

/// Runs a script that signs, and returns its lines.
fn lines(command: &mut Command) -> Vec<Sent> {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[tokio::test]
async fn each_delivery_that_a_senders_library_signs_runs_once_and_no_changed_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let tools = root.join("target/tools/senders");
    let is_run = tools.join("done").exists();
    let missing: &[_] = if is_run {
        &[]
    } else {
        &["scripts/senders, to be run"]
    };
    if !none_is_missing(missing, "what senders' libraries sign") {
        return;
    }
    let (now, each) = (NOW.to_string(), EACH.to_string());
    let scripts = root.join("tests/senders");
    let mut sent = lines(
        Command::new(tools.join("python/bin/python"))
            .arg(scripts.join("sign.py"))
            .args([&now, &each]),
    );
    sent.extend(lines(
        Command::new("node")
            .arg(scripts.join("sign.mjs"))
            .arg(tools.join("node"))
            .arg(&each),
    ));
    assert_eq!(sent.len(), 4 * EACH);
    let mut random = fastrand::Rng::with_seed(42);
    for (name, scheme) in [
        ("stripe", Scheme::STRIPE),
        ("standard-webhooks", Scheme::STANDARD_WEBHOOKS),
        ("svix", SVIX),
        ("github", Scheme::GITHUB),
    ] {
        let sent = sent.extract_if(.., |sent| sent.scheme == name);
        let sent: Vec<_> = sent.collect();
        assert_eq!(sent.len(), EACH, "{name}");
        let secret = Secret::unprefixed(&sent[0].secret).unwrap();
        let mut builder = Receiver::builder()
            .scheme(scheme)
            .secret(secret)
            .clock(ManualClock::at(UnixSeconds::new(NOW)))
            .store(MemoryStore::default());
        if !scheme.has_timestamp() {
            builder = builder.without_window();
        }
        let receiver = builder.build().unwrap();
        let answer = async |sent: &Sent| {
            let handler = async |_: Signed<serde_json::Value>| StatusCode::NO_CONTENT;
            receiver
                .handle(sent.request(), handler)
                .await
                .status()
                .as_u16()
        };
        for good in &sent {
            assert_eq!(
                (answer(good).await, answer(good).await),
                (204, 200),
                "{name}: {}",
                good.body
            );
        }
        for bad in sent {
            let bad = bad.with_one_changed_byte(&mut random);
            assert_eq!(
                answer(&bad).await,
                401,
                "{name}: {:?} {}",
                bad.headers,
                bad.body
            );
        }
    }
}
