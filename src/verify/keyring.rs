//! A key ring: live keys, their scope and the workspace that they are pinned to.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::secret::Secret;
use super::signature::{Key, Match, Tag, find_match};
use crate::clock::UnixSeconds;
use crate::config::{ConfigError, ConfigErrorKind as Kind};
use crate::scheme::{self, Scheme, Signatures, SignedHead};

/// The default name of a ring's first key.
const FIRST_KEY: &str = "primary";
/// The scope of a single ring that names none.
const DEFAULT_SCOPE: &str = "default";
const MAX_NAME_BYTES: usize = 256;

/// The live keys of one subscription: usually one secret, two while it is being rotated, four at
/// most.
///
/// A ring has a **scope**, the name under which its events are remembered. Events of different
/// scopes are separate, so that a holder of one subscription's secret can't make another's events
/// look handled. The rings of a map have the ids of their subscriptions as scopes; every single
/// ring has the scope `default` until one is named, by [`with_scope`](Self::with_scope) or
/// [`ReceiverBuilder::scope`](crate::ReceiverBuilder::scope). The scope never follows from a key:
/// rotation does not change which events are remembered.
///
/// ```
/// use hookgate::{KeyRing, Secret};
///
/// let ring = KeyRing::named("2026-11", Secret::new("whsec_made_up_new_secret")?)?
///     .with_key("2026-05", Secret::new("whsec_made_up_old_secret")?)?
///     .with_workspace("ws_1")?;
/// assert_eq!(ring.key_names().collect::<Vec<_>>(), ["2026-11", "2026-05"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct KeyRing {
    /// Never empty.
    pub(super) keys: Vec<Key>,
    /// The texts of the secrets, until the scheme is known: it says how a text becomes a key. A box
    /// is smaller than a list, and empty in each ring in use.
    texts: Box<[Secret]>,
    /// How the sender signs; `None` is the default scheme.
    scheme: Option<Arc<SchemeOfRing>>,
    /// The last timestamp that each key signs, if it has an end date.
    ends: [Option<UnixSeconds>; KeyRing::MAX_KEYS],
    /// The scope that was named for it.
    scope: Option<Arc<str>>,
    workspace: Option<Arc<str>>,
    /// The subscription that it serves, in a map or from a provider.
    pub(super) subscription: Option<Arc<str>>,
    /// Whether it stands in for the ring of an unknown subscription: a check with it takes the work
    /// of any other, and fails.
    pub(crate) is_decoy: bool,
}

impl KeyRing {
    /// The greatest number of live keys in a ring. Each is tried on every delivery, so each costs a
    /// pass over the body.
    pub const MAX_KEYS: usize = 4;

    /// Returns a ring of one key, named `primary`.
    pub fn new(secret: Secret) -> Self {
        Self::of_secret(FIRST_KEY.into(), secret)
    }

    /// Returns a ring of one key with this name. The name is reported with each delivery that the
    /// key verifies.
    ///
    /// # Errors
    /// `UnusableName`.
    pub fn named(name: &str, secret: Secret) -> Result<Self, ConfigError> {
        Ok(Self::of_secret(usable_name(name)?, secret))
    }

