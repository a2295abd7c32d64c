//! Section *Authentication*: the key of a request, its scope and its rate.

use hookgate::clock::Clock;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::Needs;
use crate::answer::ApiError;
use crate::hub::Hub;
use crate::model::{KEY_FORMS, Rate, Scope};
use crate::switches::Switch;

/// The key of a request, found valid, and the rate after it.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) name: String,
    pub(crate) scope: Scope,
    pub(crate) rate: Rate,
}

/// Finds the key of a request, and counts the request against its rate.
///
/// # Errors
/// 401: no key, one of another form, or one that does not exist, is disabled or has expired.
pub(crate) fn identify(hub: &Hub, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let text = bearer(headers)?;
    let mut state = hub.state();
    let now = hub.clock.now();
    let key = state.keys.iter().find(|key| key.key == text);
    let key = key.ok_or_else(|| refused("the API key is not valid"))?;
    if key.disabled {
        return Err(refused("the API key is disabled"));
    }
    if key.is_expired(now) {
        return Err(refused("the API key has expired"));
    }
    let (name, scope) = (key.name.clone(), key.scope);
    let whose = if hub.switches.is(Switch::RateCountedBy, "workspace") {
        state.workspace.id.clone()
    } else {
        // Keys are found by their text, so windows are too.
        text.to_owned()
    };
    let limit = state.workspace.tier.limit();
    let mut rate = state.rates.count(&whose, limit, now);
    if hub.switches.is(Switch::RateLimit, "off") {
        rate.exceeded = false;
    }
    Ok(Caller { name, scope, rate })
}

fn bearer(headers: &HeaderMap) -> Result<&str, ApiError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let header = match (values.next(), values.next()) {
        (Some(header), None) => header.to_str().unwrap_or_default(),
        (None, _) => return Err(refused("the API key is missing")),
        (Some(_), Some(_)) => return Err(refused("the header Authorization is there twice")),
    };
    let key = header.strip_prefix("Bearer ");
    let key = key.ok_or_else(|| refused("the header Authorization is malformed"))?;
    if KEY_FORMS.iter().any(|form| key.starts_with(form)) {
        Ok(key)
    } else {
        Err(refused("the API key has another form"))
    }
}

/// The message states the expected forms of keys.
fn refused(what: &str) -> ApiError {
    ApiError::unauthorized(format!(
        "{what}: send Authorization: Bearer <API_KEY> with a key of the form tk_live_…, tk_test_… or mcp_…"
    ))
}

impl Caller {
    /// Checks the rate, then the scope.
    ///
    /// # Errors
    /// 429, or 403 with a message that names the scope.
    pub(crate) fn may(&self, hub: &Hub, needs: Needs) -> Result<(), ApiError> {
        let needed = match needs {
            Needs::Scope(scope) => scope,
            Needs::Switched if hub.switches.is(Switch::DataModelScope, "admin") => Scope::Admin,
            Needs::Switched => Scope::Write,
        };
        if self.scope < needed {
            let (needed, name, own) = (needed.name(), &self.name, self.scope.name());
            let message = format!(
                "this needs the scope {needed}, and the API key `{name}` has the scope {own}"
            );
            return Err(ApiError::forbidden(message));
        }
        Ok(())
    }

    /// Checks the rate.
    ///
    /// # Errors
    /// 429.
    pub(crate) fn within_rate(&self) -> Result<(), ApiError> {
        if self.rate.exceeded {
            let message = format!(
                "more than {} requests in a minute: please slow down, and go on at {} (Unix seconds)",
                self.rate.limit, self.rate.reset
            );
            return Err(ApiError::rate_limited(message));
        }
        Ok(())
    }
}
