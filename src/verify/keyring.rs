//! A key ring: live keys, their scope and the workspace that they are pinned to.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::secret::Secret;
use super::signature::{MOST_KEYS, MacKey};
use crate::config::{ConfigError, ConfigErrorKind as Kind};

/// The default name of a ring's first key.
const FIRST_KEY: &str = "primary";
const MAX_NAME_BYTES: usize = 256;

/// The live keys of one subscription: usually one secret, two while it is being rotated, four at most.
///
/// A ring has a **scope**, the name under which its events are remembered. Events of different scopes are separate, so that a
/// holder of one subscription's secret can't make another's events look handled. The rings of a map have the ids of their
/// subscriptions as scopes; every single ring has the scope `default` until one is named, by [`with_scope`](Self::with_scope) or
/// [`ReceiverBuilder::scope`](crate::ReceiverBuilder::scope). The scope never follows from a key: rotation does not change which
/// events are remembered.
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
#[derive(Debug)]
#[must_use]
pub struct KeyRing {
    keys: Vec<Key>,
    scope: Option<Arc<str>>,
    workspace: Option<Arc<str>>,
}

impl KeyRing {
    /// The greatest number of live keys in a ring. Each is tried on every delivery, so each costs a pass over the body.
    pub const MAX_KEYS: usize = MOST_KEYS;

    /// Returns a ring of one key, named `primary`.
    pub fn new(secret: Secret) -> Self {
        Self::of(FIRST_KEY.into(), secret)
    }

    /// Returns a ring of one key with this name. The name is reported with each delivery that the key verifies.
    ///
    /// # Errors
    /// `UnusableName`.
    pub fn named(name: &str, secret: Secret) -> Result<Self, ConfigError> {
        Ok(Self::of(usable_name(name)?, secret))
    }

    /// Returns a ring of these keys, each with its name: for keys whose number is known only at run time, such as those of a
    /// settings file.
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
        let mut ring: Option<Self> = None;
        for (name, secret) in keys {
            ring = Some(match ring {
                None => Self::named(name.as_ref(), secret)?,
                Some(ring) => ring.with_key(name.as_ref(), secret)?,
            });
        }
        ring.ok_or_else(|| ConfigError::new(Kind::NoSecret))
    }

    /// Adds a live key.
    ///
    /// # Errors
    /// `TooManyKeys`, `NameTaken`, `SecretTwiceInRing`, `UnusableName`.
    pub fn with_key(mut self, name: &str, secret: Secret) -> Result<Self, ConfigError> {
        let name = usable_name(name)?;
        if self.keys.len() == Self::MAX_KEYS {
            return Err(ConfigError::new(Kind::TooManyKeys));
        }
        if self.keys.iter().any(|key| key.name == name) {
            return Err(ConfigError::new(Kind::NameTaken).about(&*name));
        }
        let key = Key::new(name, secret);
        if self.keys.iter().any(|other| other.mac.same(&key.mac)) {
            return Err(ConfigError::new(Kind::SecretTwiceInRing));
        }
        self.keys.push(key);
        Ok(self)
    }

    /// Gives the ring a scope. Rings that share a scope share their events: an event that one of them has handled is a duplicate
    /// for the others. Without this, a single ring has the scope `default`, and one in a map its subscription's id.
    ///
    /// It also serves a receiver that moves from one secret to a map of subscriptions: its remembered events are found again only
    /// under the old scope, so give that scope to the ring that was there before.
    ///
    /// ```
    /// use hookgate::{KeyRing, Keys, Secret};
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

    /// Pins the ring to a workspace: a delivery whose signed body names another workspace is refused as not authentic.
    ///
    /// # Errors
    /// `UnusableName`.
    pub fn with_workspace(mut self, workspace_id: &str) -> Result<Self, ConfigError> {
        self.workspace = Some(usable_name(workspace_id)?);
        Ok(self)
    }

    /// Returns whether a scope was named for it.
    pub(crate) fn names_its_scope(&self) -> bool {
        self.scope.is_some()
    }

    /// Returns the names of the ring's keys.
    pub fn key_names(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|key| &*key.name)
    }

    fn of(name: Arc<str>, secret: Secret) -> Self {
        Self {
            keys: vec![Key::new(name, secret)],
            scope: None,
            workspace: None,
        }
    }
}

impl From<Secret> for KeyRing {
    fn from(secret: Secret) -> Self {
        Self::new(secret)
    }
}

/// A ring in use, whose scope is fixed.
#[derive(Debug)]
pub(crate) struct Ring {
    /// Never empty.
    pub(super) keys: Vec<Key>,
    pub(super) scope: Arc<str>,
    /// Whether the scope was named for this ring or its subscription, and is not the default of single rings.
    has_own_scope: bool,
    pub(super) workspace: Option<Arc<str>>,
    pub(super) subscription: Option<Arc<str>>,
}

impl Ring {
    pub(crate) fn new(
        ring: KeyRing,
        default_scope: Arc<str>,
        subscription: Option<Arc<str>>,
    ) -> Self {
        Self {
            keys: ring.keys,
            has_own_scope: ring.scope.is_some() || subscription.is_some(),
            scope: ring.scope.unwrap_or(default_scope),
            workspace: ring.workspace,
            subscription,
        }
    }

