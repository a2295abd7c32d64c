//! The live key rings, by subscription, replaceable while the receiver runs.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockWriteGuard};

use super::provider::LookUp;
#[cfg(feature = "lookup")]
use super::provider::as_looked_up;
#[cfg(feature = "lookup")]
use super::resolver::{LookupStats, Resolver};
use crate::config::ConfigError;
use crate::scheme::{self, Scheme};
use crate::verify::{
    KeyRing, VerifyError, VerifyErrorKind, one_scope_a_secret, unusable, usable_name,
};

/// The keys that are live now: one ring for everything, a ring for each subscription, or the rings
/// that a `SecretProvider` (feature `lookup`) finds.
///
/// Clones share their rings. Keep one beside the receiver to replace a ring while deliveries
/// arrive: a delivery that has begun ends with the keys that it began with, the next one uses the
/// new ring.
///
/// ```
/// use hookgate::{KeyRing, Secret, lookup::Keys};
///
/// let keys = Keys::by_subscription([
///     ("wh_1", KeyRing::new(Secret::new("whsec_made_up_for_orders")?)),
///     ("wh_2", KeyRing::new(Secret::new("whsec_made_up_for_invoices")?)),
/// ])?;
/// keys.replace_subscription("wh_2", KeyRing::new(Secret::new("whsec_made_up_successor")?))?;
/// assert!(keys.remove_subscription("wh_1")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Keys(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    rings: Rings,
    /// How the sender signs: set by the first receiver or verifier that takes the keys.
    scheme: OnceLock<Option<Scheme>>,
}

#[derive(Debug)]
enum Rings {
    Held(RwLock<KeyTable>),
    #[cfg(feature = "lookup")]
    LookedUp(Arc<Resolver>),
}

/// The rings that are held in memory.
#[derive(Debug)]
enum KeyTable {
    Single(Arc<KeyRing>),
    BySubscription {
        rings: HashMap<Arc<str>, Arc<KeyRing>>,
        /// Replaces the ring of an unknown subscription. It has as many keys as the largest ring,
        /// so that no delivery takes less work.
        decoy: Arc<KeyRing>,
    },
}

impl KeyTable {
    fn from_rings(rings: HashMap<Arc<str>, Arc<KeyRing>>) -> Self {
        let most_keys = rings.values().map(|ring| ring.key_count()).max();
        Self::BySubscription {
            rings,
            decoy: KeyRing::decoy(most_keys.unwrap_or_default()),
        }
    }

    /// Gives all rings this scheme, or none.
    fn set_scheme(&mut self, scheme: &Scheme) -> Result<(), ConfigError> {
        let rings: Vec<_> = match self {
            Self::Single(ring) => vec![ring],
            Self::BySubscription { .. } if scheme.subscription_header().is_none() => {
                let fault = "no header of it names a subscription: set one ring, by .key_ring(…)";
                return Err(scheme::unusable(scheme, fault));
            }
            Self::BySubscription { rings, .. } => rings.values_mut().collect(),
        };
        // A ring is shared with deliveries only after this.
        let own = rings
            .into_iter()
            .map(Arc::get_mut)
            .collect::<Option<Vec<_>>>();
        let own = own.ok_or_else(|| scheme::unusable(scheme, "these keys are in use"))?;
        own.iter().try_for_each(|ring| ring.check_scheme(scheme))?;
        own.into_iter().try_for_each(|ring| ring.set_scheme(scheme))
    }
}

impl Keys {
    /// Returns keys of one ring for every delivery. `X-Service-Webhook-Id` is then not read.
    #[must_use]
    pub fn single(ring: impl Into<KeyRing>) -> Self {
        Self::from_table(KeyTable::Single(Arc::new(ring.into())))
    }

