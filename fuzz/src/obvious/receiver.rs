//! The receiver, as defined by the design's outcomes table and promises: one list of records,
//! searched from the front.

use std::time::Duration;

use super::event::{self, Head};
use super::headers::{self, Pairs};
use super::mac;

/// The sender gives the secret of a subscription; the receiver keeps up to four.
#[derive(Clone)]
pub struct Ring {
    pub subscription: Option<String>,
    pub scope: String,
    pub secrets: Vec<&'static str>,
    pub workspace: Option<&'static str>,
}

#[derive(Clone)]
pub struct Rules {
    pub rings: Vec<Ring>,
    pub past: i64,
    pub ahead: i64,
    pub max_body: usize,
    pub refuses_other_headers: bool,
    pub max_runs: usize,
    pub capacity: usize,
    pub refuses_when_full: bool,
    pub lease: Duration,
    pub retention: Duration,
}

pub struct Receiver {
    pub rules: Rules,
    pub wall: i64,
    pub monotonic: Duration,
    /// In the order of their creation.
    records: Vec<Record>,
    /// The number of claims held.
    pub runs: usize,
    claims: usize,
}

#[derive(Clone)]
struct Record {
    scope: String,
    id: String,
    state: State,
    ends: Duration,
}

#[derive(Clone, PartialEq)]
enum State {
    Running { claim: usize, body: Vec<u8> },
    Done { claim: usize, body: Vec<u8> },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// By the crate's names of refusals, and of the part that was not authentic.
    Refused(&'static str, Option<&'static str>),
    Fresh(Claim),
    Replayed {
        same_body: bool,
    },
    Running {
        retry_after: Duration,
    },
    NoOpinion,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    pub scope: String,
    pub id: String,
    pub event_type: String,
    body: Vec<u8>,
    number: usize,
}

pub struct Request<'r> {
    pub method: &'r str,
    pub headers: &'r Pairs,
    pub body: &'r [u8],
}

impl Receiver {
    pub fn new(rules: Rules, wall: i64) -> Self {
        Self {
            rules,
            wall,
            monotonic: Duration::ZERO,
            records: Vec::new(),
            runs: 0,
            claims: 0,
        }
    }

    /// The first row of the outcomes table that applies.
    pub fn receive(&mut self, request: &Request<'_>) -> Verdict {
        let refused = |name| Verdict::Refused(name, None);
        let denied = |why| Verdict::Refused("not_authentic", Some(why));
        if request.method != "POST" {
            return refused("method_not_allowed");
        }
        let texts = |name| {
            let values = headers::values(request.headers, name).into_iter();
            values.map(|value| String::from_utf8_lossy(value).trim().to_lowercase())
        };
        let is_coding = |coding: &str| !["", "identity"].contains(&coding.trim());
        if texts("content-encoding").any(|codings| codings.split(',').any(is_coding)) {
            return refused("media_not_supported");
        }
        let is_json = |kind: &str| kind == "application/json" || kind.ends_with("+json");
        if texts("content-type").any(|kind| !is_json(kind.split(';').next().unwrap().trim())) {
            return refused("media_not_supported");
        }
        let is_over = |text: String| {
            let is_number = !text.is_empty() && text.chars().all(|char| char.is_ascii_digit());
            is_number
                && text
                    .parse::<usize>()
                    .is_ok_and(|bytes| bytes > self.rules.max_body)
        };
        if texts("content-length").any(is_over) {
            return refused("body_too_large");
        }

        if !headers::faults(request.headers).is_empty() {
            return denied("header");
        }
        let only = |name| headers::only(request.headers, name);
        let timestamp = only("x-service-timestamp").unwrap();
        let signed_at: i128 = std::str::from_utf8(timestamp).unwrap().parse().unwrap();
        let age = i128::from(self.wall) - signed_at;
        if age > self.rules.past.into() {
            return denied("stale");
        }
        if -age > self.rules.ahead.into() {
            return denied("ahead");
        }
        let subscription = only("x-service-webhook-id");
        let rings = &self.rules.rings;
        if rings.len() > 1 && subscription.is_none() {
            return denied("header");
        }
        if request.body.len() > self.rules.max_body {
            return refused("body_too_large");
        }
        let is_meant = |ring: &&Ring| match (&ring.subscription, subscription) {
            (Some(own), Some(named)) => own.as_bytes() == named,
            (None, _) | (_, None) => true,
        };
        let Some(ring) = rings.iter().find(is_meant) else {
            return denied("unknown_subscription");
        };
        let signature = only("x-service-signature").unwrap();
        let signs =
            |secret: &&str| mac::signature(secret, timestamp, request.body).as_bytes() == signature;
        if ring.secrets.iter().filter(|secret| signs(secret)).count() == 0 {
            return denied("signature_mismatch");
        }
        let (id, event_type) = match event::head(request.body, ring.workspace) {
            Head::Of { id, event_type } => (id, event_type),
            Head::Foreign => return denied("workspace_mismatch"),
            Head::Unusable => return refused("unusable_event"),
            Head::NoOpinion => return Verdict::NoOpinion,
        };
        if self.rules.refuses_other_headers {
            let differs =
                |name, signed: &str| only(name).is_some_and(|hint| hint != signed.as_bytes());
            if differs("x-service-event-id", &id) {
                return refused("header_differs");
            }
            if differs("x-service-event-type", &event_type) {
                return refused("header_differs");
            }
        }
        let scope = ring.scope.clone();
        self.claim(scope, id, event_type, request.body)
    }

