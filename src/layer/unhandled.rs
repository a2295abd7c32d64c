//! The answer for an event that has no handler.

use std::fmt;

use http::Response;

use super::failure_reason::FailureReason;
use crate::event::{DataModelId, EventType, model_id};
use crate::walk::Delivery;

/// The most characters of a data model's id that are shown.
const MAX_CHARS: usize = 256;

/// A handler's answer: there is no handler for such an event.
///
/// With a 2xx the event is done, as with any 2xx, but the operator gets [`Outcome::Unhandled`](crate::Outcome::Unhandled) in
/// place of `Handled`. With any other status a retry runs again, and the operator gets
/// [`Failure::Unhandled`](crate::Failure::Unhandled). In both cases this value is the reason. A hook reads type and data model
/// from it: `reason.downcast_ref::<Unhandled>()`.
///
/// The event router gives this answer where it has no arm. An axum handler returns it, which is a 204; a tower service
/// [marks](Self::mark) its response with it.
///
#[cfg_attr(feature = "axum", doc = "```")]
#[cfg_attr(not(feature = "axum"), doc = "```ignore")]
/// use axum::response::IntoResponse;
/// use hookgate::{Delivery, Unhandled};
///
/// async fn on_delivery(delivery: Delivery) -> Result<(), Unhandled> {
///     match delivery.event_type() {
///         "page.created" => Ok(()),
///         _ => Err(Unhandled::of(&delivery)),
///     }
/// }
/// # fn received(body: &'static [u8]) -> Result<Delivery, Box<dyn std::error::Error>> {
/// #     use hookgate::{Clock, Receiver, RequestHead, Secret, Signature, SystemClock, Timestamp};
/// #     let secret = Secret::new("whsec_made_up_for_this_example")?;
/// #     let now = Timestamp::at(SystemClock.now())?;
/// #     let signature = Signature::sign(&secret, &now, body).to_header_value();
/// #     let headers = [("x-service-timestamp", now.as_str()), ("x-service-signature", &*signature)];
/// #     let receiver = Receiver::builder().secret(secret).without_deduplication().build()?;
/// #     let head = RequestHead::new("POST", headers);
/// #     let mut intake = receiver.open(&head)?;
/// #     intake.push(body.into())?;
/// #     Ok(receiver.recognise(&mut intake, &head)?)
/// # }
/// # let handler: axum::routing::MethodRouter = axum::routing::post(on_delivery);
///
/// let delivery = received(br#"{"id":"evt_1","type":"row.deleted","data":{"datamodelId":"dm_1"}}"#)?;
/// let unhandled = Unhandled::of(&delivery);
/// assert_eq!(unhandled.to_string(), "no handler for row.deleted of the data model dm_1");
/// assert_eq!(unhandled.into_response().status(), 204);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use = "it must be put into the handler's response"]
pub struct Unhandled {
    event_type: EventType,
    model: Option<DataModelId>,
}

impl Unhandled {
    /// Takes the delivery's event type and, for a row event, the data model, if the body names it readably.
    pub fn of(delivery: &Delivery) -> Self {
        let event_type = delivery.head().event_type.clone();
        let model = if event_type.names_datamodel() {
            model_id(delivery.verified()).ok()
        } else {
            None
        };
        Self {
            event_type,
            model: model.map(|id| DataModelId::from(&*id)),
        }
    }

    /// Returns the event's type.
    #[must_use]
    pub fn event_type(&self) -> &EventType {
        &self.event_type
    }

    /// Returns the row's data model.
    #[must_use]
    pub fn model(&self) -> Option<&DataModelId> {
        self.model.as_ref()
    }

    /// Marks a response; its status stays. A 422 becomes the receiver's own, with the shape of its other answers.
    pub fn mark<B>(self, response: Response<B>) -> Response<B> {
        FailureReason::new(self).mark(response)
    }
}

/// Both come from the body, so they are escaped. A type has at most 256 bytes, and at most 256 characters of an id are shown.
impl fmt::Display for Unhandled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no handler for {}",
            self.event_type.as_str().escape_debug()
        )?;
        if let Some(model) = &self.model {
            f.write_str(" of the data model ")?;
            let mut shown = model.as_str().escape_debug();
            for char in shown.by_ref().take(MAX_CHARS) {
                write!(f, "{char}")?;
            }
            if shown.next().is_some() {
                f.write_str("…")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Unhandled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unhandled({self})")
    }
}

impl std::error::Error for Unhandled {}
