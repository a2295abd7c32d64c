//! Finds out why a delivery is refused.

use std::fmt;

use bytes::Bytes;
use hookgate::{
    KeyRing, Properties, Scheme, Secret, Verifier,
    clock::UnixSeconds,
    dedupe::RetrySchedule,
    verify::{DeliveryHeaders, VerifyError, VerifyErrorKind, Window},
};
use hookgate_record::LoggedDelivery;
use zeroize::Zeroizing;

use super::cause::CauseKind;
use super::explanation::Explanation;
use super::request::RequestFault;
use super::search::{Search, Tried};
use super::secret::KnownSecret;
use super::trial_key::TrialKey;
use super::{clock, header, hint, request, secret};
use crate::event;
use crate::log::{pairs, verifier_of};

/// More than a body of 1 MiB needs for one mistake of the body and a mistake of few secrets.
const DEFAULT_LIMIT: u64 = 1 << 32;

/// Finds out why deliveries are refused: it knows the secrets as they are configured, and tries the
/// known mistakes.
///
/// See the [module docs](super) for the mistakes that it tries, and an example.
#[must_use]
pub struct Explainer {
    scheme: Scheme,
    secrets: Vec<KnownSecret>,
    window: Window,
    schedule: RetrySchedule,
    limit: u64,
}

impl Default for Explainer {
    fn default() -> Self {
        Self {
            scheme: Scheme::WORKSPACE,
            secrets: Vec::new(),
            window: Window::default(),
            schedule: RetrySchedule::default(),
            limit: DEFAULT_LIMIT,
        }
    }
}

