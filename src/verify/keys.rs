//! The rings that are live, by subscription, replaceable while the receiver runs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use super::headers::WEBHOOK_ID;
use super::keyring::{Key, KeyRing, Ring, usable_name};
use crate::error::{HeaderError, HeaderErrorKind, KeysError, KeysErrorKind as Kind};

/// The scope of a single ring where none is given.
const DEFAULT_SCOPE: &str = "default";

/// The keys that are live right now: one ring for everything, or a ring for each subscription.
///
/// Clones share their rings. Keep one beside the receiver to replace a ring while deliveries arrive: a delivery that has
/// begun ends under the keys it began with, the next one sees the new ring.
///
/// ```
/// use hookgate::{KeyRing, Keys, Secret};
///
/// let keys = Keys::by_subscription([
///     ("wh_1", KeyRing::new(Secret::new("whsec_made_up_for_orders")?)),
///     ("wh_2", KeyRing::new(Secret::new("whsec_made_up_for_invoices")?)),
/// ])?;
/// keys.replace_subscription("wh_2", KeyRing::new(Secret::new("whsec_made_up_successor")?))?;
/// assert!(keys.remove_subscription("wh_1")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Keys(Arc<Shared>);

struct Shared {
    table: RwLock<Table>,
    /// Stands in for the ring of an unknown subscription, so that its deliveries cost the same work.
    nobody: Arc<Ring>,
}

enum Table {
    Single(Arc<Ring>),
    BySubscription(HashMap<Arc<str>, Arc<Ring>>),
}

impl Keys {
    /// One ring for every delivery. `X-Service-Webhook-Id` is then not looked at.
    #[must_use]
    pub fn single(ring: impl Into<KeyRing>) -> Self {
        let ring = Ring::new(ring.into(), DEFAULT_SCOPE.into(), None);
        Self::of(Table::Single(Arc::new(ring)))
    }

    /// A ring for each subscription id, as in `X-Service-Webhook-Id`. The header is required once there is
    /// more than one.
    ///
    /// # Errors
    /// `NoKeys`, `SubscriptionTaken`, `SecretInTwoScopes`, `UnusableName`.
    pub fn by_subscription<I, R>(rings: impl IntoIterator<Item = (I, R)>) -> Result<Self, KeysError>
    where
        I: AsRef<str>,
        R: Into<KeyRing>,
    {
        let mut map = HashMap::new();
        for (id, ring) in rings {
            let id = usable_name(id.as_ref())?;
            let ring = Ring::of_subscription(&id, ring.into());
            refuse_shared_secret(&map, &id, &ring)?;
            match map.entry(id) {
                Entry::Vacant(free) => free.insert(Arc::new(ring)),
                Entry::Occupied(taken) => {
                    let id = taken.key().to_string();
                    return Err(KeysError::new(Kind::SubscriptionTaken(id)));
                }
            };
        }
        if map.is_empty() {
            return Err(KeysError::new(Kind::NoKeys));
        }
        Ok(Self::of(Table::BySubscription(map)))
    }

    /// Replaces the single ring. A scope or workspace that the new ring does not name is taken over from the old one.
    ///
    /// # Errors
    /// `BySubscription` where rings are held by subscription id.
    pub fn replace(&self, ring: impl Into<KeyRing>) -> Result<(), KeysError> {
        let mut table = self.0.table.write().unwrap_or_else(PoisonError::into_inner);
        match &mut *table {
            Table::Single(current) => {
                *current = Arc::new(current.succeeded_by(ring.into()));
                Ok(())
            }
            Table::BySubscription(_) => Err(KeysError::new(Kind::BySubscription)),
        }
    }

    /// Replaces the ring of a subscription, or adds one. A scope or workspace that the new ring does not name is taken
    /// over from the old one.
    ///
    /// # Errors
    /// `NotBySubscription` where one ring serves everything, `SecretInTwoScopes`, `UnusableName`.
    pub fn replace_subscription(
        &self,
        id: &str,
        ring: impl Into<KeyRing>,
    ) -> Result<(), KeysError> {
        let id = usable_name(id)?;
        let mut table = self.0.table.write().unwrap_or_else(PoisonError::into_inner);
        let Table::BySubscription(map) = &mut *table else {
            return Err(KeysError::new(Kind::NotBySubscription));
        };
        let ring = match map.get(&id) {
            Some(current) => current.succeeded_by(ring.into()),
            None => Ring::of_subscription(&id, ring.into()),
        };
        refuse_shared_secret(map, &id, &ring)?;
        map.insert(id, Arc::new(ring));
        Ok(())
    }

    /// Removes a subscription; says whether it was there. Its next delivery is refused as unknown.
    ///
    /// # Errors
    /// `NotBySubscription` where one ring serves everything.
    pub fn remove_subscription(&self, id: &str) -> Result<bool, KeysError> {
        let mut table = self.0.table.write().unwrap_or_else(PoisonError::into_inner);
        match &mut *table {
            Table::BySubscription(map) => Ok(map.remove(id).is_some()),
            Table::Single(_) => Err(KeysError::new(Kind::NotBySubscription)),
        }
    }

    /// The ring that a delivery is to be checked with. An unknown subscription gets the ring of nobody.
    #[inline]
    pub(super) fn select(&self, webhook_id: Option<&[u8]>) -> Result<Selected, HeaderError> {
        let table = self.0.table.read().unwrap_or_else(PoisonError::into_inner);
        let map = match &*table {
            Table::Single(ring) => return Ok(Selected::known(ring)),
            Table::BySubscription(map) => map,
        };
        let ring = match webhook_id {
            Some(id) => std::str::from_utf8(id).ok().and_then(|id| map.get(id)),
            None if map.len() == 1 => map.values().next(),
            None => return Err(HeaderError::new(HeaderErrorKind::Missing, WEBHOOK_ID)),
        };
        Ok(ring.map_or_else(
            || Selected {
                ring: Arc::clone(&self.0.nobody),
                known: false,
            },
            Selected::known,
        ))
    }