    /// Returns keys with a ring for each subscription id, as in `X-Service-Webhook-Id`. The header
    /// is required where there is more than one ring.
    ///
    /// # Errors
    /// `UnusableKeys`, `UnusableName`.
    pub fn by_subscription<I, R>(
        rings: impl IntoIterator<Item = (I, R)>,
    ) -> Result<Self, ConfigError>
    where
        I: AsRef<str>,
        R: Into<KeyRing>,
    {
        let mut map = HashMap::new();
        for (id, ring) in rings {
            let id = usable_name(id.as_ref())?;
            let ring = Arc::new(KeyRing::with_subscription(ring.into(), &id));
            if map.insert(Arc::clone(&id), ring).is_some() {
                let message = format!("two rings for the same subscription: {id:?}");
                return Err(unusable(message).about(&*id));
            }
        }
        if map.is_empty() {
            return Err(unusable("no ring of keys was given"));
        }
        one_scope_a_secret(map.values())?;
        Ok(Self::from_table(KeyTable::from_rings(map)))
    }

    /// Returns keys whose rings are looked up when they are needed.
    #[cfg(feature = "lookup")]
    pub(crate) fn looked_up(resolver: Resolver) -> Self {
        Self::of(Rings::LookedUp(Arc::new(resolver)))
    }

    fn of(rings: Rings) -> Self {
        let scheme = OnceLock::new();
        Self(Arc::new(Shared { rings, scheme }))
    }

    /// Returns how the sender signs: the default scheme until another one is set.
    #[inline]
    pub(crate) fn scheme(&self) -> &Scheme {
        let other = self.0.scheme.get().and_then(Option::as_ref);
        other.unwrap_or_else(|| Scheme::workspace())
    }

    /// Sets how the sender signs, once: keys of one scheme never serve another one.
    ///
    /// # Errors
    /// `UnusableScheme`, `UnusableKeys`, `UnusableSecret`: the keys do not fit it, or are those of
    /// another scheme.
    pub(crate) fn set_scheme(&self, scheme: Scheme) -> Result<(), ConfigError> {
        scheme.check()?;
        #[cfg(feature = "lookup")]
        if let Rings::LookedUp(_) = &self.0.rings {
            let fault = "a provider looks up the subscriptions of the default scheme: set the keys by .key_ring(…)";
            return match scheme.is_workspace() {
                true => Ok(()),
                false => Err(scheme::unusable(&scheme, fault)),
            };
        }
        let mut table = self.table()?;
        match self.0.scheme.get() {
            Some(_) if self.scheme().is_same(&scheme) => {}
            Some(_) => {
                let fault = "these keys are in use with another scheme";
                return Err(scheme::unusable(&scheme, fault));
            }
            None => {
                table.set_scheme(&scheme)?;
                let other = (!scheme.is_workspace()).then_some(scheme);
                self.0.scheme.get_or_init(|| other);
            }
        }
        match &*table {
            // Two texts may stand for the same key under this scheme.
            KeyTable::BySubscription { rings, .. } => one_scope_a_secret(rings.values()),
            KeyTable::Single(_) => Ok(()),
        }
    }

    /// Gives a new ring the scheme of the others.
    fn keyed(&self, mut ring: KeyRing) -> Result<KeyRing, ConfigError> {
        if self.0.scheme.get().is_some() {
            ring.set_scheme(self.scheme())?;
        }
        Ok(ring)
    }

    /// Replaces the single ring. Where the new ring names no scope or workspace, it keeps that of
    /// the old one.
    ///
    /// # Errors
    /// `UnusableKeys` where rings are held by subscription id or looked up.
    pub fn replace(&self, ring: impl Into<KeyRing>) -> Result<(), ConfigError> {
        // The conversion may be code from outside this crate, so it comes before the lock.
        let ring = ring.into();
        let mut table = self.table()?;
        let ring = self.keyed(ring)?;
        match &mut *table {
            KeyTable::Single(current) => {
                *current = Arc::new(current.succeeded_by(ring));
                Ok(())
            }
            KeyTable::BySubscription { .. } => Err(unusable(
                "rings are held by subscription id here: name the subscription to replace",
            )),
        }
    }