    /// Returns a ring of these keys, each with its name: for keys whose number is known only at run
    /// time, such as those of a settings file.
    ///
    /// ```
    /// use hookgate::{ConfigErrorKind, KeyRing, Secret};
    ///
    /// let texts = [("2026-11", "whsec_made_up_new_secret"), ("2026-05", "whsec_made_up_old_secret")];
    /// let keys: Result<Vec<_>, _> = texts.into_iter().map(|(name, text)| Ok((name, Secret::new(text)?))).collect();
    /// let ring = KeyRing::from_keys(keys?)?;
    /// assert_eq!(ring.key_names().collect::<Vec<_>>(), ["2026-11", "2026-05"]);
    ///
    /// let none: [(&str, Secret); 0] = [];
    /// assert_eq!(KeyRing::from_keys(none).unwrap_err().kind(), ConfigErrorKind::NoSecret);
    /// # Ok::<(), hookgate::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// `NoSecret` for an empty list, and those of [`with_key`](Self::with_key).
    pub fn from_keys<N: AsRef<str>>(
        keys: impl IntoIterator<Item = (N, Secret)>,
    ) -> Result<Self, ConfigError> {
        let mut keys = keys.into_iter();
        let (name, secret) = keys
            .next()
            .ok_or_else(|| ConfigError::new(Kind::NoSecret))?;
        keys.try_fold(
            Self::named(name.as_ref(), secret)?,
            |ring, (name, secret)| ring.with_key(name.as_ref(), secret),
        )
    }

    /// Adds a live key.
    ///
    /// # Errors
    /// `UnusableKeys`, `UnusableName`.
    pub fn with_key(mut self, name: &str, secret: Secret) -> Result<Self, ConfigError> {
        let name = usable_name(name)?;
        if self.keys.len() == Self::MAX_KEYS {
            return Err(unusable(
                "a ring holds at most 4 live keys: retire one first",
            ));
        }
        if self.keys.iter().any(|key| key.name == name) {
            let message = format!("two keys of one ring have the same name: {name:?}");
            return Err(unusable(message).about(&*name));
        }
        let key = Key::new(name, &secret);
        if self.keys.iter().any(|other| other.same(&key)) {
            return Err(unusable(
                "the same secret appears more than once in one ring",
            ));
        }
        self.keys.push(key);
        let mut texts = std::mem::take(&mut self.texts).into_vec();
        texts.push(secret);
        self.texts = texts.into();
        Ok(self)
    }

    /// Adds a key with an end date: a delivery that it signed is accepted if its timestamp, which
    /// is signed, is not after `end`. So a rotation ends by itself, and no one has to remember it.
    /// Set `end` at least 27 h after the sender got the new secret: until then, a retry may still
    /// be signed with the old one.
    ///
    /// ```
    /// use hookgate::clock::UnixSeconds;
    /// use hookgate::verify::{DeliveryHeaders, Signature, Timestamp, VerifyErrorKind};
    /// use hookgate::{KeyRing, Secret, Verifier};
    ///
    /// let old = Secret::new("whsec_made_up_old_secret")?;
    /// let end = UnixSeconds::new(1_763_690_000);
    /// let ring = KeyRing::named("2026-11", Secret::new("whsec_made_up_new_secret")?)?
    ///     .with_key_until("2026-05", old.clone(), end)?;
    /// let verifier = Verifier::new(ring);
    ///
    /// let verdict = |at: UnixSeconds| {
    ///     let timestamp = Timestamp::at(at).unwrap();
    ///     let signature = Signature::sign(&old, &timestamp, b"{}").to_header_value();
    ///     let head = DeliveryHeaders::from_pairs([
    ///         ("x-service-timestamp", timestamp.as_str()),
    ///         ("x-service-signature", signature.as_str()),
    ///     ])?;
    ///     verifier.verify(&head, b"{}", at).map(|verified| verified.key_name().to_owned())
    /// };
    /// assert_eq!(verdict(end).unwrap(), "2026-05");
    /// let after = UnixSeconds::new(1_763_690_001);
    /// assert_eq!(verdict(after).unwrap_err().kind(), VerifyErrorKind::KeyEnded);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Security
    /// A holder of the old secret can write an earlier timestamp, so forgeries are refused for
    /// certain once the window is over too, 300 s after the end date unless set;
    /// [`verify_stored`](crate::Receiver::verify_stored) has no window. If a secret has leaked,
    /// remove its key at once.
    ///
    /// # Errors
    /// Those of [`with_key`](Self::with_key).
    pub fn with_key_until(
        self,
        name: &str,
        secret: Secret,
        end: UnixSeconds,
    ) -> Result<Self, ConfigError> {
        let mut ring = self.with_key(name, secret)?;
        ring.ends[ring.keys.len() - 1] = Some(end);
        Ok(ring)
    }

