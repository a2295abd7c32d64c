//! Faults of the network between sender and receiver, drawn by a seed.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use hookgate::verify::{EVENT_ID, SIGNATURE, TIMESTAMP};
use http::{HeaderValue, Request};

/// Faults of the network between sender and receiver: each attempt has at most one, drawn by the
/// seed.
///
/// The fault of an attempt depends only on the seed, the subscription, the event's id and the
/// attempt's number. It does not depend on the order of attempts, so a change of your handler does
/// not change it. Shares are parts of all attempts, from 0 to 1. Where their sum is more than 1,
/// the later ones get the rest.
///
/// ```
/// use std::time::Duration;
/// use hookgate_testing::sender::NetworkFaults;
///
/// let faults = NetworkFaults::seeded(7)
///     .refused(0.05)
///     .answers_lost(0.1)
///     .duplicated(0.2)
///     .slow(0.1, Duration::from_secs(7));
/// assert_eq!(faults.seed(), 7);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct NetworkFaults {
    seed: u64,
    refused: f64,
    answers_lost: f64,
    duplicated: f64,
    slow: f64,
    slowest: Duration,
}

/// The fault of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NetworkFault {
    /// The connection was refused: the delivery has not arrived.
    Refused,
    /// The delivery arrived and was answered, but the answer was lost.
    AnswerLost,
    /// The delivery arrived twice, in parallel or in sequence.
    Duplicated,
    /// The delivery, its answer or both took long. Where that is longer than the sender's timeout,
    /// the sender has hung up.
    Slow,
}

/// The way of one attempt through the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Way {
    Sound,
    Refused,
    AnswerLost,
    Duplicated { at_once: bool },
    Slow { there: Duration, back: Duration },
}

impl NetworkFaults {
    /// Returns settings without faults, with this seed for the draws.
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            refused: 0.0,
            answers_lost: 0.0,
            duplicated: 0.0,
            slow: 0.0,
            slowest: Duration::ZERO,
        }
    }

    /// Sets the share of attempts whose connection is refused.
    pub fn refused(mut self, share: f64) -> Self {
        self.refused = share;
        self
    }

    /// Sets the share of answers that are lost.
    pub fn answers_lost(mut self, share: f64) -> Self {
        self.answers_lost = share;
        self
    }

    /// Sets the share of deliveries that arrive twice.
    pub fn duplicated(mut self, share: f64) -> Self {
        self.duplicated = share;
        self
    }

    /// Sets the share of slow deliveries, and the maximum delay of the delivery and of its answer.
    pub fn slow(mut self, share: f64, slowest: Duration) -> Self {
        self.slow = share;
        self.slowest = slowest;
        self
    }

    /// The seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn draw(&self, subscription: &str, event_id: &str, attempt: u32) -> Way {
        let mut draws = fastrand::Rng::with_seed(self.seed ^ hash(subscription, event_id, attempt));
        // The first number of a generator depends closely on its seed, so it is skipped.
        draws.u64(..);
        let mut drawn = draws.f64();
        let mut is_in = |share: f64| {
            drawn -= share;
            drawn < 0.0
        };
        if is_in(self.refused) {
            Way::Refused
        } else if is_in(self.answers_lost) {
            Way::AnswerLost
        } else if is_in(self.duplicated) {
            Way::Duplicated {
                at_once: draws.bool(),
            }
        } else if is_in(self.slow) {
            Way::Slow {
                there: self.slowest.mul_f64(draws.f64()),
                back: self.slowest.mul_f64(draws.f64()),
            }
        } else {
            Way::Sound
        }
    }
}

impl Way {
    /// Returns the way for a fault that the caller has chosen. A slow attempt takes longer than the
    /// timeout.
    pub(super) fn with(fault: Option<NetworkFault>, timeout: Duration) -> Self {
        match fault {
            None => Self::Sound,
            Some(NetworkFault::Refused) => Self::Refused,
            Some(NetworkFault::AnswerLost) => Self::AnswerLost,
            Some(NetworkFault::Duplicated) => Self::Duplicated { at_once: true },
            Some(NetworkFault::Slow) => Self::Slow {
                there: timeout * 3 / 5,
                back: timeout * 3 / 5,
            },
        }
    }

    pub(super) fn fault(self) -> Option<NetworkFault> {
        match self {
            Self::Sound => None,
            Self::Refused => Some(NetworkFault::Refused),
            Self::AnswerLost => Some(NetworkFault::AnswerLost),
            Self::Duplicated { .. } => Some(NetworkFault::Duplicated),
            Self::Slow { .. } => Some(NetworkFault::Slow),
        }
    }
}

