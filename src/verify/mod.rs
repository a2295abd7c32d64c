//! Authentic and fresh: from headers and raw bytes to a [`Verified`], which only this module can make.
//!
//! The order of checks is fixed. Headers first, in one walk; then the window, so that a stale delivery ends before a
//! byte of its body is read; then the MAC over the timestamp's bytes, a dot and the body's bytes, all as received. No
//! JSON is parsed before that, and every live key of the ring is tried without an early exit.
//!
//! All of it is plain functions: the clock's reading and the bytes are arguments, and nothing waits.
//!
//! ```
//! use hookgate::{DeliveryHeaders, Secret, Signature, Timestamp, UnixSeconds, Verifier};
//!
//! let secret = Secret::new("whsec_made_up_for_this_example")?;
//! let (timestamp, body) = (Timestamp::parse(b"1763690000")?, br#"{"id":"evt_1"}"#);
//! let signature = Signature::sign(&secret, &timestamp, body).to_header_value();
//! let pairs = [("X-Service-Timestamp", "1763690000"), ("X-Service-Signature", &signature)];
//!
//! let verifier = Verifier::new(secret);
//! let head = DeliveryHeaders::from_pairs(pairs)?;
//! let verified = verifier.verify(&head, body, UnixSeconds::new(1_763_690_300))?;
//! assert_eq!(verified.body(), body);
//!
//! let stale = verifier.verify(&head, body, UnixSeconds::new(1_763_690_301));
//! assert!(stale.is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod body;
mod error;
mod gathered;
mod headers;
mod intake;
mod kept;
mod keyring;
mod keys;
mod keys_error;
mod secret;
mod secret_error;
pub(crate) mod signature;
mod table;
mod timestamp;
mod verified;
mod window;

pub use body::SignedBytes;
pub use error::{HeaderError, HeaderErrorKind, Malformed, Times, VerifyError, VerifyErrorKind};
pub use headers::{DeliveryHeaders, EVENT_ID, EVENT_TYPE, SIGNATURE, TIMESTAMP, WEBHOOK_ID};
pub use intake::{BodyTooLarge, Intake};
pub use keyring::KeyRing;
pub use keys::Keys;
pub use keys_error::{KeysError, KeysErrorKind};
pub use secret::Secret;
pub use secret_error::{SecretError, SecretErrorKind};
pub use signature::Signature;
pub use timestamp::Timestamp;
pub use verified::{Proof, Verified};
pub use window::Window;

pub(crate) use gathered::Gathered;
pub(crate) use headers::Found;
pub(crate) use keyring::Ring;
pub(crate) use keys::{Finding, Selected};
#[cfg(feature = "inbox")]
pub(crate) use verified::Noted;

use std::fmt;
use std::sync::Arc;

use crate::UnixSeconds;
use error::VerifyErrorKind as Kind;
use signature::Macs;

/// Verifies deliveries: it holds the live keys and the window that is accepted.
///
/// Cheap to clone; clones share their keys. See the [module docs](self) for an example.
#[derive(Clone, Debug)]
pub struct Verifier {
    keys: Keys,
    window: Window,
}

impl Verifier {
    /// Returns a verifier with a [`Secret`], a [`KeyRing`] or [`Keys`], and the default window: 300 s old, 300 s ahead.
    #[must_use]
    pub fn new(keys: impl Into<Keys>) -> Self {
        Self {
            keys: keys.into(),
            window: Window::default(),
        }
    }

    /// Sets the window of accepted ages.
    #[must_use]
    pub fn with_window(mut self, window: Window) -> Self {
        self.window = window;
        self
    }

    /// Returns the window that is accepted.
    #[must_use]
    pub fn window(&self) -> Window {
        self.window
    }

    /// Returns the live keys, for example to replace some.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Verifies a whole delivery. The proof owns or borrows the very bytes that it covers.
    ///
    /// No heap allocation, for any result.
    ///
    /// # Errors
    /// See [`VerifyErrorKind`](crate::VerifyErrorKind). Answer all of them alike, with 401, except `NotLookedUp`: 503.
    ///
    /// # Security
    /// `body` must be the raw bytes as received. A body that was parsed and serialised again has another signature.
    pub fn verify<B: SignedBytes>(
        &self,
        head: &DeliveryHeaders<'_>,
        body: B,
        now: UnixSeconds,
    ) -> Result<Verified<B>, VerifyError> {
        let proof = self.prove(head, body.as_bytes(), now)?;
        Ok(Verified::vouch(proof, body))
    }

