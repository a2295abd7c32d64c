//! The headers of a delivery, read in one walk and borrowed.

use super::signature::Signature;
use super::timestamp::Timestamp;
use super::{Malformed, VerifyError, VerifyErrorKind as Kind};
use crate::clock::UnixSeconds;

/// `X-Service-Signature`.
pub const SIGNATURE: &str = "x-service-signature";
/// `X-Service-Timestamp`.
pub const TIMESTAMP: &str = "x-service-timestamp";
/// `X-Service-Webhook-Id`. Not signed.
pub const WEBHOOK_ID: &str = "x-service-webhook-id";
/// `X-Service-Event-Id`. Not signed.
pub const EVENT_ID: &str = "x-service-event-id";
/// `X-Service-Event-Type`. Not signed.
pub const EVENT_TYPE: &str = "x-service-event-type";

/// The headers that a delivery is verified with, borrowed from the request.
///
/// Signature and timestamp are present exactly once and well-formed, or there is no such value. The other three are
/// **not signed**: any party that carries the delivery can change them. They are hints, compared with the signed body later on
/// and never trusted.
#[derive(Clone, Debug)]
pub struct DeliveryHeaders<'h> {
    pub(crate) signature: Signature,
    pub(crate) timestamp: Timestamp,
    /// The timestamp as a number: computed once, for the window, and not kept with each delivery.
    pub(crate) seconds: UnixSeconds,
    webhook_id: Option<&'h [u8]>,
    event_id: Option<&'h [u8]>,
    event_type: Option<&'h [u8]>,
}

impl<'h> DeliveryHeaders<'h> {
    /// Picks the delivery's headers out of all headers of a request. Names are compared without regard to case.
    ///
    /// # Errors
    /// Signature or timestamp missing or malformed, or any of the five `X-Service-` headers more than once.
    ///
    /// # Security
    /// Pass **all** headers as received, repeated ones too: a map that keeps one of two values hides an attack.
    ///
    /// ```
    /// use hookgate::verify::{DeliveryHeaders, VerifyErrorKind};
    ///
    /// let signature = format!("sha256={}", "0".repeat(64));
    /// let head = DeliveryHeaders::from_pairs([
    ///     ("X-Service-Signature", signature.as_str()),
    ///     ("X-Service-Timestamp", "1763690000"),
    ///     ("Accept", "*/*"),
    /// ])?;
    /// assert_eq!(head.timestamp().as_str(), "1763690000");
    ///
    /// let error = DeliveryHeaders::from_pairs([("x-service-timestamp", "1763690000")]).unwrap_err();
    /// assert_eq!(error.kind(), VerifyErrorKind::HeaderMissing("x-service-signature"));
    /// # Ok::<(), hookgate::verify::VerifyError>(())
    /// ```
    pub fn from_pairs<N, V>(
        pairs: impl IntoIterator<Item = (N, &'h V)>,
    ) -> Result<Self, VerifyError>
    where
        N: AsRef<[u8]>,
        V: AsRef<[u8]> + ?Sized + 'h,
    {
        let mut found = HeaderSlots::default();
        for (name, value) in pairs {
            found.take(name.as_ref(), value.as_ref());
        }
        found.headers()
    }

    /// Returns when the delivery was signed, according to its sender.
    #[must_use]
    pub fn timestamp(&self) -> &Timestamp {
        &self.timestamp
    }

    /// Returns `X-Service-Webhook-Id`, which is not signed: it selects the key ring and proves nothing.
    #[must_use]
    pub fn webhook_id(&self) -> Option<&'h [u8]> {
        self.webhook_id
    }

    /// Returns `X-Service-Event-Id`, which is not signed.
    #[must_use]
    pub fn event_id(&self) -> Option<&'h [u8]> {
        self.event_id
    }

    /// Returns `X-Service-Event-Type`, which is not signed.
    #[must_use]
    pub fn event_type(&self) -> Option<&'h [u8]> {
        self.event_type
    }
}

/// The delivery's headers that a walk over all headers has found so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderSlots<'h> {
    signature: HeaderSlot<'h>,
    timestamp: HeaderSlot<'h>,
    webhook_id: HeaderSlot<'h>,
    event_id: HeaderSlot<'h>,
    event_type: HeaderSlot<'h>,
}

#[derive(Clone, Copy, Debug, Default)]
enum HeaderSlot<'h> {
    #[default]
    Absent,
    Once(&'h [u8]),
    Repeated,
}

