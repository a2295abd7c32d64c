//! API keys and their scopes.

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
