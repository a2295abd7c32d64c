//! Deliveries and their verdicts from `tests/vectors`, judged in one call, in pieces and through an
//! received; and judged by the two checkers that share no code with the crate.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hookgate::{
    KeyRing, Secret, Verified, Verifier,
    clock::UnixSeconds,
    lookup::Keys,
    verify::{DeliveryHeaders, VerifyError, VerifyErrorKind, Window},
};
use serde::Deserialize;

#[test]
fn every_delivery_gets_its_verdict_in_one_call() {
    for vector in vectors() {
        let judged = vector.judge(|verifier, head, body, now| {
            let verified = verifier.verify(head, body, now)?;
            assert_eq!(verified.body(), body);
            Ok(signed(&verified))
        });
        assert_eq!(judged, vector.verdict, "{}", vector.name);
    }
}

#[test]
fn every_delivery_gets_its_verdict_in_pieces() {
    for vector in vectors() {
        for chunking in chunkings(vector.body.bytes().len()) {
            let judged = vector.judge(|verifier, head, body, now| {
                let mut received = verifier.begin(head, now, body.len())?;
                for chunk in pieces(body, &chunking) {
                    received.push(Bytes::copy_from_slice(chunk)).unwrap();
                }
                let verified = received.finish()?;
                assert_eq!(verified.body(), body);
                Ok(signed(&verified))
            });
            assert_eq!(judged, vector.verdict, "{} in {chunking:?}", vector.name);
        }
    }
}

#[test]
fn the_vectors_cover_every_verdict() {
    let vectors = vectors();
    let seen = |kind: &str, header: Option<&str>| {
        let verdict = refused(kind, header);
        assert!(
            vectors.iter().any(|vector| vector.verdict == verdict),
            "{verdict:?}"
        );
    };
    for header in [hookgate::verify::SIGNATURE, hookgate::verify::TIMESTAMP] {
        seen("header-missing", Some(header));
        seen("header-malformed", Some(header));
        seen("header-doubled", Some(header));
    }
    for header in [
        hookgate::verify::WEBHOOK_ID,
        hookgate::verify::EVENT_ID,
        hookgate::verify::EVENT_TYPE,
    ] {
        seen("header-doubled", Some(header));
    }
    seen("header-missing", Some(hookgate::verify::WEBHOOK_ID));
    for kind in [
        "stale",
        "ahead",
        "unknown-subscription",
        "signature-mismatch",
    ] {
        seen(kind, None);
    }
    let verified = vectors
        .iter()
        .filter(|vector| matches!(vector.verdict, Verdict::Verified { .. }));
    assert!(verified.count() > 40);
}

#[test]
fn python_judges_the_same() {
    run("python3", "check.py");
}

#[test]
fn node_judges_the_same() {
    run("node", "check.mjs");
}

#[derive(Deserialize)]
struct File {
    format: u32,
    deliveries: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    name: String,
    keys: VectorKeys,
    window: VectorWindow,
    now: String,
    headers: Vec<(String, String)>,
    body: Body,
    verdict: Verdict,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum VectorKeys {
    Single(VectorRing),
    Subscriptions(BTreeMap<String, VectorRing>),
}

#[derive(Deserialize)]
struct VectorRing {
    keys: Vec<VectorKey>,
    scope: Option<String>,
}

#[derive(Deserialize)]
struct VectorKey {
    name: String,
    secret: String,
}

#[derive(Deserialize)]
struct VectorWindow {
    past: u64,
    ahead: u64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Body {
    Text { text: String },
    Base64 { base64: String },
    Repeat { repeat: String, times: usize },
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Verified {
        key: String,
        scope: String,
    },
    Refused {
        kind: String,
        header: Option<String>,
    },
}

fn signed<B>(verified: &Verified<B>) -> Verdict {
    Verdict::Verified {
        key: verified.key_name().into(),
        scope: verified.scope().into(),
    }
}

impl Vector {
    fn judge(
        &self,
        verify: impl FnOnce(
            &Verifier,
            &DeliveryHeaders<'_>,
            &[u8],
            UnixSeconds,
        ) -> Result<Verdict, VerifyError>,
    ) -> Verdict {
        let window = Window::default()
            .with_past(Duration::from_secs(self.window.past))
            .with_ahead(Duration::from_secs(self.window.ahead));
        let verifier = Verifier::new(self.keys.keys()).with_window(window);
        let values: Vec<(&str, Vec<u8>)> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), latin_1(value)))
            .collect();
        let now = UnixSeconds::new(self.now.parse().unwrap());
        let head = DeliveryHeaders::from_pairs(values.iter().map(|(name, value)| (*name, value)));
        let verdict = head.and_then(|head| verify(&verifier, &head, &self.body.bytes(), now));
        verdict.unwrap_or_else(|error| refusal(&error))
    }
}

