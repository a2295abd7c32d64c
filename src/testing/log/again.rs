//! The id, the type and the age of a logged delivery, and the same delivery signed again.

use bytes::Bytes;
use serde::Deserialize;

use super::entry::LoggedDelivery;
use crate::clock::UnixSeconds;
use crate::testing::Signer;
use crate::verify::{EVENT_ID, EVENT_TYPE, SIGNATURE, TIMESTAMP, Timestamp, WEBHOOK_ID};

impl LoggedDelivery {
    /// Returns whether the signature can still be checked: the body is present, and the headers are present as they were
    /// received.
    ///
    /// It does not say whether the signature is valid.
    #[must_use]
    pub fn is_verifiable(&self) -> bool {
        !self.unverifiable && self.body.is_some() && self.head().is_ok()
    }

    /// The event's id from the body, or else from the unsigned header. It is not verified.
    #[must_use]
    pub fn event_id(&self) -> Option<String> {
        self.said().id.or_else(|| self.hint(EVENT_ID))
    }

    /// The event's type from the body, or else from the unsigned header. It is not verified.
    #[must_use]
    pub fn event_type(&self) -> Option<String> {
        self.said().event_type.or_else(|| self.hint(EVENT_TYPE))
    }

    /// Returns the same delivery, signed by this signer at its time, without an answer. `None` where there is no body to
    /// sign.
    ///
    /// Headers keep their order. The headers of the timestamp and the signature are replaced at their first position, or
    /// added. The same is true for the subscription's header, if the signer has a subscription. A delivery without headers,
    /// such as an [imported](super::DeliveryLog::import) delivery, gets the headers that the service sends.
    ///
    /// ```
    /// use hookgate::testing::log::LoggedDelivery;
    /// use hookgate::testing::Signer;
    /// use hookgate::{Secret, UnixSeconds, Verifier};
    ///
    /// let (then, now) = (UnixSeconds::new(1_763_690_000), UnixSeconds::new(1_763_999_999));
    /// let secret = Secret::new("whsec_made_up_for_this_example")?;
    /// let signer = Signer::new(secret.clone());
    /// let body = r#"{"id":"evt_1","type":"page.created"}"#;
    /// let logged = LoggedDelivery::new(then, signer.clone().at(then).headers(body), body);
    ///
    /// let again = logged.resigned(&signer.at(now)).expect("it has a body");
    /// assert_eq!(again.received_at, now);
    /// assert!(Verifier::new(secret).verify(&again.head()?, body, now).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn resigned(&self, signer: &Signer) -> Option<Self> {
        let body = self.body.clone()?;
        let signed = signer.headers(&body);
        let received_at = signed.iter().find(|(name, _)| *name == TIMESTAMP);
        let received_at = received_at
            .and_then(|(_, text)| Timestamp::parse(text.as_bytes()).ok())
            .map_or(self.received_at, |timestamp| timestamp.seconds());
        let bare = !self.headers.iter().any(|(name, _)| {
            // An imported delivery has only these two headers, or none.
            name != EVENT_ID && name != EVENT_TYPE
        });
        let mut headers = self.headers.clone();
        for (name, value) in signed {
            let decides = [TIMESTAMP, SIGNATURE, WEBHOOK_ID].contains(&name);
            if decides || (bare && self.header(name).is_none()) {
                replace(&mut headers, name, value);
            }
        }
        Some(Self {
            received_at,
            headers,
            cut_off_at: None,
            answer: None,
            hung_up_after: None,
            unverifiable: false,
            ..self.clone()
        })
    }

    /// The age of the delivery on arrival, in seconds: the time of receipt minus the signed timestamp. Negative where the
    /// timestamp was later than the receipt. `None` where the headers have no valid timestamp.
    #[must_use]
    pub fn age(&self) -> Option<i64> {
        let signed = Timestamp::parse(self.header(TIMESTAMP)?).ok()?;
        let (now, signed): (UnixSeconds, UnixSeconds) = (self.received_at, signed.seconds());
        Some(now.as_i64().saturating_sub(signed.as_i64()))
    }

    fn hint(&self, name: &str) -> Option<String> {
        let value = self.header(name)?;
        String::from_utf8(value.to_vec()).ok()
    }

    fn said(&self) -> Said {
        let body = self.body.as_deref().unwrap_or_default();
        serde_json::from_slice(body).unwrap_or_default()
    }
}

/// Sets a header at its first position, and removes its other occurrences.
fn replace(headers: &mut Vec<(String, Bytes)>, name: &str, value: String) {
    let at = headers.iter().position(|(other, _)| other == name);
    headers.retain(|(other, _)| other != name);
    let at = at.unwrap_or(headers.len());
    headers.insert(at, (name.to_owned(), value.into()));
}

/// The id and the type from a body. They are not verified.
#[derive(Default, Deserialize)]
struct Said {
    #[serde(default)]
    id: Option<String>,
    #[serde(default, rename = "type")]
    event_type: Option<String>,
}
