//! All steps of a delivery, one by one, without a framework.
//!
//! | step | takes | gives | waits |
//! |---|---|---|---|
//! | [`open`](Receiver::open), [`open_async`](Receiver::open_async) | the request's head | an [`Intake`] | no; for a [look-up](crate::lookup) |
//! | [`push`](Intake::push) | a chunk of the body | | no |
//! | [`recognise`](Receiver::recognise) | the intake | a [`Delivery`] | no |
//! | [`admit`](Receiver::admit) | the delivery | an [`Admission`] | for the store |
//! | [`commit`](Claim::commit), [`release`](Claim::release) | the [`Claim`] | | for the store |
//!
//! Each step ends in a [`Refusal`] or leads to the next. The tower layer takes the same steps and adds the parts that need a
//! runtime: deadlines, waiting for a running copy, runs that outlive their request.
//!
//! ```
//! use hookgate::{Admission, LocalStore, Receiver, RequestHead, Secret, block_on};
//! # use hookgate::{Signature, SystemClock, Timestamp, Clock};
//! # let secret = Secret::new("whsec_made_up_for_this_example")?;
//! # let now = SystemClock.now().to_string();
//! # let body = br#"{"id":"evt_1","type":"row.deleted"}"#;
//! # let signature = Signature::sign(&secret, &Timestamp::parse(now.as_bytes())?, body).to_header_value();
//! # let headers = [("x-service-timestamp", &*now), ("x-service-signature", &*signature)];
//! let receiver = Receiver::builder().secret(secret).store(LocalStore::default()).build()?;
//!
//! let head = RequestHead::new("POST", headers);
//! let mut intake = receiver.open(&head)?;
//! intake.push(body.as_slice().into())?;
//! let delivery = receiver.recognise(intake, &head)?;
//! match block_on(receiver.admit(&delivery))? {
//!     Admission::Fresh(claim) => {
//!         assert_eq!(delivery.event_id(), "evt_1"); // handle it, then
//!         block_on(claim.commit())?;
//!     }
//!     Admission::Replayed { .. } => {} // answer 200
//!     Admission::Running { .. } => {}  // ask again a little later, or answer 503
//! }
//! assert!(matches!(block_on(receiver.admit(&delivery))?, Admission::Replayed { same_body: true }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "tower")]
mod accepting;
mod builder;
mod gate;
mod head;
mod health;
mod opening;
mod stale;
mod store;
mod vitals;

pub use builder::{HeaderMismatch, ReceiverBuilder};
pub use head::RequestHead;
pub use health::{Health, Unready};

#[cfg(feature = "tower")]
pub(crate) use builder::in_range;
pub(crate) use gate::{Gate, Permit};
#[cfg(feature = "tower")]
pub(crate) use opening::{LookingUp, Opening};
pub(crate) use store::Store;
pub(crate) use vitals::Vitals;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use stale::StaleSample;

use crate::clock::{Clock, UnixSeconds};
#[cfg(feature = "metrics")]
use crate::dedupe::StoreStats;
use crate::dedupe::{Claim, ClaimRecord, ClaimToken, Claimed, RetrySchedule};
use crate::dedupe::{StoreError, StoreErrorKind};
use crate::delivery::{Delivery, RecognisedBy};
use crate::event::EventHead;
#[cfg(feature = "tower")]
use crate::layer::LayerSettings;
use crate::lookup::{Keys, Verifier};
use crate::outcome::Refusal;
use crate::verify::{DeliveryHeaders, Intake};
use crate::verify::{VerifyError, VerifyErrorKind};

/// Receives deliveries: the policy, and the steps of a delivery. Clones share all state.
///
/// See the [module docs](self) for the steps, and `Receiver::layer` (feature `tower`) for use in an axum app.
#[derive(Clone)]
pub struct Receiver {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    verifier: Verifier,
    pub(crate) clock: Arc<dyn Clock>,
    /// Absent if deduplication was switched off.
    store: Option<Store>,
    max_body: usize,
    header_mismatch: HeaderMismatch,
    pub(crate) lease: Duration,
    retention: Duration,
    pub(crate) schedule: RetrySchedule,
    pub(crate) gate: Arc<Gate>,
    #[cfg(feature = "tower")]
    pub(crate) layer: LayerSettings,
    stale: StaleSample,
}