    /// Replaces the ring of a subscription, or adds one. Where the new ring names no scope or
    /// workspace, it keeps that of the old one.
    ///
    /// # Errors
    /// `UnusableKeys` where one ring serves everything or rings are looked up, or the secret is
    /// that of another scope; `UnusableName`.
    pub fn replace_subscription(
        &self,
        id: &str,
        ring: impl Into<KeyRing>,
    ) -> Result<(), ConfigError> {
        let id = usable_name(id)?;
        let ring = ring.into();
        let mut table = self.table()?;
        let ring = self.keyed(ring)?;
        let KeyTable::BySubscription { rings, .. } = &mut *table else {
            return Err(unusable(ONE_RING));
        };
        let ring = match rings.get(&id) {
            Some(current) => current.succeeded_by(ring),
            None => ring.with_subscription(&id),
        };
        let mut rings = rings.clone();
        rings.insert(id, Arc::new(ring));
        one_scope_a_secret(rings.values())?;
        *table = KeyTable::from_rings(rings);
        Ok(())
    }

    /// Removes a subscription; returns whether it was there. Its next delivery is refused as
    /// unknown.
    ///
    /// # Errors
    /// `UnusableKeys` where one ring serves everything or rings are looked up.
    pub fn remove_subscription(&self, id: &str) -> Result<bool, ConfigError> {
        let mut table = self.table()?;
        match &mut *table {
            KeyTable::BySubscription { rings, .. } => {
                let was_there = rings.remove(id).is_some();
                *table = KeyTable::from_rings(std::mem::take(rings));
                Ok(was_there)
            }
            KeyTable::Single(_) => Err(unusable(ONE_RING)),
        }
    }

    /// Returns the single ring, where it has the default scope of single rings.
    pub(crate) fn ring_of_default_scope(&self) -> Option<Arc<KeyRing>> {
        let table = match &self.0.rings {
            Rings::Held(table) => table.read(),
            #[cfg(feature = "lookup")]
            Rings::LookedUp(_) => return None,
        };
        match &*table.unwrap_or_else(PoisonError::into_inner) {
            KeyTable::Single(ring) if !ring.has_own_scope() => Some(Arc::clone(ring)),
            KeyTable::Single(_) | KeyTable::BySubscription { .. } => None,
        }
    }

    /// Returns the ring for a delivery, without waiting. An unknown subscription gets a decoy.
    #[inline]
    pub(crate) fn select(&self, webhook_id: Option<&[u8]>) -> Result<Arc<KeyRing>, VerifyError> {
        let table = match &self.0.rings {
            Rings::Held(table) => table.read().unwrap_or_else(PoisonError::into_inner),
            #[cfg(feature = "lookup")]
            Rings::LookedUp(resolver) => {
                let cached = resolver.cached(webhook_id.ok_or_else(|| self.missing())?);
                return cached.map_err(|_| VerifyError::new(VerifyErrorKind::NotLookedUp));
            }
        };
        let (rings, decoy) = match &*table {
            KeyTable::Single(ring) => return Ok(Arc::clone(ring)),
            KeyTable::BySubscription { rings, decoy } => (rings, decoy),
        };
        let ring = match webhook_id {
            Some(id) => std::str::from_utf8(id).ok().and_then(|id| rings.get(id)),
            None if rings.len() == 1 => rings.values().next(),
            None => return Err(self.missing()),
        };
        Ok(Arc::clone(ring.unwrap_or(decoy)))
    }

    /// As `select`, but looks a ring up that is not remembered.
    pub(crate) fn find(&self, webhook_id: Option<&[u8]>) -> Result<RingSearch, VerifyError> {
        #[cfg(feature = "lookup")]
        if let Rings::LookedUp(resolver) = &self.0.rings {
            return Ok(
                match resolver.cached(webhook_id.ok_or_else(|| self.missing())?) {
                    Ok(ring) => RingSearch::Found(ring),
                    Err(id) => {
                        RingSearch::Pending(Box::pin(Arc::clone(resolver).look_up(id.into())))
                    }
                },
            );
        }
        self.select(webhook_id).map(RingSearch::Found)
    }

