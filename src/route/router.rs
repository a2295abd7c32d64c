//! The builder of an event router: arms are added, and then checked once.

use std::fmt;
use std::sync::Arc;

use axum::handler::Handler;
use axum::routing::{MethodRouter, post};

use super::dispatch::{ByEvent, Dispatch, SharedArm, arm};
use super::subscriptions::Subscriptions;
use super::table::ArmTable;
use crate::config::{ConfigError, ConfigErrorKind as Kind};
use crate::event::{DataModelId, EventType};

/// Sends deliveries to handlers by event type and data model. See the [module docs](super).
///
/// `S` is the state of the axum router that it becomes part of.
///
/// ```
/// use axum::{Router, body::Body};
/// use hookgate::{EventRouter, MemoryStore, Outcome, Receiver, Secret, layer::Answer};
/// # use hookgate::{
/// #     clock::{Clock, SystemClock},
/// #     verify::{Signature, Timestamp},
/// # };
/// use tower::ServiceExt;
///
/// async fn on_page() {}
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let secret = Secret::new("whsec_made_up_for_this_test")?;
/// let receiver = Receiver::builder().secret(secret.clone()).store(MemoryStore::default()).build()?;
/// let events = EventRouter::new().on("page.created", on_page).build()?;
/// let app: Router = Router::new().route("/webhooks", events.layer(receiver.layer()));
///
/// let signed = |body: &'static str| {
///     // …
/// #     let now = Timestamp::at(SystemClock.now()).unwrap();
/// #     let signature = Signature::sign(&secret, &now, body.as_bytes()).to_header_value();
/// #     let request = http::Request::post("/webhooks").header("x-service-timestamp", now.as_str());
/// #     request.header("x-service-signature", signature).body(Body::from(body)).unwrap()
/// };
/// for (body, status, outcome) in [
///     (r#"{"id":"evt_1","type":"page.created"}"#, 200, Outcome::Handled),
///     (r#"{"id":"evt_2","type":"page.deleted"}"#, 204, Outcome::Unhandled),
/// ] {
///     let answer = app.clone().oneshot(signed(body)).await?;
///     assert_eq!(answer.status(), status);
///     assert_eq!(answer.extensions().get::<Answer>().unwrap().outcome, outcome);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a router handles nothing until it is built and routed to"]
pub struct EventRouter<S = ()> {
    table: ArmTable<SharedArm<S>>,
    refuse_unhandled: bool,
    /// The first error in the arms added so far. `build` returns it, so that arms can be added in one chain.
    fault: Option<ConfigError>,
}

