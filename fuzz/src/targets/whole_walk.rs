//! The whole walk of several deliveries, step by step, against the second implementation: each
//! verdict, each settlement.

use std::time::Duration;

use bytes::Bytes;
use hookgate::{
    KeyRing, MemoryStore, Receiver, Refusal, Secret, block_on,
    clock::{Clock, ManualClock, UnixSeconds},
    dedupe::{Capacity, Ownership},
    lookup::Keys,
    receiver::{Admission, Claim, RequestHead},
    verify::Window,
};

use super::super::choices::Choices;
use super::super::made::{self, NOW, SECRETS};
use super::super::obvious::mac;
use super::super::obvious::receiver::{
    Claim as ObviousClaim, Receiver as Obvious, Request, Ring, Rules, Verdict,
};

const MAX_STEPS: usize = 24;
const HOUR: u64 = 3_600;

pub fn run(input: &[u8]) {
    let mut choices = Choices(input);
    let rules = rules(&mut choices);
    let mut walk = Walk {
        clock: ManualClock::at(UnixSeconds::new(NOW)),
        store: MemoryStore::default(),
        receiver: None,
        obvious: Obvious::new(rules, NOW),
        in_hand: Vec::new(),
        sent: Vec::new(),
    };
    walk.build();
    for _ in 0..MAX_STEPS {
        if choices.is_empty() {
            break;
        }
        match choices.below(8) {
            0..=2 => walk.deliver(&mut choices),
            3 => walk.deliver_again(&mut choices),
            4 => walk.settle(&mut choices),
            5 => walk.advance(&mut choices),
            6 => walk.set_wall(&mut choices),
            _ => walk.rotate(&mut choices),
        }
        walk.compare_counts();
    }
}

fn rules(choices: &mut Choices<'_>) -> Rules {
    let workspace = choices.once_in(4).then_some("ws_1");
    let ring = |subscription: Option<&str>, scope: &str, secrets: &[&'static str]| Ring {
        subscription: subscription.map(Into::into),
        scope: scope.into(),
        secrets: secrets.into(),
        workspace,
    };
    let rings = match choices.below(5) {
        0 => vec![ring(None, "default", &SECRETS[..1])],
        1 => vec![ring(None, "default", &SECRETS[..2])],
        2 => vec![ring(Some("wh_1"), "wh_1", &SECRETS[..1])],
        3 => vec![
            ring(Some("wh_1"), "wh_1", &SECRETS[..1]),
            ring(Some("wh_2"), "wh_2", &SECRETS[1..]),
        ],
        _ => vec![
            ring(Some("wh_1"), "shared", &SECRETS[..2]),
            ring(Some("wh_2"), "shared", &SECRETS[1..]),
        ],
    };
    Rules {
        rings,
        past: choices.one_of(&[300, 0, 60]),
        ahead: choices.one_of(&[300, 0]),
        max_body: choices.one_of(&[4_096, 200, 1]),
        refuses_other_headers: !choices.once_in(3),
        max_runs: choices.one_of(&[1_024, 1, 2]),
        capacity: choices.one_of(&[100, 1, 2]),
        refuses_when_full: choices.once_in(3),
        lease: Duration::from_secs(choices.one_of(&[30, 1])),
        retention: Duration::from_secs(choices.one_of(&[48, 27]) * HOUR),
    }
}

struct Walk {
    clock: ManualClock,
    store: MemoryStore,
    /// Present after `build`.
    receiver: Option<Receiver>,
    obvious: Obvious,
    /// Claims, each in the form of both implementations.
    in_hand: Vec<(Claim, ObviousClaim)>,
    /// The requests sent so far, to be sent again: method, headers, body.
    sent: Vec<(&'static str, Headers, Vec<u8>)>,
}

type Headers = Vec<(Vec<u8>, Vec<u8>)>;

fn key_ring(ring: &Ring) -> KeyRing {
    let secret = |text: &str| Secret::new(text).unwrap();
    let mut keys = KeyRing::new(secret(ring.secrets[0]))
        .with_scope(&ring.scope)
        .unwrap();
    for text in &ring.secrets[1..] {
        keys = keys.with_key(text, secret(text)).unwrap();
    }
    match ring.workspace {
        Some(workspace) => keys.with_workspace(workspace).unwrap(),
        None => keys,
    }
}

impl Walk {
    fn build(&mut self) {
        let rules = &self.obvious.rules;
        let mut capacity = Capacity::new(rules.capacity);
        if rules.refuses_when_full {
            capacity = capacity.refusing_when_full();
        }
        self.store = MemoryStore::new(capacity).with_clock(self.clock.clone());
        let keys = match &rules.rings[..] {
            [ring] if ring.subscription.is_none() => Keys::single(key_ring(ring)),
            rings => Keys::by_subscription(
                rings
                    .iter()
                    .map(|ring| (ring.subscription.as_ref().unwrap(), key_ring(ring))),
            )
            .unwrap(),
        };
        let seconds = |seconds| Duration::from_secs(u64::try_from(seconds).unwrap());
        let window = Window::default()
            .with_past(seconds(rules.past))
            .with_ahead(seconds(rules.ahead));
        let mut receiver = Receiver::builder();
        if !rules.refuses_other_headers {
            receiver = receiver.ignore_header_mismatch();
        }
        let receiver = receiver
            .keys(keys)
            .store(self.store.clone())
            .clock(self.clock.clone())
            .window(window)
            .max_body(rules.max_body)
            .max_runs(rules.max_runs)
            .lease(rules.lease)
            .retention(rules.retention)
            .build()
            .unwrap();
        self.receiver = Some(receiver);
    }