    fn claim(&mut self, scope: String, id: String, event_type: String, body: &[u8]) -> Verdict {
        let refused = |name| Verdict::Refused(name, None);
        if self.runs >= self.rules.max_runs {
            return refused("no_permit_free");
        }
        self.forget_what_ended();
        let known = self
            .records
            .iter()
            .find(|record| record.scope == scope && record.id == id);
        if let Some(record) = known {
            return match &record.state {
                State::Running { .. } => Verdict::Running {
                    retry_after: record.ends - self.monotonic,
                },
                State::Done { body: handled, .. } => Verdict::Replayed {
                    same_body: handled == body,
                },
            };
        }
        if self.rules.refuses_when_full && self.records.len() >= self.rules.capacity {
            return refused("store_full");
        }
        self.claims += 1;
        self.runs += 1;
        let (number, body) = (self.claims, body.to_vec());
        self.records.push(Record {
            scope: scope.clone(),
            id: id.clone(),
            state: State::Running {
                claim: number,
                body: body.clone(),
            },
            ends: self.monotonic + self.rules.lease,
        });
        Verdict::Fresh(Claim {
            scope,
            id,
            event_type,
            body,
            number,
        })
    }

    fn forget_what_ended(&mut self) {
        self.records.retain(|record| record.ends > self.monotonic);
    }

    /// Returns the claim's own record, while it runs.
    fn own(&mut self, claim: &Claim) -> Option<usize> {
        self.forget_what_ended();
        self.records.iter().position(|record| {
            matches!(record.state, State::Running { claim: number, .. } if number == claim.number)
        })
    }

    /// Returns whether the claim was still held.
    pub fn renew(&mut self, claim: &Claim) -> bool {
        let own = self.own(claim);
        if let Some(own) = own {
            self.records[own].ends = self.monotonic + self.rules.lease;
        }
        own.is_some()
    }

    pub fn release(&mut self, claim: &Claim) -> bool {
        let own = self.own(claim);
        own.map(|own| self.records.remove(own)).is_some()
    }

    pub fn commit(&mut self, claim: &Claim) -> bool {
        let Some(own) = self.own(claim) else {
            return false;
        };
        self.records.remove(own);
        let is_done = |record: &Record| matches!(record.state, State::Done { .. });
        while self.records.iter().filter(|record| is_done(record)).count() >= self.rules.capacity {
            let oldest = self.records.iter().position(is_done).unwrap();
            self.records.remove(oldest);
        }
        self.records.push(Record {
            scope: claim.scope.clone(),
            id: claim.id.clone(),
            state: State::Done {
                claim: claim.number,
                body: claim.body.clone(),
            },
            ends: self.monotonic + self.rules.retention,
        });
        true
    }

    /// Returns the numbers of running claims and of done records.
    pub fn counts(&mut self) -> (usize, usize) {
        self.forget_what_ended();
        let running = |record: &&Record| matches!(record.state, State::Running { .. });
        let running = self.records.iter().filter(running).count();
        (running, self.records.len() - running)
    }
}
