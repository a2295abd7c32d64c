//! The headers of a delivery, read in one walk and borrowed.

use super::timestamp::signed_id;
use super::verify_error::VerifyErrorKind as Kind;
use super::{Malformed, Scheme, Signatures, SignedHead, Timestamp, VerifyError, Window};
use crate::clock::UnixSeconds;

/// The headers that a delivery is verified with, borrowed from the request.
///
/// All that is signed is present exactly once and well-formed, or there is no such value. The
/// others are **not signed**: any party that carries the delivery can change them. They are hints,
/// compared with the signed body later on and never trusted.
#[derive(Clone, Debug)]
pub struct DeliveryHeaders<'h> {
    scheme: &'h Scheme,
    pub(crate) signatures: Signatures,
    pub(crate) signed: SignedHead,
    /// The timestamp as a number: computed once, for the window, and not kept with each delivery.
    seconds: Option<UnixSeconds>,
    webhook_id: Option<&'h [u8]>,
    event_id: Option<&'h [u8]>,
    event_type: Option<&'h [u8]>,
}

impl<'h> DeliveryHeaders<'h> {
    /// Picks the headers of the [default scheme](Scheme::WORKSPACE) out of all headers of a
    /// request; [`Verifier::headers`](crate::Verifier::headers) does so for any scheme. Names are
    /// compared without regard to case.
    ///
    /// # Errors
    /// Signature or timestamp missing or malformed, or any of the five `X-Service-` headers more
    /// than once.
    ///
    /// # Security
    /// Pass **all** headers as received, repeated ones too: a map that keeps one of two values
    /// hides an attack.
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
    /// assert_eq!(head.timestamp().map(|at| at.as_str()), Some("1763690000"));
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
        Self::with_scheme(Scheme::workspace(), pairs)
    }

    /// As [`from_pairs`](Self::from_pairs), for this scheme.
    ///
    /// ```
    /// use hookgate::{Scheme, verify::DeliveryHeaders};
    ///
    /// let signature = format!("t=1763690000,v1={}", "0".repeat(64));
    /// let head = DeliveryHeaders::with_scheme(&Scheme::STRIPE, [("Stripe-Signature", &signature)])?;
    /// assert_eq!(head.timestamp().map(|at| at.as_str()), Some("1763690000"));
    /// # Ok::<(), hookgate::verify::VerifyError>(())
    /// ```
    ///
    /// # Errors
    /// A header of what is signed is missing or malformed, or a header of the scheme is there more
    /// than once.
    pub fn with_scheme<'v: 'h, N, V>(
        scheme: &'h Scheme,
        pairs: impl IntoIterator<Item = (N, &'v V)>,
    ) -> Result<Self, VerifyError>
    where
        N: AsRef<[u8]>,
        V: AsRef<[u8]> + ?Sized + 'v,
    {
        let mut found = HeaderSlots::new(scheme);
        for (name, value) in pairs {
            found.take(name.as_ref(), value.as_ref());
        }
        found.headers()
    }

    /// Returns when the delivery was signed, according to its sender; `None` for a scheme without a
    /// timestamp.
    #[must_use]
    pub fn timestamp(&self) -> Option<&Timestamp> {
        self.signed.timestamp.as_ref()
    }

    /// Checks that they were read for this scheme, and the age.
    #[inline]
    pub(crate) fn check(
        &self,
        scheme: &Scheme,
        window: Window,
        now: UnixSeconds,
    ) -> Result<(), VerifyError> {
        if !self.scheme.is_same(scheme) {
            return Err(VerifyError::new(Kind::SchemeMismatch));
        }
        // A delivery without a timestamp has no age.
        self.seconds
            .map_or(Ok(()), |signed| window.check(signed, now))
    }

    /// Returns `X-Service-Webhook-Id`, or what another scheme has in its place, which is not
    /// signed: it selects the key ring and proves nothing.
    #[must_use]
    pub fn webhook_id(&self) -> Option<&'h [u8]> {
        self.webhook_id
    }

    /// Returns `X-Service-Event-Id`, or what another scheme has in its place. It is not signed, but
    /// for a scheme that signs the id in its header.
    #[must_use]
    pub fn event_id(&self) -> Option<&'h [u8]> {
        self.event_id
    }

    /// Returns `X-Service-Event-Type`, or what another scheme has in its place, which is not
    /// signed.
    #[must_use]
    pub fn event_type(&self) -> Option<&'h [u8]> {
        self.event_type
    }
}

/// The delivery's headers that a walk over all headers has found so far.
#[derive(Clone, Debug)]
pub(crate) struct HeaderSlots<'h> {
    scheme: &'h Scheme,
    /// Signature, timestamp, subscription, id, type: each with the name of its header, which is
    /// empty where the scheme has none.
    slots: [(&'static str, HeaderSlot<'h>); 5],
    /// A bit for each length of these names, modulo 64.
    lengths: u64,
}