    /// Gives the ring a scope. Rings that share a scope share their events: an event that one of
    /// them has handled is a duplicate for the others. Without this, a single ring has the scope
    /// `default`, and one in a map its subscription's id.
    ///
    /// It also serves a receiver that moves from one secret to a map of subscriptions: its
    /// remembered events are found again only under the old scope, so give that scope to the ring
    /// that was there before.
    ///
    /// ```
    /// use hookgate::{KeyRing, Secret, lookup::Keys};
    ///
    /// let before = KeyRing::new(Secret::new("whsec_made_up_for_orders")?);
    /// let keys = Keys::by_subscription([
    ///     ("wh_1", before.with_scope("default")?),
    ///     ("wh_2", KeyRing::new(Secret::new("whsec_made_up_for_invoices")?)),
    /// ])?;
    /// # let _ = keys;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Security
    /// A holder of one ring's secret can make events of every ring in its scope look handled.
    ///
    /// # Errors
    /// `UnusableName`.
    pub fn with_scope(mut self, scope: &str) -> Result<Self, ConfigError> {
        self.scope = Some(usable_name(scope)?);
        Ok(self)
    }

    /// Pins the ring to a workspace: a delivery whose signed body names another workspace is
    /// refused as not authentic.
    ///
    /// # Errors
    /// `UnusableName`.
    pub fn with_workspace(mut self, workspace_id: &str) -> Result<Self, ConfigError> {
        self.workspace = Some(usable_name(workspace_id)?);
        Ok(self)
    }

