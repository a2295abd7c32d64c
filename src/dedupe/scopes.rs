//! The receivers that use one store under the default scope.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::config::{ConfigError, ConfigErrorKind};
use crate::lookup::Keys;
use crate::sync::{Mutex, lock};

/// The receivers that use one store under the scope `default` because no scope was named.
///
/// The key of an event is its scope and its id, and a holder of a receiver's secret chooses the
/// ids. So two receivers with the same scope and different secrets can make each other's events
/// look handled. A store that has this list lets [`build`](crate::ReceiverBuilder::build) refuse
/// the second of them, until its scope is [named](crate::ReceiverBuilder::scope). The rings of a
/// map, and rings that are looked up, have the id of their subscription as scope unless they name
/// one, and are not compared. A receiver leaves the list when it, its clones, its layers and its
/// runs have ended.
///
/// A store outside this crate keeps one list for each set of records, shared by its clones, and
/// returns it from [`DedupeStore::scopes_in_use`](super::DedupeStore::scopes_in_use). Clones of the
/// list share it. It holds no secret and nothing derived from one: keys are compared when a
/// receiver is built.
///
/// # Security
/// The list is one of this process. Receivers in other processes that share records on a server are
/// not compared: give each secret a scope of its own there.
#[derive(Clone, Default)]
pub struct ScopesInUse(Arc<Mutex<Vec<Weak<Keys>>>>);

/// A receiver's entry in the list, removed when this is dropped.
pub(crate) struct ScopeEntry(#[allow(dead_code)] Arc<Keys>);

impl ScopesInUse {
    /// Enters a receiver with these keys. Returns `None` where the receiver needs no entry: its
    /// scopes are named.
    ///
    /// A receiver that shares a key with any receiver in the list is accepted. All receivers were
    /// accepted like this, so they are connected by shared keys: a rotation, with the old receiver
    /// beside the new one. Otherwise it is refused with `UnusableScope`.
    pub(crate) fn enter(&self, keys: &Keys) -> Result<Option<ScopeEntry>, ConfigError> {
        let Some(ring) = keys.ring_of_default_scope() else {
            return Ok(None);
        };
        let mut list = lock(&self.0);
        list.retain(|entry| entry.strong_count() > 0);
        // The present rings, since they can be replaced while a receiver runs.
        let mut others = list
            .iter()
            .filter_map(Weak::upgrade)
            .filter_map(|keys| keys.ring_of_default_scope())
            .peekable();
        if others.peek().is_some() && !others.any(|other| ring.shares_a_key_with(&other)) {
            return Err(ConfigError::saying(
                ConfigErrorKind::UnusableScope,
                "another receiver with other keys remembers in this store under the scope `default` too, so each could make the other's events look handled: name the scope of this one, such as .scope(\"ledger\"); during a rotation give both receivers a key in common",
            ));
        }
        let keys = Arc::new(keys.clone());
        list.push(Arc::downgrade(&keys));
        Ok(Some(ScopeEntry(keys)))
    }
}

impl fmt::Debug for ScopesInUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScopesInUse")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::{KeyRing, Secret};

    fn secret(tail: &str) -> Secret {
        Secret::new(&format!("whsec_made_up_secret_{tail}")).unwrap()
    }

    fn single(tail: &str) -> Keys {
        Keys::single(secret(tail))
    }

    #[test]
    fn keys_are_compared_as_they_are_when_a_receiver_is_built() {
        let list = ScopesInUse::default();
        let keys = single("1");
        let _entry = list.enter(&keys).unwrap();
        keys.replace(secret("2")).unwrap();
        assert!(list.enter(&single("1")).is_err());
        assert!(list.enter(&single("2")).is_ok());
        // A receiver whose scope was named since refuses no other.
        keys.replace(KeyRing::new(secret("2")).with_scope("named").unwrap())
            .unwrap();
        assert!(list.enter(&single("3")).unwrap().is_some());
        // The scope stays when the ring is replaced by one without a scope.
        keys.replace(secret("4")).unwrap();
        assert!(list.enter(&keys).unwrap().is_none());
    }

    #[test]
    fn clones_of_a_list_share_it() {
        let list = ScopesInUse::default();
        let _entry = list.enter(&single("1")).unwrap();
        assert!(list.clone().enter(&single("2")).is_err());
    }

    #[test]
    fn the_list_shows_nothing_of_its_receivers() {
        let list = ScopesInUse::default();
        let _entry = list.enter(&single("1")).unwrap();
        assert_eq!(format!("{list:?}"), "ScopesInUse");
    }
}