impl Explainer {
    /// Makes an explainer without a secret, with the default window.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says how the sender signs. Default: [`Scheme::WORKSPACE`]. For another scheme the known
    /// mistakes of secret, body, request and age are tried, and not those of a header's form; the
    /// retries of [`schedule`](Self::schedule) are not guessed.
    pub fn scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = scheme;
        if !self.is_of_service() {
            self.schedule = RetrySchedule::new([]);
        }
        self
    }

    fn is_of_service(&self) -> bool {
        self.scheme == Scheme::WORKSPACE
    }

    /// Adds a secret that the receiver accepts, with a name for the report. Give the text **as it
    /// is configured**, with its quotes and line breaks, because the mistake may be there. The text
    /// is wiped when this is dropped.
    pub fn secret(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        self.with(name, text.as_ref(), false)
    }

    /// Adds a secret that the receiver does not hold, but that may have signed a delivery: a
    /// retired one, that of another subscription or of another environment.
    pub fn other_secret(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        self.with(name, text.as_ref(), true)
    }

    /// Sets the receiver's window.
    pub fn window(mut self, window: Window) -> Self {
        self.window = window;
        self
    }

    /// Sets the sender's retry schedule, with which an age is compared.
    pub fn schedule(mut self, schedule: RetrySchedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// Ends the search after this number of bytes was hashed or written for it;
    /// [`Tried::capped`](super::Tried::capped) says so. The default, 2^32, takes some seconds in an
    /// optimised build and is enough for every single mistake in a body of 1 MiB.
    pub fn limit_bytes(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// Explains the verdict on a delivery, at the time of its receipt: that of a receiver with
    /// these secrets and this window, whose other settings are the default ones. Where the delivery
    /// has a logged answer, the explanation repeats it.
    ///
    /// # Security
    /// This is a diagnosis. Whatever it says, only [`Verifier::verify`](hookgate::Verifier::verify)
    /// accepts a delivery. It hashes a body up to some thousand times, so never run it on input
    /// that callers without the secret can send at will.
    #[must_use]
    pub fn explain(&self, delivery: &LoggedDelivery) -> Explanation {
        let body = delivery.body.as_deref().unwrap_or_default();
        let announced = announced(delivery);
        let head = DeliveryHeaders::with_scheme(&self.scheme, pairs(delivery));
        let (claims, stamps) = match self.is_of_service() {
            true => (header::claims(delivery), header::stamps(delivery)),
            false => header::of_scheme(head.as_ref().ok()),
        };
        let key_of = |text: &[u8]| match self.is_of_service() {
            true => Some(TrialKey::new(text)),
            false => TrialKey::of_scheme(self.scheme, text, head.as_ref().ok()?),
        };
        let (fit, tried) = Search {
            keys: &secret::variants(&self.secrets, key_of),
            stamps: &stamps,
            claims: &claims,
            body,
            limit: self.limit,
            tried: Tried::default(),
            fit: None,
        }
        .run();
        let is_right = fit.as_ref().is_some_and(|fit| fit.causes.is_empty());
        let faults = self.request_faults(delivery, fit.as_ref().map(|fit| &fit.body));
        let first = faults.first();
        let of_request = || first.map(|fault| fault.refusal.clone());
        let readable = head.as_ref().map_err(|error| *error);
        let refusal = match readable.and_then(|head| self.verdict(head, delivery, is_right)) {
            Ok(()) => of_request(),
            Err(error) => {
                // A signature is known to be wrong at the end of the body alone, and a size at its
                // end or before it.
                let is_of_body = error.kind() == VerifyErrorKind::SignatureMismatch;
                let is_first = |fault: &RequestFault| {
                    fault.is_of_head(announced) || (is_of_body && fault.is_of_size())
                };
                of_request()
                    .filter(|_| first.is_some_and(is_first))
                    .or(Some(error.into()))
            }
        };
        let off = |at: Option<UnixSeconds>| {
            clock::judge(at?, delivery.received_at, &self.window, &self.schedule)
        };
        let (mut key, mut causes, mut hints) = (None, Vec::new(), Vec::new());
        match fit {
            Some(fit) => {
                key = Some(fit.name);
                causes = fit.causes;
                for RequestFault { cause, .. } in faults {
                    // The search has found it already if the header of the timestamp or of the
                    // signature is repeated.
                    if !causes.contains(&cause) {
                        causes.push(cause);
                    }
                }
                causes.extend(off(fit.at));
            }
            None => {
                let said = stamps.iter().find(|stamp| stamp.distance == 0);
                let off = off(said.and_then(|stamp| stamp.at));
                hints = hint::all(delivery, announced, &self.secrets, &faults, off.as_ref());
                if !self.is_of_service() {
                    hints.retain(|hint| !hint.kind().is_of_service());
                }
                hints.extend(hint::of_another_scheme(delivery, &self.scheme));
            }
        }
        let event_error = match refusal {
            None if self.is_of_service() => event::<Properties>(body).err(),
            _ => None,
        };
        Explanation {
            refusal,
            answer: delivery.answer.clone(),
            has_body: delivery.body.is_some(),
            has_timestamp: self.scheme.has_timestamp(),
            key,
            causes,
            hints,
            event_error,
            tried,
        }
    }

    /// Returns the mistakes of the request. Where the body was changed on the way, the received
    /// body or the signed one may be the event that was meant: it depends on the side that has the
    /// mistake.
    fn request_faults(
        &self,
        delivery: &LoggedDelivery,
        signed: Option<&Bytes>,
    ) -> Vec<RequestFault> {
        let faults = request::faults(self.scheme, delivery, delivery.body.clone());
        let is_unusable = |fault: &RequestFault| fault.cause.kind() == CauseKind::EventUnusable;
        let other = signed.filter(|signed| Some(*signed) != delivery.body.as_ref());
        match other {
            Some(other) if faults.iter().any(is_unusable) => {
                request::faults(self.scheme, delivery, Some(other.clone()))
            }
            _ => faults,
        }
    }

    /// Returns the verdict of a verifier on readable headers, with its order of checks.
    fn verdict(
        &self,
        head: &DeliveryHeaders<'_>,
        delivery: &LoggedDelivery,
        is_right: bool,
    ) -> Result<(), VerifyError> {
        // A random secret. It finds a wrong age as every secret does; if the age is right, it
        // always finds a wrong signature.
        let random = || fastrand::u128(..);
        let made_up = format!("whsec_{:032x}{:032x}", random(), random());
        #[allow(clippy::expect_used)] // of the form that each scheme takes
        let secret = Secret::new(&made_up).expect("a usable secret");
        let verifier = verifier_of(self.scheme, KeyRing::new(secret.clone()), self.window);
        // A row that is not safe has no verifier: the default one says that the headers are of
        // another scheme.
        let verifier = verifier.unwrap_or_else(|_| Verifier::new(secret).with_window(self.window));
        let body = delivery.body.as_deref().unwrap_or_default();
        match verifier.verify(head, body, delivery.received_at) {
            Err(error) if !is_right || error.kind() != VerifyErrorKind::SignatureMismatch => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    fn with(mut self, name: &str, text: &[u8], other: bool) -> Self {
        self.secrets.push(KnownSecret {
            name: name.to_owned(),
            text: Zeroizing::new(text.to_vec()),
            other,
        });
        self
    }
}

fn announced(delivery: &LoggedDelivery) -> Option<usize> {
    let value = delivery.header("content-length")?;
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

impl fmt::Debug for Explainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.secrets.iter().map(|secret| &secret.name).collect();
        f.debug_struct("Explainer")
            .field("scheme", &self.scheme.name())
            .field("secrets", &names)
            .field("window", &self.window)
            .field("limit_bytes", &self.limit)
            .finish_non_exhaustive()
    }
}