    /// Returns the names of the ring's keys.
    pub fn key_names(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|key| &*key.name)
    }

    /// Returns a decoy with this number of keys, but at least one.
    pub(crate) fn decoy(keys: usize) -> Arc<Self> {
        let keys = (0..keys.max(1)).map(|_| Key::decoy("".into()));
        Arc::new(Self {
            is_decoy: true,
            ..Self::with_keys(keys.collect())
        })
    }

    /// Returns the ring that a store has noted. Its key verifies nothing: the key that signed may
    /// no longer exist.
    pub(crate) fn from_stored(
        scope: &str,
        key_name: &str,
        subscription: Option<&str>,
        workspace: Option<&str>,
        scheme: &str,
    ) -> Self {
        Self {
            scheme: SchemeOfRing::named(scheme),
            scope: Some(scope.into()),
            workspace: workspace.map(Into::into),
            subscription: subscription.map(Into::into),
            is_decoy: true,
            ..Self::with_keys(vec![Key::decoy(key_name.into())])
        }
    }

    fn of_secret(name: Arc<str>, secret: Secret) -> Self {
        Self {
            texts: [secret.clone()].into(),
            ..Self::with_keys(vec![Key::new(name, &secret)])
        }
    }

    fn with_keys(keys: Vec<Key>) -> Self {
        Self {
            keys,
            texts: Box::default(),
            scheme: None,
            ends: [None; Self::MAX_KEYS],
            scope: None,
            workspace: None,
            subscription: None,
            is_decoy: false,
        }
    }

    /// Returns the ring as that of this subscription.
    pub(crate) fn with_subscription(mut self, id: &Arc<str>) -> Self {
        self.subscription = Some(Arc::clone(id));
        self
    }

    /// Returns the ring that takes the place of this one, with its scope and its workspace where it
    /// names none.
    pub(crate) fn succeeded_by(&self, mut ring: Self) -> Self {
        ring.scope = ring.scope.or_else(|| self.scope.clone());
        ring.workspace = ring.workspace.or_else(|| self.workspace.clone());
        ring.subscription.clone_from(&self.subscription);
        ring
    }

    pub(crate) fn scope(&self) -> &str {
        let own = self.scope.as_deref().or(self.subscription.as_deref());
        own.unwrap_or(DEFAULT_SCOPE)
    }

    pub(crate) fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }

    /// Returns whether the scope was named for this ring or its subscription, and is not the
    /// default of single rings.
    pub(crate) fn has_own_scope(&self) -> bool {
        self.scope.is_some() || self.subscription.is_some()
    }

    pub(crate) fn key_count(&self) -> usize {
        self.keys.len()
    }

    /// Returns the tag of each key over a whole body.
    pub(super) fn tags(&self, head: &SignedHead, body: &[u8]) -> impl Iterator<Item = Tag> {
        self.keys.iter().map(move |key| key.tag(head, body))
    }

    /// Returns the key that has signed, by the tag of each, and its signature. Every key is tried.
    pub(super) fn matched(
        &self,
        head: &SignedHead,
        signatures: &Signatures,
        tags: impl Iterator<Item = Tag>,
    ) -> Option<Match> {
        find_match(tags, signatures, |key| self.has_ended(key, head))
    }

    /// Returns whether this key had ended when the delivery was signed.
    pub(super) fn has_ended(&self, key: u8, head: &SignedHead) -> bool {
        let Some(end) = self.ends[usize::from(key)] else {
            return false;
        };
        let signed = head.timestamp.as_ref();
        signed.is_some_and(|signed| signed.seconds() > end)
    }

    /// Checks that the ring can serve this scheme.
    ///
    /// # Errors
    /// A secret is not of the scheme's form, or the ring asks for what the scheme does not sign.
    pub(crate) fn check_scheme(&self, scheme: &Scheme) -> Result<(), ConfigError> {
        if self.workspace.is_some() && !scheme.is_workspace() {
            let fault = "a ring is pinned to a workspace, which only the default scheme signs";
            return Err(scheme::unusable(scheme, fault));
        }
        if !scheme.has_timestamp() && self.ends.iter().any(Option::is_some) {
            let fault = "a key has an end date, which needs a signed timestamp";
            return Err(scheme::unusable(scheme, fault));
        }
        let mut texts = self.texts.iter();
        texts.try_for_each(|text| text.to_key(scheme.key_form()).map(drop))
    }

    /// Forgets the texts of the secrets: their keys are those of the default scheme.
    #[cfg(feature = "lookup")]
    pub(crate) fn forget_texts(&mut self) {
        self.texts = Box::default();
    }

    /// Computes the keys that the scheme asks for, and forgets the texts of the secrets.
    ///
    /// # Errors
    /// As [`check_scheme`](Self::check_scheme).
    pub(crate) fn set_scheme(&mut self, scheme: &Scheme) -> Result<(), ConfigError> {
        self.check_scheme(scheme)?;
        let texts = std::mem::take(&mut self.texts);
        for (key, text) in self.keys.iter_mut().zip(&texts) {
            key.key_with(text, scheme.key_form())?;
        }
        let is_other = !scheme.is_workspace();
        self.scheme = is_other.then(|| Arc::new(SchemeOfRing::Row(*scheme)));
        Ok(())
    }

    /// Returns how the sender signs; `None` where a store has noted only a name.
    pub(crate) fn scheme(&self) -> Option<&Scheme> {
        match self.scheme.as_deref() {
            None => Some(Scheme::workspace()),
            Some(SchemeOfRing::Row(scheme)) => Some(scheme),
            Some(SchemeOfRing::Noted(_)) => None,
        }
    }

    pub(crate) fn scheme_name(&self) -> &str {
        match self.scheme.as_deref() {
            None => Scheme::workspace().name(),
            Some(SchemeOfRing::Row(scheme)) => scheme.name(),
            Some(SchemeOfRing::Noted(name)) => name,
        }
    }

    /// Returns whether the two rings share a key. Compares MACs, so that no secret is kept for it.
    pub(crate) fn shares_a_key_with(&self, other: &Self) -> bool {
        let is_there = |key: &Key| other.keys.iter().any(|known| known.same(key));
        self.keys.iter().any(is_there)
    }
}

