//! A delivery of the log, examined before it is replayed: its event, and whether it was ever authentic.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};

use super::mode::Signing;
use super::secrets::{Secrets, stamp};
use crate::clock::UnixSeconds;
use crate::dedupe::EventKey;
use crate::error::{ReplayError, ReplayErrorKind as Kind};
use crate::event::EventHead;
use crate::lookup::Verifier;
use crate::testing::log::LoggedDelivery;
use crate::testing::transport::is_of_the_connection;
use crate::verify::{DeliveryHeaders, Secret, Timestamp, Verified, Window};

/// The outcome of a delivery that was not authentic.
const NOT_AUTHENTIC: &str = "not_authentic";

/// The evidence that decides whether a delivery was authentic.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Belief {
    /// Its signature, under the secrets of the log.
    Signature,
    /// Its signature, or else the answer in the log: for a receiver whose secret differs from the log's.
    Log,
}

/// A delivery of the log, ready to be sent.
pub(super) struct Entry {
    /// Its line in the log, from 1.
    pub(super) line: usize,
    /// When it was received.
    pub(super) at: UnixSeconds,
    /// Its own timestamp, where it has a readable one.
    pub(super) timestamp: Option<UnixSeconds>,
    pub(super) standing: Standing,
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
pub(super) enum Standing {
    Event(Named),
    /// Authentic, but no event that has a usable id and type.
    NoEvent,
    /// Not authentic, at any time.
    Forged,
}

/// An event, as its signed body names it.
#[derive(Clone)]
pub(super) struct Named {
    pub(super) key: EventKey,
    pub(super) scope: String,
    pub(super) id: String,
    pub(super) event_type: String,
}

impl Named {
    pub(super) fn of(verified: &Verified<impl crate::verify::SignedBytes>) -> Option<Self> {
        let head = EventHead::of(verified).ok()?;
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
    pub(super) fn event(&self) -> Option<&Named> {
        match &self.standing {
            Standing::Event(named) => Some(named),
            _ => None,
        }
    }

    pub(super) fn is_forged(&self) -> bool {
        matches!(self.standing, Standing::Forged)
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
    belief: Belief,
) -> Result<Vec<Entry>, ReplayError> {
    let any_age = Window::default()
        .with_past(Duration::MAX)
        .with_ahead(Duration::MAX);
    // In this case every delivery is sent as recorded, so nothing has to be known of it.
    let verifier = if belief == Belief::Log && !secrets.are_given() {
        None
    } else {
        Some(Verifier::new(secrets.keys()?).with_window(any_age))
    };
    let examiner = Examiner {
        verifier,
        secrets,
        signing,
        belief,
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
        let Some(entry) = examiner.look_at(line, logged) else {
            unsendable.push(line);
            continue;
        };
        let was_authentic = logged.answer.as_ref().is_some_and(|it| it.key.is_some());
        let believed = belief == Belief::Log || logged.unverifiable && !entry.resigned;
        if entry.is_forged() && was_authentic && !believed {
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
    belief: Belief,
}

impl Examiner<'_> {
    fn look_at(&self, line: usize, logged: &LoggedDelivery) -> Option<Entry> {
        let answer = logged.answer.as_ref();
        let mut entry = Entry {
            line,
            at: logged.received_at,
            timestamp: None,
            standing: Standing::Forged,
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
        entry.timestamp = head.as_ref().map(|head| head.timestamp().seconds());
        if let Some(standing) = head.and_then(|head| self.standing(&head, &entry)) {
            entry.standing = standing;
            entry.secret = self.secrets.signing(logged).cloned();
            entry.resigned = self.signing == Signing::Afresh && entry.secret.is_some();
            return Some(entry);
        }
        // Where the signature can't be checked any more, the log decides. A forged delivery is never signed.
        let was_refused = answer.is_some_and(|answer| answer.outcome == NOT_AUTHENTIC);
        let believed = logged.unverifiable || self.belief == Belief::Log;
        if believed && !was_refused && self.signing != Signing::Raw {
            let secret = self.secrets.signing(logged).cloned()?;
            entry.standing = self.signed_again(logged, &secret, &entry);
            entry.secret = Some(secret);
            entry.resigned = true;
        }
        Some(entry)
    }

    /// `None` where the signature is not right.
    fn standing(&self, head: &DeliveryHeaders<'_>, entry: &Entry) -> Option<Standing> {
        let verifier = self.verifier.as_ref()?;
        let verified = verifier.verify(head, &*entry.body, entry.at).ok()?;
        Some(Named::of(&verified).map_or(Standing::NoEvent, Standing::Event))
    }

    /// Returns the kind of a delivery after it is signed again.
    fn signed_again(&self, logged: &LoggedDelivery, secret: &Secret, entry: &Entry) -> Standing {
        let stamped: Vec<_> = stamp(secret, entry.at, &entry.body).collect();
        let own = |name: &str| stamped.iter().any(|(stamped, _)| *stamped == name);
        let others = logged.headers.iter().filter(|(name, _)| !own(name));
        let pairs = others.map(|(name, value)| (name.as_str(), &**value)).chain(
            stamped
                .iter()
                .map(|(name, value)| (*name, value.as_bytes())),
        );
        let head = DeliveryHeaders::from_pairs(pairs).ok();
        let standing = head.and_then(|head| self.standing(&head, entry));
        standing.unwrap_or(Standing::Forged)
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