    fn of(table: Table) -> Self {
        Self(Arc::new(Shared {
            table: RwLock::new(table),
            nobody: Arc::new(Ring {
                keys: vec![Key::nobody()],
                scope: "".into(),
                workspace: None,
                subscription: None,
            }),
        }))
    }
}

impl<R: Into<KeyRing>> From<R> for Keys {
    fn from(ring: R) -> Self {
        Self::single(ring)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.0.table.read().unwrap_or_else(PoisonError::into_inner);
        match &*table {
            Table::Single(ring) => f.debug_tuple("Keys").field(ring).finish(),
            Table::BySubscription(map) => f.debug_tuple("Keys").field(map).finish(),
        }
    }
}

pub(super) struct Selected {
    pub(super) ring: Arc<Ring>,
    pub(super) known: bool,
}

impl Selected {
    fn known(ring: &Arc<Ring>) -> Self {
        Self {
            ring: Arc::clone(ring),
            known: true,
        }
    }
}

/// A secret known to two scopes would let a delivery to one be replayed to the other, by changing the unsigned
/// subscription id alone.
fn refuse_shared_secret(
    map: &HashMap<Arc<str>, Arc<Ring>>,
    id: &Arc<str>,
    ring: &Ring,
) -> Result<(), KeysError> {
    let foreign = map
        .iter()
        .filter(|(other, others)| *other != id && others.scope != ring.scope);
    for (_, others) in foreign {
        for key in &others.keys {
            if ring.keys.iter().any(|own| own.mac.same(&key.mac)) {
                return Err(KeysError::new(Kind::SecretInTwoScopes));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::Secret;

    fn secret(tail: &str) -> Secret {
        Secret::new(&format!("whsec_made_up_secret_{tail}")).unwrap()
    }

    #[test]
    fn keys_show_their_rings_and_no_secret() {
        let single = Keys::single(KeyRing::named("a", secret("1")).unwrap());
        let map = Keys::by_subscription([("wh_1", KeyRing::named("a", secret("1")).unwrap())]);
        for (keys, shown) in [(single, "default"), (map.unwrap(), "wh_1")] {
            let debug = format!("{keys:?}");
            assert!(
                debug.contains(r#"Key("a")"#) && debug.contains(shown),
                "{debug}"
            );
            assert!(!debug.contains("whsec_"), "{debug}");
        }
    }

    #[test]
    fn equal_secrets_need_one_scope() {
        let pair = |left: KeyRing, right: KeyRing| {
            Keys::by_subscription([("wh_1", left), ("wh_2", right)])
        };
        let error = pair(secret("1").into(), secret("1").into()).unwrap_err();
        assert_eq!(*error.kind(), Kind::SecretInTwoScopes);
        let shared = |tail| KeyRing::new(secret(tail)).with_scope("shared").unwrap();
        assert!(pair(shared("1"), shared("1")).is_ok());

        let keys = pair(secret("1").into(), secret("2").into()).unwrap();
        let error = keys.replace_subscription("wh_2", secret("1")).unwrap_err();
        assert_eq!(*error.kind(), Kind::SecretInTwoScopes);
        assert!(keys.replace_subscription("wh_1", secret("1")).is_ok());
    }

    #[test]
    fn a_map_needs_the_id_once_it_has_two_rings() {
        let keys = Keys::by_subscription([("wh_1", secret("1"))]).unwrap();
        assert!(keys.select(None).unwrap().known);
        assert!(!keys.select(Some(b"wh_2")).unwrap().known);
        keys.replace_subscription("wh_2", secret("2")).unwrap();
        assert!(keys.select(None).is_err());
        assert!(keys.select(Some(b"wh_2")).unwrap().known);
        assert!(!keys.select(Some(b"\xff")).unwrap().known);
        assert_eq!(keys.remove_subscription("wh_2"), Ok(true));
        assert_eq!(keys.remove_subscription("wh_2"), Ok(false));
    }

    #[test]
    fn replacing_a_ring_keeps_scope_and_workspace() {
        let ring = KeyRing::new(secret("1")).with_scope("s").unwrap();
        let keys = Keys::single(ring.with_workspace("ws_1").unwrap());
        keys.replace(secret("2")).unwrap();
        let ring = keys.select(None).unwrap().ring;
        assert_eq!(
            (&*ring.scope, ring.workspace.as_deref()),
            ("s", Some("ws_1"))
        );
    }

    #[test]
    fn the_wrong_kind_of_change_is_refused() {
        let single = Keys::single(secret("1"));
        let error = single
            .replace_subscription("wh_1", secret("2"))
            .unwrap_err();
        assert_eq!(*error.kind(), Kind::NotBySubscription);
        let map = Keys::by_subscription([("wh_1", secret("1"))]).unwrap();
        assert_eq!(
            *map.replace(secret("2")).unwrap_err().kind(),
            Kind::BySubscription
        );
        let twice = Keys::by_subscription([("wh_1", secret("1")), ("wh_1", secret("2"))]);
        assert_eq!(
            *twice.unwrap_err().kind(),
            Kind::SubscriptionTaken("wh_1".into())
        );
        let none: [(&str, KeyRing); 0] = [];
        assert_eq!(
            *Keys::by_subscription(none).unwrap_err().kind(),
            Kind::NoKeys
        );
    }
}