    fn prove(
        &self,
        head: &DeliveryHeaders<'_>,
        body: &[u8],
        now: UnixSeconds,
    ) -> Result<Proof, VerifyError> {
        self.window.check(head.timestamp.seconds(), now)?;
        let Selected { ring, known } = self.keys.select(head.webhook_id())?;
        let mut matched = None;
        // No early exit, and one key after the other: only one key's state exists at a time.
        for (index, key) in ring.keys.iter().enumerate() {
            if key.mac.verifies(&head.timestamp, body, &head.signature) {
                matched = Some(index);
            }
        }
        let key = Doom::of(known, None).verdict(matched)?;
        Ok(Proof::new(head.timestamp, ring, key))
    }

    /// Begins a check on the head alone, before the body is read.
    ///
    /// # Errors
    /// `Stale`, `Ahead`, `Header` where the subscription id is required and missing, or `NotLookedUp`. A subscription that is unknown
    /// ends only in [`Check::finish`], after no less work than a known one.
    #[inline]
    pub fn begin(
        &self,
        head: &DeliveryHeaders<'_>,
        now: UnixSeconds,
    ) -> Result<Check, VerifyError> {
        self.window.check(head.timestamp().seconds(), now)?;
        self.start(head, None)
    }

    /// Begins a check whose window was checked before. A check of a stale delivery computes its MAC all the same, and ends as
    /// `StaleButAuthentic` or as `stale`, never with a proof.
    #[inline]
    pub(crate) fn start(
        &self,
        head: &DeliveryHeaders<'_>,
        stale: Option<Kind>,
    ) -> Result<Check, VerifyError> {
        let selected = self.keys.select(head.webhook_id())?;
        Ok(Check::with(selected, head, stale))
    }
}

/// A check under way: the MAC is computed as chunks arrive. Owns its states, which are wiped when it is dropped.
///
/// ```
/// # use hookgate::{DeliveryHeaders, Secret, Signature, Timestamp, UnixSeconds, Verifier};
/// # let secret = Secret::new("whsec_made_up_for_this_example")?;
/// # let timestamp = Timestamp::parse(b"1763690000")?;
/// # let signature = Signature::sign(&secret, &timestamp, b"in two pieces").to_header_value();
/// # let pairs = [("x-service-timestamp", "1763690000"), ("x-service-signature", signature.as_str())];
/// # let verifier = Verifier::new(secret);
/// let head = DeliveryHeaders::from_pairs(pairs)?;
/// let mut check = verifier.begin(&head, UnixSeconds::new(1_763_690_000))?;
/// for chunk in [b"in two ".as_slice(), b"pieces"] {
///     check.update(chunk);
/// }
/// assert_eq!(check.finish()?.key_name(), "primary");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Check {
    macs: Macs,
    signature: Signature,
    timestamp: Timestamp,
    ring: Arc<Ring>,
    doom: Doom,
}

/// A check that can only fail, and does so after the same work as any other.
enum Doom {
    None,
    /// The subscription is unknown. A delivery that is stale too ends as stale, as it would have before its body was read.
    Unknown(Option<Kind>),
    Stale(Kind),
}

impl Check {
    /// Begins with a ring that was found for the delivery, whose age was checked before. A stale delivery ends without a proof.
    #[inline]
    pub(crate) fn with(
        selected: Selected,
        head: &DeliveryHeaders<'_>,
        stale: Option<Kind>,
    ) -> Self {
        let Selected { ring, known } = selected;
        Self {
            macs: Macs::begin(ring.keys.iter().map(|key| &key.mac), &head.timestamp),
            signature: head.signature.clone(),
            timestamp: head.timestamp,
            ring,
            doom: Doom::of(known, stale),
        }
    }

    /// Takes the next bytes of the body.
    pub fn update(&mut self, chunk: &[u8]) {
        self.macs.update(chunk);
    }

    /// Returns the refusal for the age, where the check was begun on a stale delivery: with any body, it ends without a proof.
    #[cfg(feature = "tower")]
    fn stale(&self) -> Option<VerifyError> {
        match self.doom {
            Doom::Stale(stale) | Doom::Unknown(Some(stale)) => Some(VerifyError::new(stale)),
            Doom::None | Doom::Unknown(None) => None,
        }
    }

    /// Compares, with every live key. The proof covers the bytes that were passed to
    /// [`update`](Self::update), in that order; keeping them is the caller's task.
    ///
    /// # Errors
    /// `SignatureMismatch` or `UnknownSubscription`.
    #[inline]
    pub fn finish(mut self) -> Result<Proof, VerifyError> {
        let matched = self.macs.matched(&self.signature);
        let key = self.doom.verdict(matched)?;
        Ok(Proof::new(self.timestamp, self.ring, key))
    }
}

