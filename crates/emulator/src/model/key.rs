//! API keys with their scopes, and the request rate of each: a window of a minute of the emulator's
//! time, from its first request on.

use std::collections::BTreeMap;

use hookgate::clock::UnixSeconds;
use serde::{Deserialize, Serialize};

/// What a key allows. Each scope includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    #[default]
    Read,
    Write,
    Admin,
}

impl Scope {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

/// The accepted forms of a key.
pub(crate) const KEY_FORMS: [&str; 3] = ["tk_live_", "tk_test_", "mcp_"];

/// A key of the workspace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) scope: Scope,
    /// As it was given, in ISO 8601; `None` for a key that does not expire.
    pub(crate) expires_at: Option<String>,
    pub(crate) disabled: bool,
}

impl Key {
    /// Returns the key without its secret part: it is shown at its creation alone.
    pub(crate) fn shown(&self) -> serde_json::Value {
        let form = KEY_FORMS.iter().find(|form| self.key.starts_with(**form));
        serde_json::json!({
            "name": self.name,
            "form": format!("{}…", form.copied().unwrap_or_default()),
            "scope": self.scope,
            "expiresAt": self.expires_at,
            "disabled": self.disabled,
        })
    }

    pub(crate) fn is_expired(&self, now: hookgate::clock::UnixSeconds) -> bool {
        let expiry = self.expires_at.as_deref();
        let expiry = expiry.and_then(|text| hookgate::event::Date::parse(text).ok());
        expiry.is_some_and(|expiry| expiry.unix_seconds().is_ok_and(|end| end <= now))
    }
}

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