/// The scheme of a ring that is not the default one.
#[expect(clippy::large_enum_variant, reason = "it stands in an `Arc`")]
enum SchemeOfRing {
    Row(Scheme),
    /// The name that a store has noted, of a row that does not ship.
    Noted(Box<str>),
}

impl SchemeOfRing {
    fn named(name: &str) -> Option<Arc<Self>> {
        let row = Scheme::named(name);
        if row.is_some_and(|row| row.is_workspace()) {
            return None;
        }
        Some(Arc::new(
            row.map_or_else(|| Self::Noted(name.into()), Self::Row),
        ))
    }
}

impl From<Secret> for KeyRing {
    fn from(secret: Secret) -> Self {
        Self::new(secret)
    }
}

/// Keys as rows of a table: each with its name, its secret and its end date.
///
/// ```
/// use hookgate::{KeyRing, Secret, clock::UnixSeconds};
///
/// let ring = KeyRing::try_from(vec![
///     ("2026-11", Secret::new("whsec_made_up_new_secret")?, None),
///     ("2026-05", Secret::new("whsec_made_up_old_secret")?, Some(UnixSeconds::new(1_763_690_000))),
/// ])?;
/// assert_eq!(ring.key_names().collect::<Vec<_>>(), ["2026-11", "2026-05"]);
/// # Ok::<(), hookgate::ConfigError>(())
/// ```
impl<N: AsRef<str>> TryFrom<Vec<(N, Secret, Option<UnixSeconds>)>> for KeyRing {
    type Error = ConfigError;

    /// # Errors
    /// Those of [`from_keys`](Self::from_keys).
    fn try_from(keys: Vec<(N, Secret, Option<UnixSeconds>)>) -> Result<Self, ConfigError> {
        let ends: Vec<_> = keys.iter().map(|(_, _, end)| *end).collect();
        let mut ring = Self::from_keys(keys.into_iter().map(|(name, secret, _)| (name, secret)))?;
        for (slot, end) in ring.ends.iter_mut().zip(ends) {
            *slot = end;
        }
        Ok(ring)
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing")
            .field("keys", &self.keys)
            .field("scope", &self.scope())
            .field("workspace", &self.workspace)
            .finish()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", self.name)
    }
}

/// Returns the error of keys that do not fit together.
pub(crate) fn unusable(message: impl Into<Cow<'static, str>>) -> ConfigError {
    ConfigError::saying(Kind::UnusableKeys, message)
}

pub(crate) fn usable_name(name: &str) -> Result<Arc<str>, ConfigError> {
    let usable = (1..=MAX_NAME_BYTES).contains(&name.len())
        && !name.trim().is_empty()
        && !name.chars().any(char::is_control);
    let name = usable.then(|| name.into());
    name.ok_or_else(|| ConfigError::new(Kind::UnusableName))
}