    /// Takes note that the ring of this subscription did not verify a delivery. If the ring was
    /// looked up and none of its keys fits, the provider is asked again soon: the keys may have
    /// been rotated.
    #[cfg_attr(not(feature = "lookup"), allow(unused_variables))]
    pub(crate) fn not_verified(&self, webhook_id: Option<&[u8]>, error: &VerifyError) {
        #[cfg(feature = "lookup")]
        if let Rings::LookedUp(resolver) = &self.0.rings
            && error.kind() == VerifyErrorKind::SignatureMismatch
            && let Some(id) = webhook_id.and_then(as_looked_up)
        {
            resolver.no_key_fits(id);
        }
    }

    /// Forgets the ring of this subscription if it was looked up. Returns false if rings are not
    /// looked up.
    #[cfg_attr(not(feature = "lookup"), allow(unused_variables))]
    pub(crate) fn look_up_again(&self, id: &str) -> bool {
        match &self.0.rings {
            Rings::Held(_) => false,
            #[cfg(feature = "lookup")]
            Rings::LookedUp(resolver) => {
                resolver.forget(Some(id));
                true
            }
        }
    }

    fn missing(&self) -> VerifyError {
        let header = self.scheme().subscription_header().unwrap_or_default();
        VerifyError::new(VerifyErrorKind::HeaderMissing(header))
    }

    fn table(&self) -> Result<RwLockWriteGuard<'_, KeyTable>, ConfigError> {
        match &self.0.rings {
            Rings::Held(table) => Ok(table.write().unwrap_or_else(PoisonError::into_inner)),
            #[cfg(feature = "lookup")]
            Rings::LookedUp(_) => Err(unusable(
                "rings are looked up by a provider here: change them where it finds them, then call .forget(id)",
            )),
        }
    }

    fn from_table(table: KeyTable) -> Self {
        Self::of(Rings::Held(RwLock::new(table)))
    }
}

/// Keys that a provider looks up.
#[cfg(feature = "lookup")]
impl Keys {
    /// Forgets the result of the look-up for this subscription, found or not: the next delivery
    /// asks the provider. A look-up under way serves only the deliveries that wait for it already.
    /// Without this call, a removed key is accepted for up to 60 s, and a new key once a delivery
    /// that it signed was refused, after up to 10 s.
    ///
    /// Call it once the change can be read, after the transaction and not in it, and in each
    /// process: each has its own cache.
    ///
    /// ```
    /// use hookgate::{ConfigError, MemoryStore, Receiver, Secret, lookup::SubscriptionId};
    ///
    /// let receiver = Receiver::builder()
    ///     .provider(async |_: SubscriptionId| Ok::<Option<Secret>, ConfigError>(None))
    ///     .store(MemoryStore::default())
    ///     .build()?;
    /// receiver.keys().forget("wh_1")?;
    /// let stats = receiver.keys().lookup_stats().unwrap();
    /// assert_eq!((stats.found, stats.unknown, stats.running), (0, 0, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `UnusableKeys` where rings are not looked up.
    pub fn forget(&self, id: &str) -> Result<(), ConfigError> {
        self.resolver()?.forget(Some(id));
        Ok(())
    }

    /// As [`forget`](Self::forget), for every subscription.
    ///
    /// # Errors
    /// `UnusableKeys` where rings are not looked up.
    pub fn forget_all(&self) -> Result<(), ConfigError> {
        self.resolver()?.forget(None);
        Ok(())
    }

    /// Returns the number of look-up results remembered and of look-ups under way. `None` where
    /// rings are not looked up.
    #[must_use]
    pub fn lookup_stats(&self) -> Option<LookupStats> {
        self.resolver().ok().map(|resolver| resolver.stats())
    }

    fn resolver(&self) -> Result<&Resolver, ConfigError> {
        match &self.0.rings {
            Rings::LookedUp(resolver) => Ok(resolver),
            Rings::Held(_) => Err(unusable(
                "no provider looks rings up here: replace or remove them instead",
            )),
        }
    }
}

impl<R: Into<KeyRing>> From<R> for Keys {
    fn from(ring: R) -> Self {
        Self::single(ring)
    }
}