impl Doom {
    #[inline]
    fn of(known: bool, stale: Option<Kind>) -> Self {
        match (known, stale) {
            (false, stale) => Self::Unknown(stale),
            (true, Some(stale)) => Self::Stale(stale),
            (true, None) => Self::None,
        }
    }

    /// Returns the key that matched, if that makes the delivery authentic and fresh.
    #[inline]
    fn verdict(self, matched: Option<usize>) -> Result<usize, VerifyError> {
        let kind = match (self, matched) {
            (Self::Unknown(stale), _) => stale.unwrap_or(Kind::UnknownSubscription),
            (Self::None, None) => Kind::SignatureMismatch,
            (Self::None, Some(key)) => return Ok(key),
            (Self::Stale(stale), None) => stale,
            (Self::Stale(stale), Some(_)) => stale.but_authentic(),
        };
        Err(VerifyError::new(kind))
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("timestamp", &self.timestamp)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Reports, metrics and deduplication keys use the values of a proof.
    #[test]
    fn a_proof_says_which_key_of_which_ring_signed() {
        let secret = |tail| Secret::new(&format!("whsec_made_up_secret_{tail}")).unwrap();
        let ring = KeyRing::named("new", secret("new")).unwrap();
        let ring = ring.with_key("old", secret("old")).unwrap();
        let ring = ring.with_scope("orders").unwrap();
        let ring = ring.with_workspace("ws_1").unwrap();
        let keys = Keys::by_subscription([("wh_1", ring)]).unwrap();
        let timestamp = Timestamp::parse(b"1763690000").unwrap();
        let signature = Signature::sign(&secret("old"), &timestamp, b"{}").to_header_value();
        let pairs = [
            ("x-service-timestamp", timestamp.as_str()),
            ("x-service-signature", &signature),
        ];
        let head = DeliveryHeaders::from_pairs(pairs).unwrap();
        let verified = Verifier::new(keys)
            .verify(&head, "{}", timestamp.seconds())
            .unwrap();
        assert_eq!((verified.key_name(), verified.scope()), ("old", "orders"));
        assert_eq!(verified.timestamp(), &timestamp);
        let proof = verified.proof();
        assert_eq!((proof.key_name(), proof.scope()), ("old", "orders"));
        assert_eq!(proof.subscription_id(), Some("wh_1"));
        assert_eq!(proof.pinned_workspace(), Some("ws_1"));
        let shown = format!("{verified:?}");
        for part in [
            r#"Timestamp(1763690000), key: "old", scope: "orders", subscription: Some("wh_1")"#,
            "body_bytes: 2",
        ] {
            assert!(shown.contains(part), "{shown}");
        }
        assert!(!shown.contains("{}"), "{shown}");
        assert_eq!(verified.into_body(), "{}");
    }

    #[test]
    fn a_check_of_an_unknown_subscription_hashes_as_often_as_that_of_a_known_one() {
        let secret = |tail: &str| Secret::new(&format!("whsec_made_up_secret_{tail}")).unwrap();
        let two = |tail: &str| {
            let ring = KeyRing::new(secret(&format!("{tail}_1")));
            ring.with_key("old", secret(&format!("{tail}_2"))).unwrap()
        };
        let keys = Keys::by_subscription([("wh_1", two("a")), ("wh_2", two("b"))]);
        let verifier = Verifier::new(keys.unwrap());
        let signature = format!("sha256={}", "0".repeat(64));
        for id in ["wh_1", "wh_2", "wh_3", "none"] {
            let pairs = [
                ("x-service-timestamp", "1763690000"),
                ("x-service-signature", &signature),
                ("x-service-webhook-id", id),
            ];
            let head = DeliveryHeaders::from_pairs(pairs).unwrap();
            let check = verifier.begin(&head, UnixSeconds::new(1_763_690_000));
            let check = check.unwrap();
            assert_eq!(check.macs.count(), 2, "{id}");
            assert!(check.finish().is_err());
        }
    }

    #[test]
    fn a_verifier_says_its_window_and_a_check_its_timestamp() {
        let secret = Secret::new("whsec_made_up_for_this_test").unwrap();
        let window = Window::default().with_past(Duration::from_secs(7));
        let verifier = Verifier::new(secret).with_window(window);
        assert_eq!(verifier.window(), window);
        let signature = format!("sha256={}", "0".repeat(64));
        let pairs = [
            ("x-service-timestamp", "1763690000"),
            ("x-service-signature", &signature),
        ];
        let head = DeliveryHeaders::from_pairs(pairs).unwrap();
        let check = verifier
            .begin(&head, UnixSeconds::new(1_763_690_000))
            .unwrap();
        assert_eq!(
            format!("{check:?}"),
            "Check { timestamp: Timestamp(1763690000), .. }"
        );
    }
}