/// The result of [`Receiver::admit`].
#[derive(Debug)]
pub enum Admission {
    /// The caller must handle the event.
    Fresh(Claim),
    /// It is done already: answer 200 and do nothing.
    Replayed {
        /// Whether the body is the one that was handled.
        same_body: bool,
    },
    /// Another copy is being handled. Its outcome is unknown, so this one must not be answered 2xx.
    Running {
        /// The rest of the other claim's lease.
        retry_after: Duration,
    },
}

impl Receiver {
    /// Returns a builder for a receiver. Secrets and a store must be set; the other settings have defaults.
    pub fn builder() -> ReceiverBuilder {
        ReceiverBuilder::default()
    }

    /// Checks the head, before a byte of the body is read.
    ///
    /// If keys are [looked up](crate::lookup), this answers only from the cache; [`open_async`](Self::open_async) looks them
    /// up.
    ///
    /// # Errors
    /// Method, encoding, type or announced size; headers, age or a missing subscription id; `NotLookedUp` if the keys would
    /// have to be looked up: see [`RefusalKind`](crate::RefusalKind). An unknown subscription is refused only by
    /// [`recognise`](Self::recognise), after as much work as for a known one.
    pub fn open(&self, head: &RequestHead<'_>) -> Result<Intake, Refusal> {
        let (headers, stale) = self.read_head(head, |_| ())?;
        match self.shared.verifier.start(&headers, stale) {
            Ok(check) => Ok(self.intake(check)),
            Err(error) => Err(stale.map_or(error, VerifyError::new).into()),
        }
    }

