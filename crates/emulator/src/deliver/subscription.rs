//! The settings of a subscription.

use std::fmt;

use bytes::Bytes;
use hookgate::Secret;
use hookgate_testing::{Transport, TransportError, sender};
use http::{HeaderValue, Request, Response, Uri};
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
        let mut shown = json!(self);
        shown.as_object_mut().map(|fields| fields.remove("secret"));
        shown
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

    /// Checks the settings and makes the sender's subscription of them.
    pub(super) fn sender(
        &self,
        route: &Route,
        reach: Reach,
    ) -> Result<sender::Subscription, String> {
        self.check()
            .map_err(|(field, told)| format!("`{field}`: {told}"))?;
        if !route.is_given() && !self.url.is_empty() {
            permitted(&self.url, reach)?;
        }
        made(self, self.secret.as_deref().unwrap_or_default(), route)
    }
}

/// Makes the sender's subscription with another secret. Without a URL, each of its attempts fails.
pub(super) fn made(
    settings: &Subscription,
    secret: &str,
    route: &Route,
) -> Result<sender::Subscription, String> {
    let secret = Secret::new(secret).map_err(|error| format!("`secret`: {error}"))?;
    let (url, route) = match &*settings.url {
        "" => ("/", Route::to(NoUrl)),
        url => (url, route.clone()),
    };
    let made = sender::Subscription::new(&settings.id, url, secret, route);
    made.map_err(|error| error.to_string())
}

/// The way of a subscription that has no URL yet.
#[derive(Clone)]
struct NoUrl;

impl Transport for NoUrl {
    async fn deliver(&self, _: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        Err("the subscription has no URL".into())
    }
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
