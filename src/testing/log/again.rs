//! What a logged delivery says of itself, and the same delivery signed again.

use bytes::Bytes;
use serde::Deserialize;

use super::entry::LoggedDelivery;
use crate::clock::UnixSeconds;
use crate::testing::Signer;
use crate::verify::{EVENT_ID, EVENT_TYPE, SIGNATURE, TIMESTAMP, Timestamp, WEBHOOK_ID};

impl LoggedDelivery {
    /// Whether its signature can still be checked: its body and its headers are there, as they came.
    ///
    /// It does not say whether the signature is right.
    #[must_use]
    pub fn is_verifiable(&self) -> bool {
        !self.unverifiable && self.body.is_some() && self.head().is_ok()
    }

    /// The event's id as the body says, or else as the unsigned header does. Nobody has verified it.
    #[must_use]
    pub fn event_id(&self) -> Option<String> {
        self.said().id.or_else(|| self.hint(EVENT_ID))
    }

    /// The event's type as the body says, or else as the unsigned header does. Nobody has verified it.
    #[must_use]
    pub fn event_type(&self) -> Option<String> {
        self.said().event_type.or_else(|| self.hint(EVENT_TYPE))
    }

    /// The same delivery signed by this signer, at its time, and not answered yet. `None` where there is no body to sign.
    ///
    /// Headers keep their order. The timestamp's and the signature's are replaced where they first stood, or added; so is the
    /// subscription's, if the signer has one. What has no headers, as an [imported](super::DeliveryLog::import) delivery, gets those that
    /// the service sends.
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
            // An import has hints at most.
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

    /// Of the time that it was signed at: how old the delivery was when it came, in seconds. Negative where it was ahead of its time.
    /// `None` where its headers don't say.
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

/// Sets a header where it first stood, and takes its doubles out.
fn replace(headers: &mut Vec<(String, Bytes)>, name: &str, value: String) {
    let at = headers.iter().position(|(other, _)| other == name);
    headers.retain(|(other, _)| other != name);
    let at = at.unwrap_or(headers.len());
    headers.insert(at, (name.to_owned(), value.into()));
}

/// What a body says, without a proof.
#[derive(Default, Deserialize)]
struct Said {
    #[serde(default)]
    id: Option<String>,
    #[serde(default, rename = "type")]
    event_type: Option<String>,
}
