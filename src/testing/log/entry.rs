//! One delivery of a log.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::clock::UnixSeconds;
use crate::error::HeaderError;
use crate::verify::DeliveryHeaders;

/// A delivery as it came, and what was answered.
///
/// Its `Debug` shows no body.
///
/// ```
/// use hookgate::testing::log::LoggedDelivery;
/// use hookgate::testing::Signer;
/// use hookgate::{Secret, UnixSeconds, Verifier};
///
/// let secret = Secret::new("whsec_made_up_for_this_example")?;
/// let at = UnixSeconds::new(1_763_690_000);
/// let body = r#"{"id":"evt_1","type":"page.created"}"#;
/// let headers = Signer::new(secret.clone()).at(at).headers(body);
///
/// let logged = LoggedDelivery::new(at, headers, body);
/// let line = logged.to_line();
/// let again = LoggedDelivery::from_line(&line)?;
/// assert_eq!(again, logged);
/// assert!(Verifier::new(secret).verify(&again.head()?, body, again.received_at).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct LoggedDelivery {
    /// The second at which the receiver's clock stood when the head came: the time that its age was judged by.
    pub received_at: UnixSeconds,
    /// The request's method.
    pub method: String,
    /// The request's target: path and query.
    pub target: String,
    /// All headers, in order. Names in lower case, values as the bytes that came.
    pub headers: Vec<(String, Bytes)>,
    /// The body's bytes, all of them. `None` where the delivery was refused before they were read, or did not come to its end.
    pub body: Option<Bytes>,
    /// Of a body that did not come to its end, or was too long: how many bytes had been taken. They are not kept, since nothing can be
    /// checked of them.
    pub cut_off_at: Option<u64>,
    /// What was answered; `None` where nobody was answered.
    pub answer: Option<LoggedAnswer>,
    /// The sender hung up after this time, or the server was stopped: nobody was answered.
    pub hung_up_after: Option<Duration>,
    /// Something was taken out of the body or the headers that were signed: the recorded signature can't be verified any more, and the
    /// delivery can only be signed again.
    pub unverifiable: bool,
}

/// What was answered to a delivery.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LoggedAnswer {
    /// The status.
    pub status: u16,
    /// What became of the delivery, as [`Outcome::name`](crate::Outcome::name) says.
    pub outcome: String,
    /// Why, where it was refused or failed.
    pub reason: Option<String>,
    /// Time from the receiver's first sight of it to the answer.
    pub elapsed: Duration,
    /// The name of the key that signed it, where it was authentic.
    pub key: Option<String>,
    /// The scope of that key's ring.
    pub scope: Option<String>,
    /// Which attempt of the sender it probably was, counted from 1, where it was authentic and says when its event was created.
    pub attempt: Option<u32>,
}

impl LoggedDelivery {
    /// A POST to `/` with these headers and this body, without an answer.
    pub fn new<N, V>(
        received_at: UnixSeconds,
        headers: impl IntoIterator<Item = (N, V)>,
        body: impl Into<Bytes>,
    ) -> Self
    where
        N: AsRef<str>,
        V: Into<Bytes>,
    {
        let lower = |(name, value): (N, V)| (name.as_ref().to_ascii_lowercase(), value.into());
        Self {
            received_at,
            method: "POST".into(),
            target: "/".into(),
            headers: headers.into_iter().map(lower).collect(),
            body: Some(body.into()),
            cut_off_at: None,
            answer: None,
            hung_up_after: None,
            unverifiable: false,
        }
    }

    /// The first value of this header, whose name is given in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&Bytes> {
        let found = self.headers.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value)
    }

    /// The headers that a delivery is checked by.
    ///
    /// # Errors
    /// As [`DeliveryHeaders::from_pairs`] does.
    pub fn head(&self) -> Result<DeliveryHeaders<'_>, HeaderError> {
        DeliveryHeaders::from_pairs(self.headers.iter().map(|(name, value)| (name, &**value)))
    }
}

impl LoggedAnswer {
    /// An answer without more to say.
    #[must_use]
    pub fn new(status: u16, outcome: &str) -> Self {
        Self {
            status,
            outcome: outcome.to_owned(),
            reason: None,
            elapsed: Duration::ZERO,
            key: None,
            scope: None,
            attempt: None,
        }
    }
}

impl fmt::Debug for LoggedDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoggedDelivery")
            .field("received_at", &self.received_at)
            .field("headers", &self.headers.len())
            .field("body_bytes", &self.body.as_ref().map(Bytes::len))
            .field("answer", &self.answer)
            .finish_non_exhaustive()
    }
}
