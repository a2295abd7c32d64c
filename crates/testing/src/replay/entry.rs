//! A delivery of the log, examined before it is replayed: its event, and whether it was ever
//! authentic. And the secrets of the log, which verify its deliveries and sign them again.

use std::time::Duration;

use bytes::Bytes;
use hookgate::{
    KeyRing, Scheme, Secret, Verifier,
    clock::UnixSeconds,
    dedupe::EventKey,
    event::EventHead,
    lookup::Keys,
    verify::{DeliveryHeaders, Timestamp, Window},
};
use hookgate_record::LoggedDelivery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};

use super::error::{ReplayError, ReplayErrorKind as Kind};
use crate::log::{pairs, verifier_of};
use crate::signer::Signer;
use crate::transport::is_of_the_connection;

/// The outcome of a delivery that was not authentic.
const NOT_AUTHENTIC: &str = "not_authentic";

/// The signatures with which the deliveries are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signing {
    /// The recorded ones. Redacted deliveries are signed again, where that is allowed.
    Recorded { redacted_too: bool },
    /// Signed for the moment at which they are sent.
    Afresh,
    /// The recorded ones, at another time.
    Raw { at: Option<UnixSeconds> },
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
    scheme: Scheme,
    /// The id in its header, by a scheme that signs it there.
    id: Option<String>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
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

    /// Returns the request, signed for `signed_at`, or with the recorded signature where that is
    /// `None`.
    pub(super) fn request(&self, signed_at: Option<UnixSeconds>) -> Request<Bytes> {
        let mut request = Request::new(self.body.clone());
        request.method_mut().clone_from(&self.method);
        request.uri_mut().clone_from(&self.uri);
        request.headers_mut().clone_from(&self.headers);
        if let (Some(at), Some(secret)) = (signed_at, &self.secret) {
            for (name, value) in self.stamp(secret, at) {
                if let Ok(value) = HeaderValue::try_from(value) {
                    request.headers_mut().insert(name, value);
                }
            }
        }
        request
    }

    /// Returns the headers that sign the delivery for this time.
    fn stamp(&self, secret: &Secret, at: UnixSeconds) -> Vec<(&'static str, String)> {
        // The service writes no time before 1970 and none of more than 16 digits, and a signer
        // would panic.
        let at = UnixSeconds::new(at.as_i64().clamp(1, 9_999_999_999_999_999));
        let signer = Signer::new(secret.clone()).scheme(self.scheme).at(at);
        let (_, mut headers) = signer.signed(&self.body, self.id.as_deref());
        headers.retain(|(name, _)| Signer::decides(&self.scheme, name));
        headers
    }
}

