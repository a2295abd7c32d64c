//! The event of any scheme: its id and type, and the body as a type of the user's.

use serde::de::DeserializeOwned;

use super::deserialize::deserialize;
use super::event_error::EventError;
use super::head::{EventHead, refuse_repeated};
use super::ids::{EventId, EventType};
use super::scan;
use crate::scheme::{Scheme, Timestamp};
use crate::verify::{SignedBytes, Verified};

/// A verified event of any [scheme](crate::Scheme), with the whole body as your own type: the
/// argument of a handler, or from [`Delivery::signed`](crate::Delivery::signed).
///
/// In an axum handler, a body that does not fit `T` is answered 422 and released, and the operator
/// gets the path; a route without the receiver's layer is answered 500.
///
/// ```
/// use hookgate::{Scheme, Secret, Signed, Verifier, event::EventHead, verify::{Timestamp, sign}};
///
/// #[derive(serde::Deserialize)]
/// struct Invoice {
///     object: String,
/// }
///
/// let secret = Secret::new("whsec_made_up_for_this_example")?;
/// let (now, body) = (Timestamp::parse(b"1763690000")?, br#"{"id":"evt_1","type":"invoice.paid","object":"event"}"#);
/// let headers = sign(&Scheme::STRIPE, &secret, &now, "", body)?;
///
/// let verifier = Verifier::for_scheme(Scheme::STRIPE, secret)?;
/// let head = verifier.headers(headers.iter().map(|(name, value)| (*name, value)))?;
/// let verified = verifier.verify(&head, body, now.seconds())?;
/// let Signed { id, kind, body, .. } = Signed::<Invoice>::new(&verified, &EventHead::from_verified(&verified)?)?;
/// assert_eq!((id.as_str(), kind.as_str(), body.object.as_str()), ("evt_1", "invoice.paid", "event"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Signed<T> {
    /// The event's id, which was signed; where the sender signs none, `sha256:` and the digest of
    /// what was signed.
    pub id: EventId,
    /// The event's type. `untyped` where the delivery has none.
    pub kind: EventType,
    /// Whether the type was signed. If not, it is a **hint** from a header, which any party that
    /// carries the delivery can change: check that the body fits it.
    pub kind_is_signed: bool,
    /// When the delivery was signed; `None` for a scheme without a timestamp.
    pub timestamp: Option<Timestamp>,
    /// The whole body.
    pub body: T,
}

impl<T: DeserializeOwned> Signed<T> {
    /// Reads the body of a delivery that was verified as authentic; `head` is its head.
    ///
    /// # Errors
    /// The body is not well-formed JSON, has its id or type twice, or does not fit `T`; the error
    /// names the path.
    pub fn new<B: SignedBytes>(
        verified: &Verified<B>,
        head: &EventHead,
    ) -> Result<Self, EventError> {
        let text = scan::check(verified.body())?;
        if let Some(scheme) = verified.scheme() {
            refuse_repeated(scheme, verified.body())?;
        }
        Ok(Self {
            id: head.id.clone(),
            kind: head.event_type.clone(),
            kind_is_signed: verified.scheme().is_some_and(Scheme::signs_type),
            timestamp: verified.timestamp().copied(),
            body: deserialize(text, String::new)?,
        })
    }
}