impl fmt::Display for NetworkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "connection refused",
            Self::AnswerLost => "answer lost",
            Self::Duplicated => "delivered twice",
            Self::Slow => "slow network",
        })
    }
}

fn hash(subscription: &str, event_id: &str, attempt: u32) -> u64 {
    let bytes = subscription.bytes().chain([0]).chain(event_id.bytes());
    fnv1a(bytes.chain(attempt.to_be_bytes()))
}

/// FNV-1a: the same in every process and in every version of Rust, so that the seed in a report can
/// be used again.
pub(crate) fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A change that an attacker makes between sender and receiver.
///
/// A receiver of hookgate answers 401 to each of the first three, and 400 to the last: that header
/// is not signed, so it may be wrong, and is compared with the body.
///
/// ```
/// use hookgate_testing::sender::Tamper;
/// use hookgate_testing::{EventFactory, Signer};
///
/// # let secret = hookgate::Secret::new("whsec_made_up_for_this_example")?;
/// let body = EventFactory::new().row_created().body();
/// let request = Signer::new(secret).request("/webhooks", body.clone());
/// assert_ne!(Tamper::Body.apply(request).body(), &body);
/// # Ok::<(), hookgate::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Tamper {
    /// One more space in the body: the same JSON, but other bytes.
    Body,
    /// Another last digit of the signature.
    Signature,
    /// A timestamp one second later than the signed one.
    Timestamp,
    /// `X-Service-Event-Id` names another event than the body.
    EventId,
}

impl Tamper {
    /// Changes a delivery. A delivery without the part to change stays as it is.
    #[must_use]
    pub fn apply(self, mut request: Request<Bytes>) -> Request<Bytes> {
        match self {
            Self::Body => {
                let mut body = request.body().to_vec();
                body.push(b' ');
                *request.body_mut() = body.into();
            }
            Self::Signature => change(&mut request, SIGNATURE, |signature| {
                let last = signature.pop();
                signature.push(if last == Some('0') { '1' } else { '0' });
            }),
            Self::Timestamp => change(&mut request, TIMESTAMP, |timestamp| {
                let second: i64 = timestamp.parse().unwrap_or_default();
                *timestamp = second.saturating_add(1).to_string();
            }),
            Self::EventId => change(&mut request, EVENT_ID, |id| id.push_str("_of_another")),
        }
        request
    }
}

fn change(request: &mut Request<Bytes>, name: &'static str, change: impl FnOnce(&mut String)) {
    let Some(value) = request.headers().get(name) else {
        return;
    };
    let mut text = value.to_str().unwrap_or_default().to_owned();
    change(&mut text);
    if let Ok(value) = HeaderValue::try_from(text) {
        request.headers_mut().insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(faults: &NetworkFaults, wanted: Option<NetworkFault>) -> usize {
        let events = (0..10_000).map(|number| format!("evt_{number}"));
        let drawn = events.map(|id| faults.draw("wh_1", &id, 1).fault());
        drawn.filter(|fault| *fault == wanted).count()
    }

    #[test]
    fn shares_are_kept_and_a_seed_repeats_itself() {
        let faults = NetworkFaults::seeded(3)
            .refused(0.05)
            .answers_lost(0.1)
            .duplicated(0.2)
            .slow(0.3, Duration::from_secs(1));
        for (fault, share) in [
            (Some(NetworkFault::Refused), 500),
            (Some(NetworkFault::AnswerLost), 1_000),
            (Some(NetworkFault::Duplicated), 2_000),
            (Some(NetworkFault::Slow), 3_000),
            (None, 3_500),
        ] {
            let count = counted(&faults, fault);
            assert!(count.abs_diff(share) < 200, "{fault:?}: {count}");
        }
        let all = |faults: &NetworkFaults| -> Vec<Way> {
            (1..50)
                .map(|attempt| faults.draw("wh_1", "evt_1", attempt))
                .collect()
        };
        assert_eq!(all(&faults), all(&faults.clone()));
        let other = NetworkFaults {
            seed: 4,
            ..faults.clone()
        };
        assert_ne!(all(&faults), all(&other));
    }

    #[test]
    fn no_share_means_no_fault_and_all_means_each() {
        assert_eq!(counted(&NetworkFaults::seeded(1), None), 10_000);
        let all = NetworkFaults::seeded(1).refused(1.0);
        assert_eq!(counted(&all, Some(NetworkFault::Refused)), 10_000);
    }
}