    /// Returns the ring of a subscription in a map: its scope is the subscription's id, unless the ring names one.
    pub(crate) fn of_subscription(id: &Arc<str>, ring: KeyRing) -> Self {
        Self::new(ring, Arc::clone(id), Some(Arc::clone(id)))
    }

    /// Returns a decoy ring of no subscription, with this number of keys.
    pub(crate) fn decoy(keys: usize) -> Self {
        let key = || Key {
            name: "".into(),
            mac: MacKey::decoy(),
        };
        Self {
            keys: std::iter::repeat_with(key).take(keys).collect(),
            scope: "".into(),
            has_own_scope: true,
            workspace: None,
            subscription: None,
        }
    }

    /// Returns the ring that an inbox has noted. Its key verifies nothing: the key that signed may no longer exist.
    #[cfg(feature = "inbox")]
    pub(super) fn noted(noted: StoredRing) -> Self {
        Self {
            keys: vec![Key {
                name: noted.key_name.into(),
                mac: MacKey::decoy(),
            }],
            scope: noted.scope.into(),
            has_own_scope: true,
            workspace: noted.workspace.map(Into::into),
            subscription: noted.subscription.map(Into::into),
        }
    }

    pub(crate) fn has_own_scope(&self) -> bool {
        self.has_own_scope
    }

    pub(crate) fn key_count(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn succeeded_by(&self, mut ring: KeyRing) -> Self {
        ring.workspace = ring.workspace.or_else(|| self.workspace.clone());
        if self.has_own_scope {
            ring.scope = ring.scope.or_else(|| Some(Arc::clone(&self.scope)));
        }
        Self::new(ring, Arc::clone(&self.scope), self.subscription.clone())
    }

    /// Returns whether the two rings share a key. Compares MACs, so that no secret is kept for it.
    pub(crate) fn shares_a_key_with(&self, other: &Self) -> bool {
        let is_there = |key: &Key| other.keys.iter().any(|known| known.mac.same(&key.mac));
        self.keys.iter().any(is_there)
    }
}

/// The values of a proof that an inbox records.
#[cfg(feature = "inbox")]
pub(crate) struct StoredRing {
    pub(crate) scope: String,
    pub(crate) key_name: String,
    pub(crate) subscription: Option<String>,
    pub(crate) workspace: Option<String>,
}

/// A live key with its name.
pub(super) struct Key {
    pub(super) name: Arc<str>,
    pub(super) mac: MacKey,
}

impl Key {
    /// Keys the MAC once; the secret's text is wiped here.
    fn new(name: Arc<str>, secret: Secret) -> Self {
        Self {
            name,
            mac: MacKey::new(&secret),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", self.name)
    }
}

pub(crate) fn usable_name(name: &str) -> Result<Arc<str>, ConfigError> {
    let usable = (1..=MAX_NAME_BYTES).contains(&name.len())
        && !name.trim().is_empty()
        && !name.chars().any(char::is_control);
    if usable {
        Ok(name.into())
    } else {
        Err(ConfigError::new(Kind::UnusableName))
    }
}

/// The scope of each secret of a map.
///
/// If a secret belonged to two scopes, a delivery to one could be replayed to the other, by changing only the unsigned
/// subscription id. Secrets are looked up by mark: comparing each with each would take minutes where there are thousands.
#[derive(Default)]
pub(crate) struct Scopes(HashMap<[u8; 32], Arc<str>>);

impl Scopes {
    pub(crate) fn add(&mut self, ring: &Ring) -> Result<(), ConfigError> {
        for key in &ring.keys {
            let scope = self.0.entry(key.mac.mark());
            if *scope.or_insert_with(|| Arc::clone(&ring.scope)) != ring.scope {
                return Err(ConfigError::new(Kind::SecretInTwoScopes));
            }
        }
        Ok(())
    }
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
        let taken = ring().with_key("a", secret("2")).unwrap_err();
        assert_eq!((taken.kind(), taken.name()), (Kind::NameTaken, Some("a")));
        assert_eq!(
            kind(ring().with_key("b", secret("1"))),
            Kind::SecretTwiceInRing
        );
        assert_eq!(kind(ring().with_scope(" ")), Kind::UnusableName);
        assert_eq!(kind(ring().with_workspace("a\nb")), Kind::UnusableName);
        let full = ["b", "c", "d"].iter().fold(ring(), |ring, name| {
            ring.with_key(name, secret(name)).unwrap()
        });
        assert_eq!(kind(full.with_key("e", secret("e"))), Kind::TooManyKeys);
        let of =
            |names: &[&str]| KeyRing::from_keys(names.iter().map(|name| (*name, secret(name))));
        let names = ["a", "b", "c", "d"];
        assert!(of(&names).unwrap().key_names().eq(names));
        assert_eq!(kind(of(&[])), Kind::NoSecret);
        assert_eq!(kind(of(&["a", "b", "a"])), Kind::NameTaken);
        assert_eq!(kind(of(&["a", "b", "c", "d", "e"])), Kind::TooManyKeys);
    }
}
