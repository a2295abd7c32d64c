//! Verification with the live keys.

use super::keys::Keys;
use crate::clock::{Clock, SystemClock, UnixSeconds};
use crate::config::ConfigError;
use crate::scheme::{self, DeliveryHeaders, Scheme, Window};
use crate::verify::{BodyVerifier, SignedBytes, Verified, VerifyError};

/// Verifies deliveries: it holds the live keys and the window that is accepted.
///
/// Cheap to clone; clones share their keys. See [`verify`](crate::verify) for an example.
#[derive(Clone, Debug)]
pub struct Verifier {
    keys: Keys,
    window: Window,
}

impl Verifier {
    /// Returns a verifier with a [`Secret`](crate::Secret), a [`KeyRing`](crate::KeyRing) or
    /// [`Keys`], and the default window: 300 s old, 300 s ahead.
    ///
    /// # Security
    /// [`Keys`] that a receiver of another scheme has taken stay with that scheme. If it signs no
    /// timestamp, no age is checked.
    #[must_use]
    pub fn new(keys: impl Into<Keys>) -> Self {
        let keys = keys.into();
        let _ = keys.set_scheme(Scheme::WORKSPACE);
        Self::with_keys(keys)
    }

    /// Returns a verifier of deliveries that are signed by this scheme.
    ///
    /// ```
    /// use hookgate::{Scheme, Secret, Verifier, clock::UnixSeconds};
    ///
    /// let verifier = Verifier::for_scheme(Scheme::STRIPE, Secret::new("whsec_made_up_for_this_example")?)?;
    /// let signed = "t=1763690000,v1=47c74c3df1ee7ea03c2da4d9ed4a0b6ff61df4a2c4f0a4b0e2c0e4a0a4b0c0d0";
    /// let head = verifier.headers([("Stripe-Signature", signed)])?;
    /// assert!(verifier.verify(&head, b"{}", UnixSeconds::new(1_763_690_000)).is_err()); // made up
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `UnusableScheme`: the row is not safe, the keys do not fit it, or it has no timestamp;
    /// `UnusableSecret`.
    pub fn for_scheme(scheme: Scheme, keys: impl Into<Keys>) -> Result<Self, ConfigError> {
        if !scheme.has_timestamp() {
            let fault = "it signs no timestamp, so no age can be checked: Verifier::without_window";
            return Err(scheme::unusable(&scheme, fault));
        }
        Self::of(scheme, keys.into())
    }

    /// Returns a verifier for a scheme that signs no timestamp.
    ///
    /// # Security
    /// Nothing is *fresh*: a delivery that was copied stays valid for as long as its key lives.
    /// Only a store refuses a replay, and only while it remembers the event.
    ///
    /// # Errors
    /// As [`for_scheme`](Self::for_scheme), and `UnusableScheme` for a scheme that has a timestamp.
    pub fn without_window(scheme: Scheme, keys: impl Into<Keys>) -> Result<Self, ConfigError> {
        if scheme.has_timestamp() {
            let fault = "it signs a timestamp, so the window stays: Verifier::for_scheme";
            return Err(scheme::unusable(&scheme, fault));
        }
        Self::of(scheme, keys.into())
    }

    fn of(scheme: Scheme, keys: Keys) -> Result<Self, ConfigError> {
        keys.set_scheme(scheme)?;
        Ok(Self::with_keys(keys))
    }

    fn with_keys(keys: Keys) -> Self {
        let window = Window::default();
        Self { keys, window }
    }