/// Examines every delivery that is to be replayed, and sorts them by the time at which they were
/// received. Without a right signature a delivery was never authentic; but with `or_log` the answer
/// in the log decides in its place, for a receiver whose secret differs from the log's.
///
/// A delivery is logged when it is answered, so a slow one may stand behind one that was received
/// later.
pub(super) fn examine<'l>(
    deliveries: impl Iterator<Item = (usize, &'l LoggedDelivery)>,
    secrets: &Secrets,
    signing: Signing,
    or_log: bool,
) -> Result<Vec<Entry>, ReplayError> {
    let any_age = Window::default()
        .with_past(Duration::MAX)
        .with_ahead(Duration::MAX);
    // Without secrets every delivery is sent as recorded, so nothing has to be known of it.
    let verifier = if or_log && !secrets.are_given() {
        None
    } else {
        let verifier = verifier_of(secrets.scheme, secrets.keys()?, any_age);
        Some(verifier.map_err(|error| ReplayError::new(Kind::Keys).caused_by(error))?)
    };
    let keeps_recorded = Signing::Recorded {
        redacted_too: false,
    };
    let mut entries = Vec::new();
    let [mut unverifiable, mut wrong, mut unsendable] = [const { Vec::new() }; 3];
    for (line, logged) in deliveries {
        if logged.unverifiable && signing == keeps_recorded {
            unverifiable.push(line);
            continue;
        }
        let log_decides = or_log || logged.unverifiable;
        let entry = Entry::new(line, logged, secrets.scheme);
        let entry = entry
            .and_then(|it| it.examined(verifier.as_ref(), secrets, signing, log_decides, logged));
        let Some(entry) = entry else {
            unsendable.push(line);
            continue;
        };
        let was_authentic = logged.answer.as_ref().is_some_and(|it| it.key.is_some());
        let is_unknown = or_log || logged.unverifiable && !entry.resigned;
        if entry.is_forged() && was_authentic && !is_unknown {
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

impl Entry {
    /// `None` where no request can be made of it, or its time is one that no timestamp can express.
    fn new(line: usize, logged: &LoggedDelivery, scheme: Scheme) -> Option<Self> {
        Timestamp::at(logged.received_at).ok()?;
        let mut headers = HeaderMap::with_capacity(logged.headers.len());
        let kept = logged.headers.iter();
        for (name, value) in kept.filter(|(name, _)| !is_of_the_connection(name)) {
            let value = HeaderValue::from_maybe_shared(value.clone()).ok()?;
            headers.append(HeaderName::from_bytes(name.as_bytes()).ok()?, value);
        }
        let answer = logged.answer.as_ref();
        let id = scheme.signed_id_header().and_then(|name| headers.get(name));
        Some(Self {
            scheme,
            id: id.and_then(|id| id.to_str().ok()).map(str::to_owned),
            line,
            at: logged.received_at,
            timestamp: None,
            kind: EntryKind::Forged,
            secret: None,
            resigned: false,
            recorded: answer.map(|answer| (answer.status, answer.outcome.clone())),
            method: Method::from_bytes(logged.method.as_bytes()).ok()?,
            uri: logged.target.parse().ok()?,
            headers,
            body: logged.body.clone().unwrap_or_default(),
        })
    }

    /// `None` where it has to be signed again, and no secret is its own.
    fn examined(
        mut self,
        verifier: Option<&Verifier>,
        secrets: &Secrets,
        signing: Signing,
        log_decides: bool,
        logged: &LoggedDelivery,
    ) -> Option<Self> {
        let secret = secrets.signing(logged).cloned();
        if let Ok(head) = DeliveryHeaders::with_scheme(&secrets.scheme, pairs(logged)) {
            self.timestamp = head.timestamp().map(|timestamp| timestamp.seconds());
            if let Some(kind) = self.kind_by(verifier, &head) {
                self.resigned = signing == Signing::Afresh && secret.is_some();
                (self.kind, self.secret) = (kind, secret);
                return Some(self);
            }
        }
        // Where the signature can't be checked any more, the log decides. A forged delivery is
        // never signed.
        let was_refused = self
            .recorded
            .as_ref()
            .is_some_and(|it| it.1 == NOT_AUTHENTIC);
        if log_decides && !was_refused && !matches!(signing, Signing::Raw { .. }) {
            let secret = secret?;
            let stamped = self.stamp(&secret, self.at);
            let is_stamped = |name: &str| {
                stamped
                    .iter()
                    .any(|(stamped_name, _)| *stamped_name == name)
            };
            let others = logged.headers.iter().filter(|(name, _)| !is_stamped(name));
            let others = others.map(|(name, value)| (name.as_str(), &**value));
            let stamped = stamped
                .iter()
                .map(|(name, value)| (*name, value.as_bytes()));
            let head = DeliveryHeaders::with_scheme(&secrets.scheme, others.chain(stamped));
            let kind = head.ok().and_then(|head| self.kind_by(verifier, &head));
            self.kind = kind.unwrap_or(EntryKind::Forged);
            (self.secret, self.resigned) = (Some(secret), true);
        }
        Some(self)
    }

    /// `None` where the signature is not right.
    fn kind_by(
        &self,
        verifier: Option<&Verifier>,
        head: &DeliveryHeaders<'_>,
    ) -> Option<EntryKind> {
        let verified = verifier?.verify(head, &*self.body, self.at).ok()?;
        let Ok(head) = EventHead::from_verified(&verified) else {
            return Some(EntryKind::NoEvent);
        };
        let (scope, id) = (verified.scope(), head.id.as_str());
        Some(EntryKind::Event(EventIdentity {
            key: EventKey::new(scope, id),
            scope: scope.to_owned(),
            id: id.to_owned(),
            event_type: head.event_type.as_str().to_owned(),
        }))
    }
}

/// The scheme, the secrets and keys, as the caller gave them.
#[derive(Clone)]
pub(super) struct Secrets {
    pub(super) scheme: Scheme,
    ring: Vec<(String, Secret)>,
    pub(super) by_subscription: Vec<(String, Secret)>,
    /// These verify in place of the secrets.
    pub(super) keys: Option<Keys>,
}

impl Secrets {
    pub(super) fn new() -> Self {
        Self {
            scheme: Scheme::WORKSPACE,
            ring: Vec::new(),
            by_subscription: Vec::new(),
            keys: None,
        }
    }

    pub(super) fn add(&mut self, name: Option<&str>, secret: Secret) {
        let name = match name {
            Some(name) => name.to_owned(),
            None if self.ring.is_empty() => "primary".to_owned(),
            None => format!("secret {}", self.ring.len() + 1),
        };
        self.ring.push((name, secret));
    }

    pub(super) fn are_given(&self) -> bool {
        !self.ring.is_empty() || !self.by_subscription.is_empty() || self.keys.is_some()
    }

    /// The keys that verify.
    pub(super) fn keys(&self) -> Result<Keys, ReplayError> {
        if let Some(keys) = &self.keys {
            return Ok(keys.clone());
        }
        let unusable = |error| ReplayError::new(Kind::Keys).caused_by(error);
        if self.by_subscription.is_empty() {
            if self.ring.is_empty() {
                return Err(ReplayError::new(Kind::NoSecret));
            }
            let ring = KeyRing::from_keys(self.ring.iter().cloned()).map_err(unusable)?;
            return Ok(Keys::single(ring));
        }
        if !self.ring.is_empty() {
            return Err(ReplayError::new(Kind::Keys));
        }
        let rings = self.by_subscription.iter();
        let rings = rings.map(|(id, secret)| (id, secret.clone()));
        Keys::by_subscription(rings).map_err(unusable)
    }

    /// Returns the secret that signs this delivery again: that of its subscription, or the key of
    /// the ring that had signed it, else the first.
    fn signing(&self, logged: &LoggedDelivery) -> Option<&Secret> {
        let named = |list: &'_ [(String, Secret)], name: &[u8]| {
            list.iter().position(|(other, _)| other.as_bytes() == name)
        };
        if !self.by_subscription.is_empty() {
            // With a single subscription, its secret also serves deliveries without a subscription
            // id.
            let header = self.scheme.subscription_header();
            let index = match header.and_then(|name| logged.header(name)) {
                Some(id) => named(&self.by_subscription, id)?,
                None if self.by_subscription.len() == 1 => 0,
                None => return None,
            };
            return Some(&self.by_subscription[index].1);
        }
        let key = logged
            .answer
            .as_ref()
            .and_then(|answer| answer.key.as_deref());
        let index = key.and_then(|key| named(&self.ring, key.as_bytes()));
        self.ring.get(index.unwrap_or(0)).map(|(_, secret)| secret)
    }
}