#[derive(Clone, Copy, Debug, Default)]
enum HeaderSlot<'h> {
    #[default]
    Absent,
    Once(&'h [u8]),
    Repeated,
}

impl<'h> HeaderSlots<'h> {
    #[inline]
    pub(crate) fn new(scheme: &'h Scheme) -> Self {
        let names = scheme.headers_read().map(Option::unwrap_or_default);
        let bit = |name: &&str| 1_u64 << (name.len() % 64);
        Self {
            scheme,
            slots: names.map(|name| (name, HeaderSlot::Absent)),
            lengths: names.iter().map(bit).fold(0, |all, bit| all | bit) & !1,
        }
    }

    /// Takes the header if it is one of the delivery's.
    #[inline]
    pub(crate) fn take(&mut self, name: &[u8], value: &'h [u8]) {
        // The length alone excludes nearly every other header.
        if self.lengths >> (name.len() % 64) & 1 == 1 {
            self.take_likely(name, value);
        }
    }

    fn take_likely(&mut self, name: &[u8], value: &'h [u8]) {
        // Most callers pass names in lower case, as HTTP/2 and the http crate write them.
        let is = |known: &str| known.len() == name.len() && known.as_bytes() == name;
        match self.slots.iter_mut().find(|(known, _)| is(known)) {
            Some((_, slot)) => slot.fill(value),
            None => self.take_in_any_case(name, value),
        }
    }

    #[cold]
    fn take_in_any_case(&mut self, name: &[u8], value: &'h [u8]) {
        let is = |known: &str| !known.is_empty() && known.as_bytes().eq_ignore_ascii_case(name);
        if let Some((_, slot)) = self.slots.iter_mut().find(|(known, _)| is(known)) {
            slot.fill(value);
        }
    }

    pub(crate) fn scheme(&self) -> &'h Scheme {
        self.scheme
    }

    /// Returns the unsigned headers that name id and type, each with its name, where it appears
    /// once.
    pub(crate) fn event_hints(&self) -> [(&'static str, Option<&'h [u8]>); 2] {
        let [_, _, _, id, kind] = self.slots;
        [id, kind].map(|(name, slot)| (name, slot.once()))
    }

    /// Returns the header that names the subscription, if it appears once.
    pub(crate) fn webhook_hint(&self) -> Option<&'h [u8]> {
        self.slots[2].1.once()
    }

    /// Returns the headers, or the first fault in the order of the fields.
    pub(crate) fn headers(&self) -> Result<DeliveryHeaders<'h>, VerifyError> {
        let scheme = self.scheme;
        let [signature, timestamp, subscription, id, kind] = self.slots;
        let malformed = |name| move |Malformed| VerifyError::new(Kind::HeaderMalformed(name));
        let (signatures, element) =
            Signatures::parse(scheme, required(signature)?).map_err(malformed(signature.0))?;
        let digits = match (scheme.has_timestamp(), timestamp.0) {
            (false, _) => None,
            (true, "") => Some(element.ok_or(Malformed).map_err(malformed(signature.0))?),
            (true, _) => Some(required(timestamp)?),
        };
        let timestamp = digits
            .map(Timestamp::parse)
            .transpose()
            .map_err(malformed(scheme.timestamp_header()))?;
        let webhook_id = at_most_once(subscription)?;
        let signed_id = if scheme.signed_id_header().is_some() {
            let text = signed_id(scheme, required(id)?).map_err(malformed(id.0))?;
            Some(text.into())
        } else {
            None
        };
        Ok(DeliveryHeaders {
            scheme,
            signatures,
            seconds: timestamp.as_ref().map(Timestamp::seconds),
            signed: SignedHead {
                parts: scheme.parts(),
                timestamp,
                id: signed_id,
            },
            webhook_id,
            event_id: at_most_once(id)?,
            event_type: at_most_once(kind)?,
        })
    }
}

type Slot<'h> = (&'static str, HeaderSlot<'h>);

#[inline]
fn at_most_once<'h>((name, slot): Slot<'h>) -> Result<Option<&'h [u8]>, VerifyError> {
    match slot {
        HeaderSlot::Absent => Ok(None),
        HeaderSlot::Once(value) => Ok(Some(value)),
        HeaderSlot::Repeated => Err(VerifyError::new(Kind::HeaderRepeated(name))),
    }
}

#[inline]
fn required<'h>(slot: Slot<'h>) -> Result<&'h [u8], VerifyError> {
    at_most_once(slot)?.ok_or(VerifyError::new(Kind::HeaderMissing(slot.0)))
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
}
