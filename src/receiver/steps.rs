//! `Receiver`: the steps of a delivery, one by one.

use std::sync::Arc;

#[cfg(feature = "tower")]
pub(super) use crate::layer::ReceiverInner;
use crate::lookup::Keys;
use crate::lookup::RingSearch;
use crate::outcome::Refusal;
#[cfg(doc)]
use crate::pipeline::Claim;
use crate::pipeline::{
    Admission, Authenticator, CheckedHead, Claims, Delivery, Health, RequestHead, StoredDelivery,
};
use crate::verify::BodyVerifier;

/// Receives deliveries: the policy, and the steps of a delivery. Clones share all state.
///
/// See the [module docs](super) for the steps, and `Receiver::layer` (feature `tower`) for use in
/// an axum app.
#[derive(Clone, Debug)]
pub struct Receiver {
    pub(super) shared: Arc<ReceiverInner<Claims>>,
}

#[cfg(not(feature = "tower"))]
#[derive(Debug)]
pub(super) struct ReceiverInner<N> {
    pub(super) auth: Authenticator,
    pub(super) backend: N,
}

impl Receiver {
    /// Reads the head of a request by the receiver's [scheme](crate::Scheme), as
    /// [`RequestHead::new`] does by the default one.
    ///
    /// # Security
    /// Pass **all** headers as received, repeated ones too.
    pub fn request_head<'h, 'v: 'h, N, V>(
        &'h self,
        method: &'h str,
        headers: impl IntoIterator<Item = (N, &'v V)>,
    ) -> RequestHead<'h>
    where
        N: AsRef<[u8]>,
        V: AsRef<[u8]> + ?Sized + 'v,
    {
        RequestHead::with_scheme(self.auth().scheme(), method, headers)
    }

    /// Checks the head, before a byte of the body is read.
    ///
    /// If keys are [looked up](crate::lookup), this answers only from the cache;
    /// [`check_head_async`](Self::check_head_async) looks them up.
    ///
    /// # Errors
    /// Method, encoding, type or announced size; headers, age or a missing subscription id;
    /// `NotLookedUp` if the keys would have to be looked up: see
    /// [`RefusalKind`](crate::outcome::RefusalKind). An unknown subscription is refused only by
    /// [`verify`](Self::verify), after as much work as for a known one.
    pub fn check_head(&self, head: &RequestHead<'_>) -> Result<BodyVerifier, Refusal> {
        let begun = self.read_head(head).and_then(|checked| {
            let ring = self.keys().select(checked.subscription())?;
            Ok(self.auth().begin_body(checked, ring))
        });
        begun.map_err(|refusal| head.named_in(refusal))
    }

    /// As [`check_head`](Self::check_head), and waits if the subscription's keys have to be looked
    /// up: this applies to keys of a [provider](crate::lookup). With other keys it never waits.
    ///
    /// The future can be dropped safely at any time. There is no time limit: use the time-out of
    /// your runtime, and answer 503 when it ends. The layer does both.
    ///
    /// ```
    /// # #[cfg(feature = "lookup")] {
    /// use hookgate::{
    ///     MemoryStore, Receiver, Secret, block_on, lookup::SubscriptionId, outcome::RefusalKind,
    ///     receiver::RequestHead,
    /// };
    /// # use hookgate::{
    /// #     clock::{Clock, SystemClock},
    /// #     verify::{Signature, Timestamp},
    /// # };
    /// # let now = SystemClock.now().to_string();
    /// # let body = br#"{"id":"evt_1","type":"row.deleted"}"#;
    /// # let secret = Secret::new("whsec_made_up_for_this_example")?;
    /// # let signature = Signature::sign(&secret, &Timestamp::parse(now.as_bytes())?, body).to_header_value();
    /// # let headers = [
    /// #     ("x-service-webhook-id", "wh_1"), ("x-service-timestamp", &*now), ("x-service-signature", &*signature)];
    /// let receiver = Receiver::builder()
    ///     .provider(async |id: SubscriptionId| match id.as_str() {
    ///         "wh_1" => Secret::new("whsec_made_up_for_this_example").map(Some),
    ///         _ => Ok(None),
    ///     })
    ///     .store(MemoryStore::default())
    ///     .build()?;
    ///
    /// let head = RequestHead::new("POST", headers);
    /// assert_eq!(receiver.check_head(&head).unwrap_err().kind(), RefusalKind::NotLookedUp);
    /// let mut received = block_on(receiver.check_head_async(&head))?;
    /// received.push(body.as_slice().into())?;
    /// assert_eq!(receiver.verify(received, &head)?.verified().scope(), "wh_1");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`check_head`](Self::check_head), but never `NotLookedUp`; and `SecretsUnavailable`.
    pub async fn check_head_async(&self, head: &RequestHead<'_>) -> Result<BodyVerifier, Refusal> {
        let begun = async {
            let checked = self.read_head(head)?;
            let ring = match self.keys().find(checked.subscription())? {
                RingSearch::Pending(look_up) => look_up.await?,
                RingSearch::Found(ring) => ring,
            };
            Ok(self.auth().begin_body(checked, ring))
        };
        begun.await.map_err(|refusal| head.named_in(refusal))
    }