impl<'h> HeaderSlots<'h> {
    /// Takes the header if it is one of the delivery's.
    #[inline]
    pub(crate) fn take(&mut self, name: &[u8], value: &'h [u8]) {
        // The length alone excludes nearly every other header.
        if (EVENT_ID.len()..=WEBHOOK_ID.len()).contains(&name.len()) {
            self.take_likely(name, value);
        }
    }

    fn take_likely(&mut self, name: &[u8], value: &'h [u8]) {
        // Most callers pass names in lower case, as HTTP/2 and the http crate write them.
        match self.slot(name) {
            Some(slot) => slot.fill(value),
            None => self.take_in_any_case(name, value),
        }
    }

    #[cold]
    fn take_in_any_case(&mut self, name: &[u8], value: &'h [u8]) {
        let mut lower = [0; WEBHOOK_ID.len()];
        if let Some(lower) = lower.get_mut(..name.len()) {
            lower.copy_from_slice(name);
            lower.make_ascii_lowercase();
            if let Some(slot) = self.slot(lower) {
                slot.fill(value);
            }
        }
    }

    /// Returns the slot of the header with this name, in lower case. No more than two of the five names are equally long.
    #[inline]
    fn slot(&mut self, name: &[u8]) -> Option<&mut HeaderSlot<'h>> {
        const SIGNATURE_LEN: usize = SIGNATURE.len();
        const WEBHOOK_ID_LEN: usize = WEBHOOK_ID.len();
        let is = |known: &str| name == known.as_bytes();
        match name.len() {
            SIGNATURE_LEN if is(SIGNATURE) => Some(&mut self.signature),
            SIGNATURE_LEN if is(TIMESTAMP) => Some(&mut self.timestamp),
            WEBHOOK_ID_LEN if is(WEBHOOK_ID) => Some(&mut self.webhook_id),
            WEBHOOK_ID_LEN if is(EVENT_TYPE) => Some(&mut self.event_type),
            _ if is(EVENT_ID) => Some(&mut self.event_id),
            _ => None,
        }
    }

    /// Returns `X-Service-Event-Id` and `X-Service-Event-Type`, each where it appears once.
    pub(crate) fn event_hints(&self) -> (Option<&'h [u8]>, Option<&'h [u8]>) {
        (self.event_id.once(), self.event_type.once())
    }

    /// Returns `X-Service-Webhook-Id`, if it appears once.
    pub(crate) fn webhook_hint(&self) -> Option<&'h [u8]> {
        self.webhook_id.once()
    }

    /// Returns the headers, or the first fault in the order of the fields.
    pub(crate) fn headers(&self) -> Result<DeliveryHeaders<'h>, VerifyError> {
        let signature = self.signature.parse(SIGNATURE, Signature::parse)?;
        let timestamp = self.timestamp.parse(TIMESTAMP, Timestamp::parse)?;
        Ok(DeliveryHeaders {
            signature,
            timestamp,
            seconds: timestamp.seconds(),
            webhook_id: self.webhook_id.at_most_once(WEBHOOK_ID)?,
            event_id: self.event_id.at_most_once(EVENT_ID)?,
            event_type: self.event_type.at_most_once(EVENT_TYPE)?,
        })
    }
}

impl<'h> HeaderSlot<'h> {
    #[inline]
    fn fill(&mut self, value: &'h [u8]) {
        *self = match self {
            Self::Absent => Self::Once(value),
            Self::Once(_) | Self::Repeated => Self::Repeated,
        };
    }

    fn once(self) -> Option<&'h [u8]> {
        match self {
            Self::Once(value) => Some(value),
            Self::Absent | Self::Repeated => None,
        }
    }

    #[inline]
    fn at_most_once(self, name: &'static str) -> Result<Option<&'h [u8]>, VerifyError> {
        match self {
            Self::Absent => Ok(None),
            Self::Once(value) => Ok(Some(value)),
            Self::Repeated => Err(VerifyError::new(Kind::HeaderRepeated(name))),
        }
    }

    #[inline]
    fn parse<T>(
        self,
        name: &'static str,
        parse: impl FnOnce(&[u8]) -> Result<T, Malformed>,
    ) -> Result<T, VerifyError> {
        let value = self
            .at_most_once(name)?
            .ok_or(VerifyError::new(Kind::HeaderMissing(name)))?;
        parse(value).map_err(|Malformed| VerifyError::new(Kind::HeaderMalformed(name)))
    }
}
