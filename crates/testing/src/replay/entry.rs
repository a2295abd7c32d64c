//! A delivery of the log, examined before it is replayed: its event, and whether it was ever authentic.

use std::time::Duration;

use bytes::Bytes;
use hookgate::{
    Secret, Verified, Verifier,
    clock::UnixSeconds,
    dedupe::EventKey,
    event::EventHead,
    verify::{DeliveryHeaders, Timestamp, Window},
};
use hookgate_record::LoggedDelivery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};

use super::mode::Signing;
use super::secrets::{Secrets, stamp};
use super::{ReplayError, ReplayErrorKind as Kind};
use crate::transport::is_of_the_connection;

/// The outcome of a delivery that was not authentic.
const NOT_AUTHENTIC: &str = "not_authentic";

/// The evidence that decides whether a delivery was authentic.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Evidence {
    /// Its signature, under the secrets of the log.
    Signature,
    /// Its signature, or the answer in the log where the signature does not match: for a receiver whose secret differs from the
    /// log's.
    SignatureOrLog,
}

/// A delivery of the log, ready to be sent.
pub(super) struct Entry {
    /// Its line in the log, from 1.
    pub(super) line: usize,
    /// When it was received.
    pub(super) at: UnixSeconds,
    /// Its own timestamp, where it has a readable one.
    pub(super) timestamp: Option<UnixSeconds>,
    pub(super) kind: EntryKind,
    /// The secret that signs it again.
    pub(super) secret: Option<Secret>,
    /// Signed again from the first attempt on.
    pub(super) resigned: bool,
    pub(super) recorded: Option<(u16, String)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    pub(super) body: Bytes,
}

/// The kind of a delivery, under the secrets that were given.
pub(super) enum EntryKind {
    Event(EventIdentity),
    /// Authentic, but no event that has a usable id and type.
    NoEvent,
    /// Not authentic, at any time.
    Forged,
}

/// The identity of an event, from its signed body.
#[derive(Clone)]
pub(super) struct EventIdentity {
    pub(super) key: EventKey,
    pub(super) scope: String,
    pub(super) id: String,
    pub(super) event_type: String,
}

impl EventIdentity {
    pub(super) fn of(verified: &Verified<impl hookgate::verify::SignedBytes>) -> Option<Self> {
        let head = EventHead::from_verified(verified).ok()?;
        let (scope, id) = (verified.scope(), head.id.as_str());
        Some(Self {
            key: EventKey::new(scope, id),
            scope: scope.to_owned(),
            id: id.to_owned(),
            event_type: head.event_type.as_str().to_owned(),
        })
    }
}

impl Entry {
    pub(super) fn event(&self) -> Option<&EventIdentity> {
        match &self.kind {
            EntryKind::Event(event) => Some(event),
            _ => None,
        }
    }

    pub(super) fn is_forged(&self) -> bool {
        matches!(self.kind, EntryKind::Forged)
    }

    /// Returns the request, signed for `signed_at`, or with the recorded signature where that is `None`.
    pub(super) fn request(&self, signed_at: Option<UnixSeconds>) -> Request<Bytes> {
        let mut request = Request::new(self.body.clone());
        request.method_mut().clone_from(&self.method);
        request.uri_mut().clone_from(&self.uri);
        request.headers_mut().clone_from(&self.headers);
        if let (Some(at), Some(secret)) = (signed_at, &self.secret) {
            for (name, value) in stamp(secret, at, &self.body) {
                if let Ok(value) = HeaderValue::try_from(value) {
                    request.headers_mut().insert(name, value);
                }
            }
        }
        request
    }
}

/// Examines every delivery that is to be replayed, and sorts them by the time at which they were received.
///
/// A delivery is logged when it is answered, so a slow one may stand behind one that was received later.
pub(super) fn examine<'l>(
    deliveries: impl Iterator<Item = (usize, &'l LoggedDelivery)>,
    secrets: &Secrets,
    signing: Signing,
    evidence: Evidence,
) -> Result<Vec<Entry>, ReplayError> {
    let any_age = Window::default()
        .with_past(Duration::MAX)
        .with_ahead(Duration::MAX);
    // In this case every delivery is sent as recorded, so nothing has to be known of it.
    let verifier = if evidence == Evidence::SignatureOrLog && !secrets.are_given() {
        None
    } else {
        Some(Verifier::new(secrets.keys()?).with_window(any_age))
    };
    let examiner = Examiner {
        verifier,
        secrets,
        signing,
        evidence,
    };
    let mut entries = Vec::new();
    let [mut unverifiable, mut wrong, mut unsendable] = [const { Vec::new() }; 3];
    for (line, logged) in deliveries {
        if logged.unverifiable
            && matches!(
                signing,
                Signing::Recorded {
                    redacted_too: false
                }
            )
        {
            unverifiable.push(line);
            continue;
        }
        let Some(entry) = examiner.examine(line, logged) else {
            unsendable.push(line);
            continue;
        };
        let was_authentic = logged.answer.as_ref().is_some_and(|it| it.key.is_some());
        let log_decides =
            evidence == Evidence::SignatureOrLog || logged.unverifiable && !entry.resigned;
        if entry.is_forged() && was_authentic && !log_decides {
            wrong.push(line);
        }
        entries.push(entry);
    }
    for (kind, lines) in [
        (Kind::Unverifiable, unverifiable),
        (Kind::Unsendable, unsendable),
        (Kind::WrongSecret, wrong),
    ] {
        if !lines.is_empty() {
            return Err(ReplayError::new(kind).of_lines(lines));
        }
    }
    if entries.is_empty() {
        return Err(ReplayError::new(Kind::Empty));
    }
    entries.sort_by_key(|entry| entry.at);
    Ok(entries)
}