    fn receiver(&self) -> &Receiver {
        self.receiver.as_ref().unwrap()
    }

    fn deliver(&mut self, choices: &mut Choices<'_>) {
        let body = match choices.below(4) {
            0 => made::event(choices),
            1 => made::body(choices),
            kind => {
                let (id, workspace) = (choices.below(4), choices.one_of(&["ws_1", "ws_2"]));
                let rest = ["", r#","data":{}"#][kind - 2];
                format!(r#"{{"id":"evt_{id}","type":"t","workspaceId":"{workspace}"{rest}}}"#)
                    .into()
            }
        };
        let age = choices.one_of(&[0, 300, 301, -300, -301, 60, 61, 1, -1, 90_000, i64::MAX / 2]);
        let timestamp = self.obvious.wall.saturating_sub(age).to_string();
        let secret = choices.one_of(&SECRETS);
        let mut signature = mac::signature(secret, timestamp.as_bytes(), &body).into_bytes();
        if choices.once_in(8) {
            made::damage(choices, &mut signature);
        }
        let mut headers: Headers = vec![
            (b"X-Service-Signature".into(), signature),
            (b"X-Service-Timestamp".into(), timestamp.into()),
        ];
        for _ in 0..choices.below(6) {
            let (name, values): (&str, &[&str]) = choices.one_of(&[
                (
                    "X-Service-Webhook-Id",
                    ["wh_1", "wh_2", "wh_3", ""].as_slice(),
                ),
                ("x-service-event-id", &["evt_0", "evt_1", "", "EVT_0"]),
                ("x-service-event-type", &["t", "row.created", "T"]),
                (
                    "Content-Type",
                    &["application/json", "a/b+JSON; v=1", "text/plain", ""],
                ),
                (
                    "Content-Encoding",
                    &["identity", "gzip", " Identity ", "", "identity,,"],
                ),
                (
                    "Content-Length",
                    &[
                        "1",
                        "4096",
                        "4097",
                        "200",
                        " 201 ",
                        "x",
                        "-1",
                        "18446744073709551615",
                    ],
                ),
                ("x-service-timestamp", &["1763690000"]),
                ("Accept", &["*/*"]),
            ]);
            headers.push((name.into(), choices.one_of(values).into()));
        }
        if choices.once_in(8) {
            let place = choices.below(headers.len());
            headers.remove(place);
        }
        let method = choices.one_of(&["POST", "POST", "POST", "POST", "GET", "post"]);
        self.sent.push((method, headers, body));
        self.send(self.sent.len() - 1, choices);
    }

    /// Sends a copy unchanged: a retry's bytes, or a replay.
    fn deliver_again(&mut self, choices: &mut Choices<'_>) {
        if !self.sent.is_empty() {
            let place = choices.below(self.sent.len());
            self.send(place, choices);
        }
    }

    fn send(&mut self, place: usize, choices: &mut Choices<'_>) {
        let (method, headers, body) = self.sent[place].clone();
        let pieces = choices.bytes();
        let ours = self.walk(method, &headers, &body, pieces);
        let request = Request {
            method,
            headers: &headers,
            body: &body,
        };
        let shown = || {
            let headers: Vec<_> = headers
                .iter()
                .map(|(name, value)| {
                    [name, value].map(|text| String::from_utf8_lossy(text).into_owned())
                })
                .collect();
            format!("{method} {headers:?} {}", String::from_utf8_lossy(&body))
        };
        match (ours, self.obvious.receive(&request)) {
            // The one undecided case is a head that is hard to judge: from here on the state of the
            // store is unknown.
            (Ok(Admission::Fresh(claim)), Verdict::NoOpinion) => {
                block_on(claim.release()).unwrap();
            }
            (_, Verdict::NoOpinion) => {}
            (Ok(Admission::Fresh(claim)), Verdict::Fresh(obvious)) => {
                self.in_hand.push((claim, obvious));
            }
            (Ok(Admission::Replayed { same_body }), Verdict::Replayed { same_body: obvious }) => {
                assert_eq!(same_body, obvious, "{}", shown());
            }
            (
                Ok(Admission::Running { retry_after }),
                Verdict::Running {
                    retry_after: obvious,
                },
            ) => {
                assert_eq!(retry_after, obvious, "{}", shown());
            }
            (Err(refusal), Verdict::Refused(kind, why)) => {
                let found = (
                    refusal.kind().name(),
                    refusal.verify_error().map(|error| error.kind().name()),
                );
                assert!(
                    found == (kind, why),
                    "{found:?}, but {kind} {why:?}: {}",
                    shown()
                );
            }
            (ours, obvious) => panic!("{ours:?}, but {obvious:?}: {}", shown()),
        }
    }

    /// The crate's walk, up to the claim.
    fn walk(
        &self,
        method: &str,
        headers: &Headers,
        body: &[u8],
        pieces: &[u8],
    ) -> Result<Admission, Refusal> {
        let receiver = self.receiver();
        let head = RequestHead::new(method, headers.iter().map(|(name, value)| (name, value)));
        let mut received = receiver.check_head(&head)?;
        let mut rest = body;
        for piece in pieces {
            let (piece, after) = rest.split_at(usize::from(*piece).min(rest.len()));
            received.push(Bytes::copy_from_slice(piece))?;
            rest = after;
        }
        received.push(Bytes::copy_from_slice(rest))?;
        let delivery = receiver.verify(received, &head)?;
        assert_eq!(delivery.body(), body, "the very bytes");
        assert_eq!(delivery.received_at(), self.clock.now());
        block_on(receiver.admit(&delivery))
    }

    fn settle(&mut self, choices: &mut Choices<'_>) {
        if self.in_hand.is_empty() {
            return;
        }
        let place = choices.below(self.in_hand.len());
        let ownership = |held| {
            if held {
                Ownership::Held
            } else {
                Ownership::Lost
            }
        };
        let way = choices.below(6);
        if way == 5 {
            let (claim, obvious) = &self.in_hand[place];
            assert_eq!(
                block_on(claim.renew()).unwrap(),
                ownership(self.obvious.renew(obvious))
            );
            return;
        }
        let (claim, obvious) = self.in_hand.remove(place);
        let (found, expected) = match way {
            0..=2 => (block_on(claim.commit()), self.obvious.commit(&obvious)),
            3 => (block_on(claim.release()), self.obvious.release(&obvious)),
            // Dropped: the permit is free, the record stays until the end of its lease.
            _ => {
                drop(claim);
                self.obvious.runs -= 1;
                return;
            }
        };
        self.obvious.runs -= 1;
        assert_eq!(found.unwrap(), ownership(expected), "{obvious:?}");
    }

    fn advance(&mut self, choices: &mut Choices<'_>) {
        let seconds = choices.one_of(&[1, 29, 30, 60, 300, 2 * HOUR, 27 * HOUR, 48 * HOUR, 0]);
        let by = Duration::from_secs(seconds);
        self.clock.advance(by);
        self.obvious.monotonic += by;
        self.obvious.wall += i64::try_from(seconds).unwrap();
    }

    /// A stepped clock changes which deliveries are fresh, and no record.
    fn set_wall(&mut self, choices: &mut Choices<'_>) {
        let wall = choices.one_of(&[NOW, NOW - 100_000, NOW + 301, 0, -5, i64::MAX / 4]);
        self.clock.set_wall(UnixSeconds::new(wall));
        self.obvious.wall = wall;
    }

    /// A ring gets other keys; its scope, its workspace and the records stay.
    fn rotate(&mut self, choices: &mut Choices<'_>) {
        let place = choices.below(self.obvious.rules.rings.len());
        let secrets =
            choices.one_of(&[&SECRETS[..1], &SECRETS[1..2], &SECRETS[..2], &SECRETS[2..]]);
        let ring = &self.obvious.rules.rings[place];
        let mut successor = KeyRing::new(Secret::new(secrets[0]).unwrap());
        for text in &secrets[1..] {
            successor = successor
                .with_key("other", Secret::new(text).unwrap())
                .unwrap();
        }
        let keys = self.receiver().keys();
        let replaced = match &ring.subscription {
            None => keys.replace(successor),
            Some(id) => keys.replace_subscription(id, successor),
        };
        // A secret in two scopes would let a delivery to one be replayed to the other.
        let foreign = self.obvious.rules.rings.iter().any(|other| {
            other.scope != ring.scope && other.secrets.iter().any(|secret| secrets.contains(secret))
        });
        assert_eq!(replaced.is_err(), foreign);
        if !foreign {
            self.obvious.rules.rings[place].secrets = secrets.into();
        }
    }

    fn compare_counts(&mut self) {
        let stats = self.store.stats();
        assert_eq!((stats.running, stats.done), self.obvious.counts());
        assert_eq!(self.receiver().runs(), self.obvious.runs);
        assert_eq!(self.obvious.runs, self.in_hand.len());
    }
}