impl VectorKeys {
    fn keys(&self) -> Keys {
        match self {
            Self::Single(ring) => Keys::single(ring.ring()),
            Self::Subscriptions(rings) => {
                Keys::by_subscription(rings.iter().map(|(id, ring)| (id, ring.ring()))).unwrap()
            }
        }
    }
}

impl VectorRing {
    fn ring(&self) -> KeyRing {
        let (first, rest) = self.keys.split_first().unwrap();
        let mut ring = KeyRing::named(&first.name, first.secret()).unwrap();
        for key in rest {
            ring = ring.with_key(&key.name, key.secret()).unwrap();
        }
        match &self.scope {
            Some(scope) => ring.with_scope(scope).unwrap(),
            None => ring,
        }
    }
}

impl VectorKey {
    fn secret(&self) -> Secret {
        if self.secret.starts_with("whsec_") {
            Secret::new(&self.secret).unwrap()
        } else {
            Secret::unprefixed(&self.secret).unwrap()
        }
    }
}

impl Body {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Text { text } => text.clone().into_bytes(),
            Self::Base64 { base64 } => STANDARD.decode(base64).unwrap(),
            Self::Repeat { repeat, times } => repeat.repeat(*times).into_bytes(),
        }
    }
}

fn refusal(error: &VerifyError) -> Verdict {
    let kind = match error.kind() {
        VerifyErrorKind::HeaderMissing(name) => return refused("header-missing", Some(name)),
        VerifyErrorKind::HeaderRepeated(name) => return refused("header-doubled", Some(name)),
        VerifyErrorKind::HeaderMalformed(name) => return refused("header-malformed", Some(name)),
        VerifyErrorKind::Stale(..) => "stale",
        VerifyErrorKind::Ahead(..) => "ahead",
        VerifyErrorKind::UnknownSubscription => "unknown-subscription",
        VerifyErrorKind::SignatureMismatch => "signature-mismatch",
        other => panic!("no vector kind for {other:?}"),
    };
    refused(kind, None)
}

fn refused(kind: &str, header: Option<&str>) -> Verdict {
    Verdict::Refused {
        kind: kind.into(),
        header: header.map(Into::into),
    }
}

/// Ways to cut a body of this length: all of them up to 8 bytes, then all in two, then some sizes.
/// Chunk lengths; the last is repeated to the end.
fn chunkings(length: usize) -> Vec<Vec<usize>> {
    match length {
        0 => vec![vec![1]],
        1..=8 => (0..1_usize << (length - 1))
            .map(|cuts| composition(length, cuts))
            .collect(),
        9..=300 => (0..=length)
            .map(|first| vec![first, length])
            .chain([vec![1], vec![7]])
            .collect(),
        _ => vec![vec![length], vec![1, 63, 64, 65, 16 << 10], vec![65_537]],
    }
}

/// Bit n of `cuts`: whether to cut after byte n.
fn composition(length: usize, cuts: usize) -> Vec<usize> {
    let mut chunks = vec![0];
    for byte in 0..length {
        *chunks.last_mut().unwrap() += 1;
        if cuts >> byte & 1 == 1 {
            chunks.push(0);
        }
    }
    chunks
}

fn pieces<'b>(mut body: &'b [u8], chunking: &[usize]) -> Vec<&'b [u8]> {
    let mut pieces = Vec::new();
    let mut sizes = chunking
        .iter()
        .chain(std::iter::repeat(chunking.last().unwrap()));
    while !body.is_empty() {
        let size = (*sizes.next().unwrap()).min(body.len());
        let (piece, rest) = body.split_at(size);
        pieces.push(piece);
        body = rest;
    }
    pieces
}

/// Each character of a header's value stands for one byte.
fn latin_1(value: &str) -> Vec<u8> {
    value
        .chars()
        .map(|character| u8::try_from(character).unwrap())
        .collect()
}

fn vectors() -> Vec<Vector> {
    let text = std::fs::read(directory().join("deliveries.json")).unwrap();
    let file: File = serde_json::from_slice(&text).unwrap();
    assert_eq!(file.format, 1);
    assert!(file.deliveries.len() > 150);
    file.deliveries
}

/// Runs a checker. Its tool may be absent on a developer's machine, never on CI.
fn run(tool: &str, checker: &str) {
    let required = ["CI", "HOOKGATE_REQUIRE_TOOLS"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    match Command::new(tool).arg(directory().join(checker)).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            let failed = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{tool} {checker}: {said}{failed}");
        }
        Err(error) if required => panic!("{tool} is required here, but can't be run: {error}"),
        Err(error) => println!("NOT CHECKED: {tool} can't be run ({error}), {checker} was skipped"),
    }
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors")
}