/// A ring that is available, or a look-up to wait for.
#[cfg_attr(not(feature = "lookup"), allow(dead_code))] // only found ones then
pub(crate) enum RingSearch {
    Found(Arc<KeyRing>),
    Pending(LookUp),
}

const ONE_RING: &str = "one ring serves every delivery here: replace it as a whole";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigErrorKind as Kind;
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

    fn ring_of(count: usize, tail: &str) -> KeyRing {
        (1..count).fold(KeyRing::new(secret(tail)), |ring, key| {
            let secret = secret(&format!("{tail}_{key}"));
            ring.with_key(&key.to_string(), secret).unwrap()
        })
    }

    // fault F8: beside rings of several keys, an unknown subscription costs less work than any known one
    #[test]
    fn an_unknown_subscription_is_hashed_under_as_many_keys_as_the_largest_ring_has() {
        let hashed = |keys: &Keys, id: &str| keys.select(Some(id.as_bytes())).unwrap().key_count();
        for count in 1..=KeyRing::MAX_KEYS {
            let keys = Keys::by_subscription([
                ("wh_1", ring_of(count, "a")),
                ("wh_2", ring_of(count, "b")),
            ]);
            let keys = keys.unwrap();
            for id in ["wh_1", "wh_2", "wh_3"] {
                assert_eq!(hashed(&keys, id), count, "{id}");
            }
        }
        let keys = Keys::by_subscription([("wh_1", ring_of(1, "a")), ("wh_2", ring_of(3, "b"))]);
        let keys = keys.unwrap();
        assert_eq!(hashed(&keys, "wh_3"), 3);
        keys.replace_subscription("wh_1", ring_of(4, "c")).unwrap();
        assert_eq!(hashed(&keys, "wh_3"), 4);
        keys.replace_subscription("wh_1", ring_of(2, "c")).unwrap();
        assert_eq!(hashed(&keys, "wh_3"), 3);
        keys.remove_subscription("wh_2").unwrap();
        assert_eq!(hashed(&keys, "wh_3"), 2);
        keys.remove_subscription("wh_1").unwrap();
        assert_eq!(hashed(&keys, "wh_3"), 1);
    }

    #[cfg(feature = "lookup")]
    // fault F8: beside rings of several keys, an unknown subscription costs less work than any known one
    #[test]
    fn an_unknown_id_is_hashed_under_as_many_keys_as_the_largest_ring_found_lately() {
        use super::super::provider::{LookupError, SubscriptionId};

        let provider = async |id: SubscriptionId| {
            let count = id
                .as_str()
                .bytes()
                .last()
                .map(|byte| usize::from(byte - b'0'));
            let ring = count
                .filter(|count| *count > 0)
                .map(|count| ring_of(count, "a"));
            Ok::<_, LookupError>(ring)
        };
        let clock = crate::clock::ManualClock::at(crate::clock::UnixSeconds::new(0));
        let resolver = Resolver::new(Arc::new(provider), Arc::new(clock.clone()));
        let keys = Keys::looked_up(resolver);
        let hashed = |id: &str| {
            let selected = match keys.find(Some(id.as_bytes())).unwrap() {
                RingSearch::Found(selected) => selected,
                RingSearch::Pending(waiting) => crate::block_on(waiting).unwrap(),
            };
            selected.key_count()
        };
        assert_eq!(hashed("wh_0"), 1);
        for (id, unknown) in [("wh_1", 1), ("wh_3", 3), ("wh_2", 3)] {
            assert_eq!(hashed(id), usize::from(id.as_bytes()[3] - b'0'));
            // Looked up, in the cache, and in another form.
            for other in [&format!("wh_{id}_0"), "wh_0", "0"] {
                assert_eq!(hashed(other), unknown, "{other} after {id}");
            }
        }
        clock.advance(std::time::Duration::from_secs(60));
        assert_eq!((hashed("wh_2"), hashed("wh_0")), (2, 2));

        // The second largest ring counts once the largest has ended, also after a smaller one was
        // found.
        let later = |seconds| clock.advance(std::time::Duration::from_secs(seconds));
        later(120);
        assert_eq!((hashed("wh_4"), hashed("wh_0")), (4, 4));
        later(30);
        assert_eq!((hashed("wh_3"), hashed("wh_0")), (3, 4));
        later(31);
        assert_eq!((hashed("wh_1"), hashed("wh_0")), (1, 3));
        later(29);
        assert_eq!((hashed("wh_1"), hashed("wh_0")), (1, 1));
    }

    #[test]
    fn a_ring_is_converted_before_the_lock_is_taken() {
        struct Looks(Keys);
        impl From<Looks> for KeyRing {
            fn from(Looks(keys): Looks) -> Self {
                let is_free = match &keys.0.rings {
                    Rings::Held(table) => table.try_read().is_ok(),
                    #[cfg(feature = "lookup")]
                    Rings::LookedUp(_) => panic!("these keys are held"),
                };
                assert!(is_free);
                KeyRing::new(secret("2"))
            }
        }
        let keys = Keys::single(secret("1"));
        keys.replace(Looks(keys.clone())).unwrap();
        let keys = Keys::by_subscription([("wh_1", secret("1"))]).unwrap();
        keys.replace_subscription("wh_1", Looks(keys.clone()))
            .unwrap();
    }

    #[test]
    fn equal_secrets_need_one_scope() {
        let pair = |left: KeyRing, right: KeyRing| {
            Keys::by_subscription([("wh_1", left), ("wh_2", right)])
        };
        let error = pair(secret("1").into(), secret("1").into()).unwrap_err();
        assert_eq!(error.kind(), Kind::UnusableKeys);
        let shared = |tail| KeyRing::new(secret(tail)).with_scope("shared").unwrap();
        assert!(pair(shared("1"), shared("1")).is_ok());

        let keys = pair(secret("1").into(), secret("2").into()).unwrap();
        let error = keys.replace_subscription("wh_2", secret("1")).unwrap_err();
        assert_eq!(error.kind(), Kind::UnusableKeys);
        assert!(keys.replace_subscription("wh_1", secret("1")).is_ok());
    }

    #[test]
    fn a_map_needs_the_id_once_it_has_two_rings() {
        let keys = Keys::by_subscription([("wh_1", secret("1"))]).unwrap();
        assert!(!keys.select(None).unwrap().is_decoy);
        assert!(keys.select(Some(b"wh_2")).unwrap().is_decoy);
        keys.replace_subscription("wh_2", secret("2")).unwrap();
        assert!(keys.select(None).is_err());
        assert!(!keys.select(Some(b"wh_2")).unwrap().is_decoy);
        assert!(keys.select(Some(b"\xff")).unwrap().is_decoy);
        assert!(keys.remove_subscription("wh_2").unwrap());
        assert!(!keys.remove_subscription("wh_2").unwrap());
    }

    #[test]
    fn replacing_a_ring_keeps_scope_and_workspace() {
        let ring = KeyRing::new(secret("1")).with_scope("s").unwrap();
        let keys = Keys::single(ring.with_workspace("ws_1").unwrap());
        keys.replace(secret("2")).unwrap();
        let ring = keys.select(None).unwrap();
        assert_eq!((ring.scope(), ring.workspace()), ("s", Some("ws_1")));
    }

    #[test]
    fn the_wrong_kind_of_change_is_refused() {
        let single = Keys::single(secret("1"));
        let error = single
            .replace_subscription("wh_1", secret("2"))
            .unwrap_err();
        assert_eq!(error.kind(), Kind::UnusableKeys);
        let map = Keys::by_subscription([("wh_1", secret("1"))]).unwrap();
        assert_eq!(
            map.replace(secret("2")).unwrap_err().kind(),
            Kind::UnusableKeys
        );
        let twice = Keys::by_subscription([("wh_1", secret("1")), ("wh_1", secret("2"))]);
        let error = twice.unwrap_err();
        assert_eq!(error.kind(), Kind::UnusableKeys);
        assert_eq!(error.name(), Some("wh_1"));
        let none: [(&str, KeyRing); 0] = [];
        assert_eq!(
            Keys::by_subscription(none).unwrap_err().kind(),
            Kind::UnusableKeys
        );
    }
}
