//! The secrets of a log: they verify it, and sign its deliveries again.

use hookgate::verify::{SIGNATURE, TIMESTAMP, WEBHOOK_ID};
use hookgate::{KeyRing, Secret, clock::UnixSeconds, lookup::Keys};
use hookgate_record::LoggedDelivery;

use super::{ReplayError, ReplayErrorKind as Kind};
use crate::signer::Signer;

/// The secrets and keys, as the caller gave them.
#[derive(Clone, Default)]
pub(super) struct Secrets {
    ring: Vec<(String, Secret)>,
    by_subscription: Vec<(String, Secret)>,
    keys: Option<Keys>,
}

impl Secrets {
    pub(super) fn add(&mut self, name: Option<&str>, secret: Secret) {
        let name = match name {
            Some(name) => name.to_owned(),
            None if self.ring.is_empty() => "primary".to_owned(),
            None => format!("secret {}", self.ring.len() + 1),
        };
        self.ring.push((name, secret));
    }

    pub(super) fn add_subscription(&mut self, id: &str, secret: Secret) {
        self.by_subscription.push((id.to_owned(), secret));
    }

    pub(super) fn verify_with(&mut self, keys: Keys) {
        self.keys = Some(keys);
    }

    pub(super) fn are_given(&self) -> bool {
        self.can_sign() || self.keys.is_some()
    }

    pub(super) fn can_sign(&self) -> bool {
        !self.ring.is_empty() || !self.by_subscription.is_empty()
    }

    /// The keys that verify.
    pub(super) fn keys(&self) -> Result<Keys, ReplayError> {
        if let Some(keys) = &self.keys {
            return Ok(keys.clone());
        }
        let unusable = |error| ReplayError::new(Kind::Keys).caused_by(error);
        if self.by_subscription.is_empty() {
            let mut ring = None;
            for (name, secret) in &self.ring {
                let secret = secret.clone();
                ring = Some(match ring {
                    None => KeyRing::named(name, secret).map_err(unusable)?,
                    Some(ring) => KeyRing::with_key(ring, name, secret).map_err(unusable)?,
                });
            }
            let ring = ring.ok_or_else(|| ReplayError::new(Kind::NoSecret))?;
            return Ok(Keys::single(ring));
        }
        if !self.ring.is_empty() {
            return Err(ReplayError::new(Kind::Keys));
        }
        let rings = self.by_subscription.iter();
        let rings = rings.map(|(id, secret)| (id, secret.clone()));
        Keys::by_subscription(rings).map_err(unusable)
    }

    /// Returns the secret that signs this delivery again: that of its subscription, or the key of the ring that had signed it,
    /// else the first.
    pub(super) fn signing(&self, logged: &LoggedDelivery) -> Option<&Secret> {
        let named = |list: &'_ [(String, Secret)], name: &[u8]| {
            list.iter().position(|(other, _)| other.as_bytes() == name)
        };
        if !self.by_subscription.is_empty() {
            // With a single subscription, its secret also serves deliveries without a subscription id.
            let index = match logged.header(WEBHOOK_ID) {
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

/// Returns the headers of timestamp and signature, for this time.
pub(super) fn stamp(
    secret: &Secret,
    at: UnixSeconds,
    body: &[u8],
) -> impl Iterator<Item = (&'static str, String)> + use<> {
    // The service writes no time before 1970 and none of more than 16 digits, and a signer would panic.
    let at = UnixSeconds::new(at.as_i64().clamp(1, 9_999_999_999_999_999));
    let headers = Signer::new(secret.clone()).at(at).headers(body);
    headers
        .into_iter()
        .filter(|(name, _)| [TIMESTAMP, SIGNATURE].contains(name))
}
