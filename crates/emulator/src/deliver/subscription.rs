//! The settings of a subscription.

use std::fmt;

use hookgate::Secret;
use hookgate_testing::sender;
use http::{HeaderValue, Uri};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::route::{EXAMPLE, Reach, Route, permitted, short};
use crate::events::EVENT_TYPES;

/// A subscription, as in a seed. `Debug` shows no secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Subscription {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) url: String,
    /// All eight where they are not named.
    #[serde(default = "all_types")]
    pub(crate) events: Vec<String>,
    #[serde(default)]
    pub(crate) data_model_id: Option<String>,
    #[serde(default)]
    pub(crate) secret: Option<String>,
    /// Gets no deliveries while it is set.
    #[serde(default)]
    pub(crate) disabled: bool,
}

fn all_types() -> Vec<String> {
    EVENT_TYPES.map(str::to_owned).to_vec()
}

impl Subscription {
    /// Returns the settings without the secret, which is shown at creation alone.
    pub(crate) fn shown(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "url": self.url,
            "events": self.events,
            "dataModelId": self.data_model_id,
            "disabled": self.disabled,
        })
    }

    pub(super) fn takes(&self, event_type: &str, model: Option<&str>) -> bool {
        let of_model = |id: &String| model == Some(id.as_str());
        !self.disabled
            && self.events.iter().any(|other| other == event_type)
            && self.data_model_id.as_ref().is_none_or(of_model)
    }

    /// Checks what does not depend on where deliveries may go.
    ///
    /// # Errors
    /// The field, and a sentence that states the expected form.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        let other = |name: &&String| !EVENT_TYPES.contains(&name.as_str());
        if let Some(other) = self.events.iter().find(other) {
            let (other, types) = (short(other), EVENT_TYPES.join(", "));
            let told = format!("unknown event type {other}, expected one of {types}");
            return Err(("events", told));
        }
        if self.id.is_empty() || HeaderValue::from_str(&self.id).is_err() {
            let told = "the id fits no header, expected text without control characters";
            return Err(("id", told.to_owned()));
        }
        if !self.url.is_empty() && self.url.parse::<Uri>().is_err() {
            let url = short(&self.url);
            let told = format!("{url} is not a URL, expected one such as {EXAMPLE}");
            return Err(("url", told));
        }
        let secret = self.secret.as_deref().map(Secret::new).transpose();
        secret.map(drop).map_err(|error| {
            let told = format!("{error}, expected one such as whsec_made_up_for_local_tries");
            ("secret", told)
        })
    }

    /// Checks the settings and makes the sender's subscription of them. `None` if it has no URL yet.
    pub(super) fn sender(
        &self,
        route: &Route,
        reach: Reach,
    ) -> Result<Option<sender::Subscription>, String> {
        self.check()
            .map_err(|(field, told)| format!("`{field}`: {told}"))?;
        if self.url.is_empty() {
            return Ok(None);
        }
        if !route.is_given() {
            permitted(&self.url, reach)?;
        }
        let secret = self.secret.as_deref().unwrap_or_default();
        made(&self.id, &self.url, secret, route).map(Some)
    }
}

pub(super) fn made(
    id: &str,
    url: &str,
    secret: &str,
    route: &Route,
) -> Result<sender::Subscription, String> {
    let secret = Secret::new(secret).map_err(|error| format!("`secret`: {error}"))?;
    sender::Subscription::new(id, url, secret, route.clone()).map_err(|error| error.to_string())
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("id", &self.id)
            .field("url", &self.url)
            .field("events", &self.events)
            .field("data_model_id", &self.data_model_id)
            .field("disabled", &self.disabled)
            .finish_non_exhaustive()
    }
}
