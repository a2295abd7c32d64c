//! The request rate: a window of a minute of the emulator's time, from its first request on.

use std::collections::BTreeMap;

use hookgate::clock::UnixSeconds;
use serde::{Deserialize, Serialize};

/// Length of a window in seconds.
const WINDOW: i64 = 60;

/// The three numbers of the rate-limit headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rate {
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    /// The end of the window, in Unix seconds.
    pub(crate) reset: i64,
    #[serde(skip)]
    pub(crate) exceeded: bool,
}

/// Windows by key, or one for the workspace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rates(BTreeMap<String, Window>);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Window {
    since: i64,
    used: u32,
}

impl Rates {
    /// Counts a request against the window of `whose`.
    pub(crate) fn count(&mut self, whose: &str, limit: u32, now: UnixSeconds) -> Rate {
        let now = now.as_i64();
        let new = Window {
            since: now,
            used: 0,
        };
        let window = self.0.entry(whose.to_owned()).or_insert(new);
        if !window.is_open(now) {
            *window = new;
        }
        window.used = window.used.saturating_add(1);
        window.rate(limit)
    }

    /// Returns the current window of `whose` without counting.
    pub(crate) fn look(&self, whose: &str, limit: u32, now: UnixSeconds) -> Rate {
        let now = now.as_i64();
        let window = self.0.get(whose).filter(|window| window.is_open(now));
        let new = Window {
            since: now,
            used: 0,
        };
        window.copied().unwrap_or(new).rate(limit)
    }
}

impl Window {
    fn is_open(&self, now: i64) -> bool {
        (self.since..self.since.saturating_add(WINDOW)).contains(&now)
    }

    fn rate(&self, limit: u32) -> Rate {
        Rate {
            limit,
            remaining: limit.saturating_sub(self.used),
            reset: self.since.saturating_add(WINDOW),
            exceeded: self.used > limit,
        }
    }
}