    /// Compares the signature, and reads id and type.
    ///
    /// # Errors
    /// Not authentic, from a workspace to which the keys are not pinned, no usable id and type, or
    /// headers that name another event.
    pub fn verify(&self, body: BodyVerifier, head: &RequestHead<'_>) -> Result<Delivery, Refusal> {
        let verified = self.auth().verify(body, head);
        verified.map_err(|refusal| head.named_in(refusal))
    }

    /// Verifies a delivery that a store or a queue has kept, by the MAC of the stored bytes: the
    /// other side of [`Delivery::to_stored`]. Only the window of ages is left out, so a backlog may
    /// be of any age.
    ///
    /// The ring is found by the subscription's id, and looked up where keys are [looked
    /// up](crate::lookup); where a remembered ring refuses the delivery, it is looked up once more,
    /// as another process may have a newer one. The ring's scope must be the stored one.
    ///
    /// Dropping the future is safe, and there is **no time limit**: put a time-out around it, such
    /// as `tokio::time::timeout`. A look-up that hangs keeps one of the places for look-ups from
    /// all requests.
    ///
    /// ```
    /// use hookgate::{Receiver, Secret, block_on, verify::VerifyErrorKind};
    /// # use hookgate::{
    /// #     Delivery,
    /// #     clock::{Clock, SystemClock},
    /// #     receiver::RequestHead,
    /// #     verify::{Signature, Timestamp},
    /// # };
    /// # fn received(receiver: &Receiver, secret: &Secret) -> Result<Delivery, Box<dyn std::error::Error>> {
    /// #     let body = br#"{"id":"evt_1","type":"page.created"}"#;
    /// #     let now = Timestamp::at(SystemClock.now())?;
    /// #     let signature = Signature::sign(secret, &now, body).to_header_value();
    /// #     let headers = [("x-service-timestamp", now.as_str()), ("x-service-signature", &*signature)];
    /// #     let head = RequestHead::new("POST", headers);
    /// #     let mut received = receiver.check_head(&head)?;
    /// #     received.push(body.as_slice().into())?;
    /// #     Ok(receiver.verify(received, &head)?)
    /// # }
    /// # let secret = || Secret::new("whsec_made_up_for_this_example");
    /// let receiver = Receiver::builder().secret(secret()?).without_deduplication().build()?;
    /// # let delivery = received(&receiver, &secret()?)?;
    /// // The delivery goes through a queue, and comes back days later.
    /// let mut stored = delivery.to_stored();
    /// assert_eq!(block_on(receiver.verify_stored(&stored))?.event_id(), "evt_1");
    ///
    /// // One that was changed there goes to the dead letters.
    /// stored.body = br#"{"id":"evt_2","type":"page.created"}"#.as_slice().into();
    /// let refusal = block_on(receiver.verify_stored(&stored)).unwrap_err();
    /// assert_eq!(refusal.verify_error().map(|error| error.kind()), Some(VerifyErrorKind::SignatureMismatch));
    /// assert_eq!(refusal.retry_after(), None); // only a refusal with this time can succeed later
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`NotAuthentic`](crate::outcome::RefusalKind::NotAuthentic), whose
    /// [`verify_error`](Refusal::verify_error) is `HeaderMissing` or `HeaderMalformed` for
    /// signature, timestamp, or the subscription id (parts that a single ring has accepted have
    /// none: set it in the backlog when you change to several rings), `UnknownSubscription`,
    /// `ScopeMismatch`, `SignatureMismatch`, `WorkspaceMismatch`, or `KeyRemoved` for a key whose
    /// name has left the ring (give each key a name of its own: a new key under the old name is a
    /// `SignatureMismatch`); and `UnusableEvent`. None of them ends by itself: put such a delivery
    /// to the dead letters, and never drop it. A key that comes back, or an operator, can still
    /// save it.
    ///
    /// `SecretsUnavailable` is that of a look-up: try again later.
    ///
    /// # Security
    /// It proves that the delivery is **authentic**: the holder of a live key has signed these
    /// bytes. It does not prove that it is **fresh**, or here for the first time: whoever can write
    /// to the store or queue can put an old delivery in again. Where an event must not run twice,
    /// claim it as usual, by [`admit`](Self::admit) or in your own transaction. Receiving time,
    /// trace and the stored name of the key are not signed, and may be anything.
    pub async fn verify_stored(&self, stored: &StoredDelivery) -> Result<Delivery, Refusal> {
        stored.verify(&self.auth().verifier).await
    }

    /// Claims the event.
    ///
    /// # The lease
    /// A claim's lease is counted from this call, not from the store's answer, which may come late.
    /// If the answer took as long as the lease or longer, there is no claim: another copy may have
    /// the event by then. The claim is released and the delivery refused. If the answer came within
    /// the lease, only the rest of the lease is left. So code that renews must count the first
    /// third from before this call, as the tower layer does. The time is measured by the receiver's
    /// own [clock](crate::ReceiverBuilder::clock), the monotonic reading; the store ends leases by
    /// its own clock, which may be another one. Both must run at the same speed: the receiver
    /// cannot see it if a store's clock jumps ahead while a claim is under way.
    ///
    /// # Cancel safety
    /// If this future is dropped half way, a claim may stay behind in a store that is reached over
    /// a network: the event can then be claimed again when its lease ends. If requests can be
    /// cancelled, await this in a task of its own.
    ///
    /// # Errors
    /// No permit is free, the receiver is shutting down, or the store did not answer, or not within
    /// the lease. In the last two cases the claim, which may have taken effect, is released on a
    /// best effort.
    pub async fn admit(&self, delivery: &Delivery) -> Result<Admission, Refusal> {
        let ReceiverInner { auth, backend, .. } = &*self.shared;
        backend.admit(auth, delivery, || true).await
    }

    /// Returns the live keys, so that some can be replaced while deliveries arrive.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        self.auth().keys()
    }

    /// Returns the number of runs under way, in handlers or in calls of the store.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.auth().gate.runs()
    }

    /// Returns the health of the receiver, for a readiness probe. It reads a few numbers and the
    /// clock. It does not wait, and does not call the store.
    ///
    /// Not ready means one of [three things](Health::reasons): it is draining, no permit is free,
    /// or its store is failing.
    ///
    /// # Security
    /// **A client that cannot sign a delivery cannot make a receiver unready.** Forged, stale,
    /// slow, broken and oversized requests take no permit and reach no store, however many they
    /// are. Authentic deliveries can use up the permits, because that is the purpose of permits.
    /// With a full store, a slow handler or failing handlers the receiver stays ready. A permit is
    /// free again when a run ends, so let the probe fail a few times before it acts (Kubernetes:
    /// `failureThreshold: 3`).
    ///
    /// Without deliveries the receiver stays ready too. Use an alert on
    /// [`since_last_accepted`](Health::since_last_accepted) for that, not a probe.
    ///
    /// Use it for readiness and not for liveness: a restart repairs none of the three, and loses
    /// the contents of a store in memory.
    #[must_use]
    pub fn health(&self) -> Health {
        self.auth().gate.health()
    }

    /// Returns the window of ages that it accepts.
    #[must_use]
    pub fn window(&self) -> crate::verify::Window {
        self.auth().verifier.window()
    }

    fn read_head<'h>(&self, head: &RequestHead<'h>) -> Result<CheckedHead<'h>, Refusal> {
        let auth = self.auth();
        auth.check_age(head.read(auth.max_body, auth.scheme())?, auth.clock.now())
    }

    fn auth(&self) -> &Authenticator {
        &self.shared.auth
    }
}