    /// Picks the headers of the keys' [scheme](Scheme) out of all headers of a request, as
    /// [`DeliveryHeaders::from_pairs`] does for the default one.
    ///
    /// # Errors
    /// A header of what is signed is missing or malformed, or a header of the scheme is there more
    /// than once.
    ///
    /// # Security
    /// Pass **all** headers as received, repeated ones too.
    pub fn headers<'h, 'v: 'h, N, V>(
        &'h self,
        pairs: impl IntoIterator<Item = (N, &'v V)>,
    ) -> Result<DeliveryHeaders<'h>, VerifyError>
    where
        N: AsRef<[u8]>,
        V: AsRef<[u8]> + ?Sized + 'v,
    {
        DeliveryHeaders::with_scheme(self.keys.scheme(), pairs)
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

    /// Verifies a whole delivery now, by the system's clock: all headers of the request as pairs,
    /// and its body. The proof owns or borrows the very bytes that it covers.
    ///
    /// ```
    /// use hookgate::{Secret, Verifier};
    ///
    /// # use hookgate::{clock::{Clock, SystemClock}, verify::{Signature, Timestamp}};
    /// let verifier = Verifier::new(Secret::new("whsec_made_up_for_this_example")?);
    /// let body = br#"{"id":"evt_1"}"#;
    /// # let now = Timestamp::at(SystemClock.now())?;
    /// # let signature = Signature::sign(&Secret::new("whsec_made_up_for_this_example")?, &now, body).to_header_value();
    /// # let headers = [("X-Service-Timestamp", now.as_str()), ("X-Service-Signature", &signature)];
    /// let verified = verifier.verify_now(headers, body)?;
    /// assert_eq!(verified.body(), body);
    /// assert!(verifier.verify_now(headers, b"{}").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`DeliveryHeaders::from_pairs`] and [`verify`](Self::verify).
    ///
    /// # Security
    /// As for [`DeliveryHeaders::from_pairs`] and [`verify`](Self::verify): all headers, repeated
    /// ones too, and the raw bytes.
    pub fn verify_now<'h, N, V, B>(
        &self,
        headers: impl IntoIterator<Item = (N, &'h V)>,
        body: B,
    ) -> Result<Verified<B>, VerifyError>
    where
        N: AsRef<[u8]>,
        V: AsRef<[u8]> + ?Sized + 'h,
        B: SignedBytes,
    {
        let head = DeliveryHeaders::with_scheme(self.keys.scheme(), headers)?;
        self.verify(&head, body, SystemClock.now())
    }

    /// Verifies a whole delivery. The proof owns or borrows the very bytes that it covers. `now` is
    /// the wall clock, in a program [`SystemClock`](crate::clock::SystemClock)`.now()` with the
    /// trait [`Clock`](crate::clock::Clock) in scope.
    ///
    /// No heap allocation, for any result, under a scheme with one signature and no signed header
    /// for the id; the cache of keys that were looked up has some housekeeping.
    ///
    /// # Errors
    /// See [`VerifyErrorKind`](crate::verify::VerifyErrorKind). Answer all of them alike, with 401,
    /// except `NotLookedUp`: 503.
    ///
    /// # Security
    /// `body` must be the raw bytes as received. A body that was parsed and serialised again has
    /// another signature.
    pub fn verify<B: SignedBytes>(
        &self,
        head: &DeliveryHeaders<'_>,
        body: B,
        now: UnixSeconds,
    ) -> Result<Verified<B>, VerifyError> {
        head.check(self.keys.scheme(), self.window, now)?;
        let ring = self.keys.select(head.webhook_id())?;
        ring.verify(head.signed.clone(), &head.signatures, body)
    }

    /// Begins with the head alone, before the body is read. The body may have `limit` bytes at
    /// most.
    ///
    /// # Errors
    /// `Stale`, `Ahead`, `HeaderMissing` where the subscription id is required and missing, or
    /// `NotLookedUp`. A subscription that is unknown ends only in [`BodyVerifier::finish`], after
    /// no less work than a known one.
    pub fn begin(
        &self,
        head: &DeliveryHeaders<'_>,
        now: UnixSeconds,
        limit: usize,
    ) -> Result<BodyVerifier, VerifyError> {
        head.check(self.keys.scheme(), self.window, now)?;
        let ring = self.keys.select(head.webhook_id())?;
        Ok(BodyVerifier::new(ring, head.clone(), limit))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::verify::{KeyRing, Secret, Signature, Timestamp};

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
        assert_eq!(verified.timestamp(), Some(&timestamp));
        assert_eq!(verified.subscription_id(), Some("wh_1"));
        assert_eq!(verified.pinned_workspace(), Some("ws_1"));
        let shown = format!("{verified:?}");
        for part in [
            r#"Timestamp(1763690000)), key: "old", scope: "orders", subscription: Some("wh_1")"#,
            "body_bytes: 2",
        ] {
            assert!(shown.contains(part), "{shown}");
        }
        assert!(!shown.contains("{}"), "{shown}");
        assert_eq!(verified.into_body(), "{}");
    }

    // fault F8: beside rings of several keys, an unknown subscription costs less work than any known one
    #[test]
    fn a_body_of_an_unknown_subscription_is_hashed_as_often_as_one_of_a_known() {
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
            let body = verifier.begin(&head, UnixSeconds::new(1_763_690_000), 2);
            let mut body = body.unwrap();
            for piece in ["{", "}"] {
                body.push(piece.into()).unwrap();
            }
            assert_eq!(body.mac_count(), 2, "{id}");
            assert!(body.finish().is_err());
        }
    }

    #[test]
    fn a_verifier_says_its_window() {
        let secret = Secret::new("whsec_made_up_for_this_test").unwrap();
        let window = Window::default().with_past(Duration::from_secs(7));
        let verifier = Verifier::new(secret).with_window(window);
        assert_eq!(verifier.window(), window);
    }
}
