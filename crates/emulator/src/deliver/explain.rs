//! Why an attempt was refused: the known mistakes are tried on the request as it was sent.

use hookgate::clock::UnixSeconds;
use hookgate_record::{LoggedAnswer, LoggedDelivery};
use hookgate_testing::explain::Explainer;
use serde_json::{Value, json};

use super::attempts::WRONG_SECRET;
use super::engine::Deliveries;
use super::record::{Attempt, Delivery};
use crate::faults::Fault;

/// Ends the search after hashing this many bytes, so that an answer takes about a second.
const LIMIT_BYTES: u64 = 1 << 28;

/// An attempt with the secrets that may have signed it. Searching takes time, so it is done without
/// a lock.
pub(crate) struct Explained {
    delivery: LoggedDelivery,
    known: Explainer,
    /// The same with each secret that may have signed in place of the right one.
    with_others: Explainer,
    remarks: Vec<String>,
}

impl Deliveries {
    /// Prepares the explanation of the last attempt. `secret` is the one that the receiver has, as
    /// it is configured there; without it, the receiver is taken to have the subscription's. `None`
    /// if there is no such delivery.
    ///
    /// # Errors
    /// No attempt has ended yet.
    pub(crate) fn explained(
        &self,
        id: &str,
        secret: Option<&str>,
    ) -> Option<Result<Explained, String>> {
        let state = self.inner.state();
        let (_, delivery) = state.find(id)?;
        let Some(attempt) = delivery.attempts.last() else {
            return Some(Err("no attempt of this delivery has ended yet".to_owned()));
        };
        let own = state.lanes.iter().map(|lane| &lane.settings);
        let own = own.filter(|settings| settings.id == delivery.subscription);
        let own = own.filter_map(|settings| settings.secret.as_deref()).next();
        let known = || {
            let explainer = Explainer::new().limit_bytes(LIMIT_BYTES);
            match (secret, own) {
                (Some(secret), _) => explainer.secret("the receiver's secret", secret),
                (None, Some(own)) => explainer.secret("this webhook's secret", own),
                (None, None) => explainer,
            }
        };
        let others = state.lanes.iter().map(|lane| &lane.settings);
        let others =
            others.filter_map(|settings| Some((&settings.id, settings.secret.as_deref()?)));
        let others = others.map(|(id, secret)| (format!("the secret of {id}"), secret));
        let others = others.chain([(
            "the secret of the fault wrong-secret".to_owned(),
            WRONG_SECRET,
        )]);
        Some(Ok(Explained {
            delivery: logged(delivery, attempt),
            with_others: others.fold(known(), |known, (name, secret)| {
                known.other_secret(&name, secret)
            }),
            known: known(),
            remarks: remarks(attempt),
        }))
    }
}

fn logged(delivery: &Delivery, attempt: &Attempt) -> LoggedDelivery {
    let headers = attempt.request.headers.iter();
    let headers = headers.map(|(name, value)| (name, value.clone().into_bytes()));
    let received_at = UnixSeconds::new(attempt.request.received_at);
    let mut logged = LoggedDelivery::new(received_at, headers, delivery.sent_body(attempt));
    let refused = attempt.status.filter(|status| (400..500).contains(status));
    logged.answer = refused.map(|status| LoggedAnswer::new(status, "refused"));
    logged
}

/// What the emulator itself knows of the attempt.
fn remarks(attempt: &Attempt) -> Vec<String> {
    let fault = attempt.fault.as_deref().and_then(Fault::named);
    let fault = fault.map(|fault| {
        let about = fault.about();
        format!("The fault {} was switched on: {}.", about.name, about.about)
    });
    let result = match (attempt.status, &attempt.error) {
        (Some(200..=299), _) => Some("It was accepted.".to_owned()),
        (Some(status @ 500..), _) => Some(format!(
            "The answer {status} is not a refusal: the receiver's own code failed, and the delivery is tried again."
        )),
        (None, Some(error)) => Some(format!("There was no answer: {error}.")),
        _ => None,
    };
    fault.into_iter().chain(result).collect()
}

impl Explained {
    /// Searches, and returns the explanation as JSON. It takes up to seconds.
    pub(crate) fn search(&self) -> Value {
        // A mistake about the secret itself says more than that another secret has signed.
        let mut explanation = self.known.explain(&self.delivery);
        if explanation.none_fits() {
            explanation = self.with_others.explain(&self.delivery);
        }
        json!({
            "authentic": explanation.is_authentic(),
            "conclusion": explanation.conclusion(),
            "causes": explanation.causes(),
            "hints": explanation.hints(),
            "remarks": self.remarks,
        })
    }
}
