//! Options of a request: times and repeats.

use std::time::Duration;

/// The options of requests. [`Client::with`](crate::Client::with) sets them for some requests, and
/// the builder for all.
///
/// ```
/// use std::time::Duration;
/// use hookgate_client::Options;
///
/// let patient = Options::default().total_timeout(Duration::from_secs(600)).retries(8);
/// # let _ = patient;
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Options {
    pub(crate) attempt_timeout: Duration,
    pub(crate) total_timeout: Duration,
    pub(crate) retries: u32,
    pub(crate) backoff: Duration,
    pub(crate) rate_share: f64,
}

impl Default for Options {
    /// 30 s for an attempt, 150 s for a call, 4 retries with a first wait of 0.5 s to 1 s, and the
    /// whole rate.
    fn default() -> Self {
        Self {
            attempt_timeout: Duration::from_secs(30),
            total_timeout: Duration::from_secs(150),
            retries: 4,
            backoff: Duration::from_secs(1),
            rate_share: 1.0,
        }
    }
}

impl Options {
    /// Gives up an attempt after this time, from the connection to the end of the answer.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = timeout;
        self
    }

    /// Gives up a call after this time. All its attempts and waits count, also waits for the rate.
    pub fn total_timeout(mut self, timeout: Duration) -> Self {
        self.total_timeout = timeout;
        self
    }

    /// Repeats a request at most this number of times. The method decides which failures are
    /// repeated: see [the crate](crate#repeats).
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Sets the wait before the first repeat. Each later wait is twice as long, up to 30 s. The
    /// client waits a random part of this time, at least half.
    pub fn backoff(mut self, first: Duration) -> Self {
        self.backoff = first;
        self
    }

    /// Takes at most this share of the rate, between 0 and 1: with 0.5, half of each minute's
    /// requests are left to others. At least one request a minute is permitted.
    pub fn rate_share(mut self, share: f64) -> Self {
        self.rate_share = if share.is_nan() {
            1.0
        } else {
            share.clamp(0.0, 1.0)
        };
        self
    }
}