/// Checks that no secret belongs to two scopes: a delivery to one could be replayed to the other,
/// by changing only the unsigned subscription id. Secrets are looked up by mark: comparing each
/// with each would take minutes where there are thousands.
pub(crate) fn one_scope_a_secret<'r>(
    rings: impl Iterator<Item = &'r Arc<KeyRing>>,
) -> Result<(), ConfigError> {
    let mut scopes = HashMap::new();
    for ring in rings {
        let mut marks = ring.keys.iter().map(|key| key.mark());
        if marks.any(|mark| *scopes.entry(mark).or_insert(ring.scope()) != ring.scope()) {
            return Err(unusable(
                "the same secret appears under two scopes: give each subscription its own, or let them share a scope on purpose",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(tail: &str) -> Secret {
        Secret::new(&format!("whsec_made_up_secret_{tail}")).unwrap()
    }

    #[test]
    fn a_ring_shows_the_names_of_its_keys_and_no_secret() {
        let ring = KeyRing::named("new", secret("1")).unwrap();
        let ring = ring.with_key("old", secret("2")).unwrap();
        assert_eq!(ring.key_names().collect::<Vec<_>>(), ["new", "old"]);
        let shown = format!("{ring:?}");
        assert!(
            shown.contains(r#"[Key("new"), Key("old")]"#) && !shown.contains("whsec_"),
            "{shown}"
        );
    }

    #[test]
    fn a_ring_refuses_what_would_be_ambiguous() {
        let ring = || KeyRing::named("a", secret("1")).unwrap();
        let kind = |result: Result<KeyRing, ConfigError>| result.unwrap_err().kind();
        let says = |result: Result<KeyRing, ConfigError>, message: &str| {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), Kind::UnusableKeys);
            assert!(error.to_string().contains(message), "{error}");
        };
        let taken = ring().with_key("a", secret("2")).unwrap_err();
        assert_eq!(
            (taken.kind(), taken.name()),
            (Kind::UnusableKeys, Some("a"))
        );
        says(ring().with_key("b", secret("1")), "the same secret");
        assert_eq!(kind(ring().with_scope(" ")), Kind::UnusableName);
        assert_eq!(kind(ring().with_workspace("a\nb")), Kind::UnusableName);
        let full = ["b", "c", "d"].iter().fold(ring(), |ring, name| {
            ring.with_key(name, secret(name)).unwrap()
        });
        says(full.with_key("e", secret("e")), "at most 4");
        let of =
            |names: &[&str]| KeyRing::from_keys(names.iter().map(|name| (*name, secret(name))));
        let names = ["a", "b", "c", "d"];
        assert!(of(&names).unwrap().key_names().eq(names));
        assert_eq!(kind(of(&[])), Kind::NoSecret);
        says(of(&["a", "b", "a"]), "the same name: \"a\"");
        says(of(&["a", "b", "c", "d", "e"]), "at most 4");
    }

    #[test]
    fn a_key_ends_by_the_signed_timestamp_whether_the_body_comes_whole_or_in_pieces() {
        use crate::verify::{DeliveryHeaders, Signature, Timestamp, VerifyErrorKind};

        let end = UnixSeconds::new(1_763_690_000);
        let ring = KeyRing::named("new", secret("1")).unwrap();
        let ring = ring.with_key_until("old", secret("2"), end).unwrap();
        let verifier = crate::Verifier::new(ring);
        for (signed_by, at, expected) in [
            ("2", 1_763_690_000, Ok("old")),
            ("2", 1_763_690_001, Err(VerifyErrorKind::KeyEnded)),
            ("1", 1_763_690_001, Ok("new")),
            ("3", 1_763_690_001, Err(VerifyErrorKind::SignatureMismatch)),
        ] {
            let (now, timestamp) = (UnixSeconds::new(at), Timestamp::at(UnixSeconds::new(at)));
            let timestamp = timestamp.unwrap();
            let signature = Signature::sign(&secret(signed_by), &timestamp, b"body");
            let signature = signature.to_header_value();
            let pairs = [
                ("x-service-timestamp", timestamp.as_str()),
                ("x-service-signature", signature.as_str()),
            ];
            let head = DeliveryHeaders::from_pairs(pairs).unwrap();
            let whole = verifier.verify(&head, b"body", now);
            let whole = whole.map(|verified| verified.key_name().to_owned());
            let mut body = verifier.begin(&head, now, 4).unwrap();
            for piece in ["bo", "dy"] {
                body.push(piece.into()).unwrap();
            }
            let pieces = body.finish().map(|proof| proof.key_name().to_owned());
            for found in [whole, pieces] {
                let found = found.map_err(|error| error.kind());
                assert_eq!(found, expected.map(str::to_owned), "{signed_by} at {at}");
            }
        }
    }
}