impl<S: Clone + Send + Sync + 'static> EventRouter<S> {
    /// Makes a router without arms.
    pub fn new() -> Self {
        Self {
            table: ArmTable::new(),
            refuse_unhandled: false,
            fault: None,
        }
    }

    /// Adds an arm for an event type with any data model: `"row.created"`, or `EventType::ROW_CREATED`, or a future type.
    pub fn on<T: 'static>(self, event_type: impl AsRef<str>, handler: impl Handler<T, S>) -> Self {
        self.with_arm(event_type.as_ref(), None, arm(handler))
    }

    /// Adds an arm for an event type and the id of a data model. It has precedence over an arm for the type.
    ///
    /// The type is `row.created`, `row.updated` or `row.deleted`, because no other type has a data model. The id is compared
    /// exactly. The model's name is not compared, because people may change it.
    pub fn on_model<T: 'static>(
        self,
        event_type: impl AsRef<str>,
        model: impl AsRef<str>,
        handler: impl Handler<T, S>,
    ) -> Self {
        self.with_arm(event_type.as_ref(), Some(model.as_ref()), arm(handler))
    }

    /// Adds arms for all rows of a data model: one handler for `row.created`, `row.updated` and `row.deleted`.
    pub fn on_rows<T: 'static>(
        mut self,
        model: impl AsRef<str>,
        handler: impl Handler<T, S>,
    ) -> Self {
        let (model, arm) = (model.as_ref(), arm(handler));
        for event_type in ["row.created", "row.updated", "row.deleted"] {
            self = self.with_arm(event_type, Some(model), Arc::clone(&arm));
        }
        self
    }

    /// Sets the handler for every event that has no arm. Without it such events are answered 204, done, and reported as
    /// [unhandled](crate::Outcome::Unhandled).
    pub fn otherwise<T: 'static>(mut self, handler: impl Handler<T, S>) -> Self {
        if self.table.otherwise.replace(arm(handler)).is_some() {
            let fault = ConfigError::saying(Kind::UnusableArm, "two handlers for .otherwise(…)");
            self.fault.get_or_insert(fault);
        }
        self
    }

    /// Answers 422 to events without an arm, so that the sender's retries can reach a deployment that has one. After the last
    /// retry the event is lost.
    pub fn refuse_unhandled(mut self) -> Self {
        self.refuse_unhandled = true;
        self
    }

    /// Returns the subscriptions for the arms added so far. Arms that [`build`](Self::build) refuses are left out.
    #[must_use]
    pub fn subscriptions(&self) -> Subscriptions {
        Subscriptions::of(&self.table)
    }

    /// Makes an axum route for POST. It still needs the layer: `.build()?.layer(receiver.layer())`.
    ///
    /// # Errors
    /// See [`ConfigErrorKind`](Kind); the message names the first arm with an error.
    pub fn build(self) -> Result<MethodRouter<S>, ConfigError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let has_otherwise = self.table.otherwise.is_some();
        if self.table.types.is_empty() && !has_otherwise {
            return Err(ConfigError::saying(
                Kind::UnusableArm,
                "no arm: call .on(…), .on_model(…), .on_rows(…) or .otherwise(…)",
            ));
        }
        if self.refuse_unhandled && has_otherwise {
            return Err(ConfigError::saying(
                Kind::UnusableArm,
                ".otherwise(…) takes every event, so .refuse_unhandled() has nothing to refuse: leave one of them out",
            ));
        }
        Ok(post::<_, ByEvent, S>(Dispatch {
            table: Arc::new(self.table),
            refuse_unhandled: self.refuse_unhandled,
        }))
    }

    fn with_arm(mut self, event_type: &str, model: Option<&str>, arm: SharedArm<S>) -> Self {
        let inserted = parse(event_type, model).and_then(|(known, id)| {
            if self.table.insert(known, id, arm) {
                return Ok(());
            }
            let model = model.map_or("any data model".into(), |model| {
                format!("the data model {model:?}")
            });
            Err(format!("two arms for {event_type:?} of {model}"))
        });
        if let Err(message) = inserted {
            let fault = ConfigError::saying(Kind::UnusableArm, message);
            self.fault.get_or_insert(fault.about(event_type));
        }
        self
    }
}

/// Parses the type and model of an arm, or says why it can't be one. White space around a type or an id is a copying error: such an
/// arm would never match.
fn parse(
    event_type: &str,
    model: Option<&str>,
) -> Result<(EventType, Option<DataModelId>), String> {
    let known = EventType::parse(event_type).ok();
    let known = known.filter(|_| !is_padded(event_type)).ok_or_else(|| {
        format!("no event has the type {event_type:?}: 1 to 256 bytes are expected, not blank, without white space around them or control characters")
    })?;
    let Some(model) = model else {
        return Ok((known, None));
    };
    if !known.names_datamodel() {
        return Err(format!(
            "{event_type:?} names no data model, so there is no {model:?} to look for: row.created, row.updated and row.deleted do; call .on(…) for any other type"
        ));
    }
    // A text of only white space becomes empty when it is trimmed, so it counts as padded unless it is already empty.
    if model.is_empty() || is_padded(model) || model.chars().any(char::is_control) {
        return Err(format!(
            "{model:?} is no id of a data model, in an arm for {event_type:?}: it must not be blank or have white space around it or control characters"
        ));
    }
    Ok((known, Some(model.into())))
}

fn is_padded(text: &str) -> bool {
    text.trim().len() != text.len()
}

impl<S: Clone + Send + Sync + 'static> Default for EventRouter<S> {
    fn default() -> Self {
        Self::new()
    }
}

/// Lists the arms.
impl<S> fmt::Debug for EventRouter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut arms = f.debug_list();
        for (event_type, by_model) in &self.table.types {
            for model in by_model.keys() {
                match model {
                    Some(model) => arms.entry(&(event_type.as_str(), model.as_str())),
                    None => arms.entry(&event_type.as_str()),
                };
            }
        }
        if self.table.otherwise.is_some() {
            arms.entry(&"otherwise");
        }
        arms.finish()
    }
}