    /// Reads the head and checks the age. `seen` gets the reading of the clock. For a stale delivery that is still checked,
    /// also returns the reason of its refusal.
    #[inline]
    fn read_head<'h>(
        &self,
        head: &RequestHead<'h>,
        seen: impl FnOnce(UnixSeconds),
    ) -> Result<(DeliveryHeaders<'h>, Option<VerifyErrorKind>), Refusal> {
        head.refuse_unreadable(self.shared.max_body)?;
        let headers = head.delivery_headers().map_err(VerifyError::from)?;
        let (window, now) = (self.shared.verifier.window(), self.shared.clock.now());
        seen(now);
        let stale = match window.check(headers.timestamp().seconds(), now) {
            Ok(()) => None,
            Err(error) => Some(self.check_stale(error)?),
        };
        Ok((headers, stale))
    }

    /// Compares the signature, and reads id and type from the signed body.
    ///
    /// # Errors
    /// Not authentic, from a workspace to which the keys are not pinned, no usable id and type, or headers that name another
    /// event.
    pub fn recognise(&self, intake: Intake, head: &RequestHead<'_>) -> Result<Delivery, Refusal> {
        let verified = intake.finish()?;
        let event = match EventHead::of(&verified) {
            Ok(event) => event,
            Err(error) => return Err(Refusal::of_event_head(error, verified)),
        };
        if self.shared.header_mismatch == HeaderMismatch::Refuse
            && let Some(kind) = head.differs_from(&event)
        {
            return Err(Refusal::new(kind).of_authentic(verified));
        }
        let now = self.shared.clock.now();
        self.shared.gate.vitals.authentic(now);
        Ok(Delivery::new(verified, event, now, self.id()))
    }

    /// Claims the event.
    ///
    /// # The lease
    /// A claim's lease is counted from this call, not from the store's answer, which may come late. If the answer took as long
    /// as the lease or longer, there is no claim: another copy may have the event by then. The claim is released and the
    /// delivery refused. If the answer came within the lease, only the rest of the lease is left. So code that renews must
    /// count the first third from before this call, as the tower layer does. The time is measured by the receiver's own
    /// [clock](crate::ReceiverBuilder::clock), the monotonic reading; the store ends leases by its own clock, which may be
    /// another one. Both must run at the same speed: the receiver cannot see it if a store's clock jumps ahead while a claim is
    /// under way.
    ///
    /// # Cancel safety
    /// If this future is dropped half way, a claim may stay behind in a store that is reached over a network: the event can
    /// then be claimed again when its lease ends. If requests can be cancelled, await this in its own task, as the tower layer
    /// does.
    ///
    /// # Errors
    /// No permit is free, the receiver is shutting down, or the store did not answer, or not within the lease. In the last two
    /// cases the claim, which may have taken effect, is released on a best effort.
    pub async fn admit(&self, delivery: &Delivery) -> Result<Admission, Refusal> {
        self.admit_while(delivery, || true).await
    }

    /// As [`admit`](Self::admit). The store's answer counts for its health only if `heard` returns true.
    pub(crate) async fn admit_while(
        &self,
        delivery: &Delivery,
        heard: impl Fn() -> bool,
    ) -> Result<Admission, Refusal> {
        let permit = self.shared.gate.enter().map_err(Refusal::new)?;
        let Some(store) = &self.shared.store else {
            return Ok(Admission::Fresh(Claim::new(None, permit)));
        };
        let (key, token) = (*delivery.key(), ClaimToken::new(delivery.body()));
        let vitals = &self.shared.gate.vitals;
        let asked = self.shared.clock.monotonic();
        let claimed = store.claim(&key, token, self.shared.lease).await;
        let age = self.shared.clock.monotonic().saturating_since(asked);
        let claimed = match claimed {
            // The lease has ended: another copy may have the event by now, or may have handled it.
            Ok(Claimed::Fresh) if age >= self.shared.lease => {
                Err(StoreError::new(StoreErrorKind::TimedOut))
            }
            answered => answered,
        };
        if heard() {
            vitals.store_said(&claimed);
        }
        match claimed {
            Ok(Claimed::Fresh) => {
                let record = ClaimRecord {
                    store: store.clone(),
                    key,
                    token,
                    lease: self.shared.lease,
                    age,
                    retention: self.shared.retention,
                };
                Ok(Admission::Fresh(Claim::new(Some(record), permit)))
            }
            Ok(Claimed::Done { by }) => {
                vitals.accepted();
                Ok(Admission::Replayed {
                    same_body: by.same_body(&token),
                })
            }
            Ok(Claimed::Running { retry_after }) => Ok(Admission::Running { retry_after }),
            Err(error) => {
                // After an error it is unknown whether there is a claim. A release with a token that holds no claim changes
                // nothing.
                let _ = store.release(&key, token).await;
                Err(error.into())
            }
        }
    }

    /// Returns the store's own numbers, if the store reports them.
    #[cfg(feature = "metrics")]
    pub(crate) fn observe_store(&self) -> Option<StoreStats> {
        self.shared.store.as_ref()?.observe()
    }

    /// Returns the retention of events and the least that it must be; `None` if events are not remembered.
    #[cfg(feature = "metrics")]
    pub(crate) fn retention(&self) -> Option<(Duration, Duration)> {
        self.shared.store.as_ref()?;
        let window = self.shared.verifier.window();
        let needed = self.shared.schedule.minimum_retention(&window);
        Some((self.shared.retention, needed))
    }

    #[cfg(feature = "testing")]
    pub(crate) fn window(&self) -> crate::verify::Window {
        self.shared.verifier.window()
    }

    pub(crate) fn id(&self) -> RecognisedBy {
        RecognisedBy(Arc::as_ptr(&self.shared).addr())
    }

    /// Returns the live keys, so that some can be replaced while deliveries arrive.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        self.shared.verifier.keys()
    }

    /// Returns the number of runs under way, in handlers or in calls of the store.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.shared.gate.runs()
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("verifier", &self.shared.verifier)
            .field("store", &self.shared.store)
            .field("gate", &self.shared.gate)
            .finish_non_exhaustive()
    }
}