/// Examines the deliveries of the log.
struct Examiner<'s> {
    verifier: Option<Verifier>,
    secrets: &'s Secrets,
    signing: Signing,
    evidence: Evidence,
}

impl Examiner<'_> {
    fn examine(&self, line: usize, logged: &LoggedDelivery) -> Option<Entry> {
        let answer = logged.answer.as_ref();
        let mut entry = Entry {
            line,
            at: logged.received_at,
            timestamp: None,
            kind: EntryKind::Forged,
            secret: None,
            resigned: false,
            recorded: answer.map(|answer| (answer.status, answer.outcome.clone())),
            method: Method::from_bytes(logged.method.as_bytes()).ok()?,
            uri: logged.target.parse().ok()?,
            headers: headers(logged)?,
            body: logged.body.clone().unwrap_or_default(),
        };
        // Refuses a time that no timestamp can express.
        Timestamp::at(logged.received_at).ok()?;
        let head = logged.head().ok();
        let signed = head.as_ref().and_then(|head| head.timestamp());
        entry.timestamp = signed.map(|timestamp| timestamp.seconds());
        if let Some(kind) = head.and_then(|head| self.verify(&head, &entry)) {
            entry.kind = kind;
            entry.secret = self.secrets.signing(logged).cloned();
            entry.resigned = self.signing == Signing::Afresh && entry.secret.is_some();
            return Some(entry);
        }
        // Where the signature can't be checked any more, the log decides. A forged delivery is never signed.
        let was_refused = answer.is_some_and(|answer| answer.outcome == NOT_AUTHENTIC);
        let log_decides = logged.unverifiable || self.evidence == Evidence::SignatureOrLog;
        // Without its body, any signature would be that of another delivery.
        if logged.body.is_some() && log_decides && !was_refused && self.signing != Signing::Raw {
            let secret = self.secrets.signing(logged).cloned()?;
            entry.kind = self.signed_again(logged, &secret, &entry);
            entry.secret = Some(secret);
            entry.resigned = true;
        }
        Some(entry)
    }

    /// `None` where the signature is not right.
    fn verify(&self, head: &DeliveryHeaders<'_>, entry: &Entry) -> Option<EntryKind> {
        let verifier = self.verifier.as_ref()?;
        let verified = verifier.verify(head, &*entry.body, entry.at).ok()?;
        Some(EventIdentity::of(&verified).map_or(EntryKind::NoEvent, EntryKind::Event))
    }

    /// Returns the kind of a delivery after it is signed again.
    fn signed_again(&self, logged: &LoggedDelivery, secret: &Secret, entry: &Entry) -> EntryKind {
        let stamped: Vec<_> = stamp(secret, entry.at, &entry.body).collect();
        let own = |name: &str| stamped.iter().any(|(stamped, _)| *stamped == name);
        let others = logged.headers.iter().filter(|(name, _)| !own(name));
        let pairs = others.map(|(name, value)| (name.as_str(), &**value)).chain(
            stamped
                .iter()
                .map(|(name, value)| (*name, value.as_bytes())),
        );
        let head = DeliveryHeaders::from_pairs(pairs).ok();
        let kind = head.and_then(|head| self.verify(&head, entry));
        kind.unwrap_or(EntryKind::Forged)
    }
}

fn headers(logged: &LoggedDelivery) -> Option<HeaderMap> {
    let mut headers = HeaderMap::with_capacity(logged.headers.len());
    for (name, value) in &logged.headers {
        if is_of_the_connection(name) {
            continue;
        }
        let value = HeaderValue::from_maybe_shared(value.clone()).ok()?;
        headers.append(HeaderName::from_bytes(name.as_bytes()).ok()?, value);
    }
    Some(headers)
}
