//! The event router: its arms are added, then checked once, then chosen for each delivery.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use http::StatusCode;

use crate::config::{ConfigError, ConfigErrorKind as Kind};
use crate::event::{DataModelId, EventType, model_id};
use crate::extract::{EventRejection, of_default_scheme};
use crate::layer::Unhandled;
use crate::pipeline::Delivery;

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
    /// The first error in the arms added so far. `build` returns it, so that arms can be added in
    /// one chain.
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

    /// Adds an arm for an event type with any data model: `"row.created"`, or
    /// `EventType::ROW_CREATED`, or a future type.
    pub fn on<T: 'static>(self, event_type: impl AsRef<str>, handler: impl Handler<T, S>) -> Self {
        self.with_arm(event_type.as_ref(), None, arm(handler))
    }

    /// Adds an arm for an event type and the id of a data model. It has precedence over an arm for
    /// the type.
    ///
    /// The type is `row.created`, `row.updated` or `row.deleted`, because no other type has a data
    /// model. The id is compared exactly. The model's name is not compared, because people may
    /// change it.
    pub fn on_model<T: 'static>(
        self,
        event_type: impl AsRef<str>,
        model: impl AsRef<str>,
        handler: impl Handler<T, S>,
    ) -> Self {
        self.with_arm(event_type.as_ref(), Some(model.as_ref()), arm(handler))
    }

    /// Adds arms for all rows of a data model: one handler for `row.created`, `row.updated` and
    /// `row.deleted`.
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

    /// Sets the handler for every event that has no arm. Without it such events are answered 204,
    /// done, and reported as [unhandled](crate::Outcome::Unhandled).
    pub fn fallback<T: 'static>(mut self, handler: impl Handler<T, S>) -> Self {
        if self.table.fallback.replace(arm(handler)).is_some() {
            let fault = ConfigError::saying(Kind::UnusableArm, "two handlers for .fallback(…)");
            self.fault.get_or_insert(fault);
        }
        self
    }

    /// Answers 422 to events without an arm, so that the sender's retries can reach a deployment
    /// that has one. After the last retry the event is lost.
    pub fn refuse_unhandled(mut self) -> Self {
        self.refuse_unhandled = true;
        self
    }

    /// Returns the subscriptions for the arms added so far. Arms that [`build`](Self::build)
    /// refuses are left out.
    #[must_use]
    pub fn subscriptions(&self) -> Subscriptions {
        Subscriptions::from_table(&self.table)
    }

    /// Makes an axum route for POST. It still needs the layer: `.build()?.layer(receiver.layer())`.
    ///
    /// # Errors
    /// See [`ConfigErrorKind`](Kind); the message names the first arm with an error.
    pub fn build(self) -> Result<MethodRouter<S>, ConfigError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let has_fallback = self.table.fallback.is_some();
        if self.table.types.is_empty() && !has_fallback {
            return Err(ConfigError::saying(
                Kind::UnusableArm,
                "no arm: call .on(…), .on_model(…), .on_rows(…) or .fallback(…)",
            ));
        }
        if self.refuse_unhandled && has_fallback {
            return Err(ConfigError::saying(
                Kind::UnusableArm,
                ".fallback(…) takes every event, so .refuse_unhandled() has nothing to refuse: leave one of them out",
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

/// Parses the type and model of an arm, or says why it can't be one. White space around a type or
/// an id is a copying error: such an arm would never match.
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
    // A text of only white space becomes empty when it is trimmed, so it counts as padded unless it
    // is already empty.
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
        if self.table.fallback.is_some() {
            arms.entry(&"fallback");
        }
        arms.finish()
    }
}

type BoxFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// An axum handler whose argument types are erased. Shared, because one may be used by several
/// arms.
type SharedArm<S> = Arc<dyn Fn(Request, S) -> BoxFuture + Send + Sync>;

fn arm<T: 'static, S: 'static>(handler: impl Handler<T, S>) -> SharedArm<S> {
    Arc::new(move |request, state| boxed(handler.clone().call(request, state)))
}

/// Boxes a future, unless it is already boxed, as the future of every handler function is.
fn boxed<F: Future<Output = Response> + Send + 'static>(future: F) -> BoxFuture {
    let mut future = Some(future);
    let place: &mut dyn Any = &mut future;
    if let Some(boxed) = place.downcast_mut().and_then(Option::<BoxFuture>::take) {
        return boxed;
    }
    Box::pin(async move {
        match future {
            Some(future) => future.await,
            None => unreachable!("it is taken only where it is returned"),
        }
    })
}

/// A router that is built. Cheap to clone, because axum clones it for each request.
#[derive(Clone)]
struct Dispatch<S> {
    table: Arc<ArmTable<SharedArm<S>>>,
    refuse_unhandled: bool,
}

/// Distinguishes this handler from axum's own.
struct ByEvent;

impl<S: Clone + Send + Sync + 'static> Handler<ByEvent, S> for Dispatch<S> {
    type Future = BoxFuture;

    fn call(self, request: Request, state: S) -> BoxFuture {
        match self.arm(&request) {
            Ok(arm) => arm(request, state),
            Err(answer) => answer,
        }
    }
}

impl<S> Dispatch<S> {
    /// Returns the arm for a request, or the answer if there is none.
    #[expect(
        clippy::disallowed_methods,
        reason = "a `Delivery` is a proof, which only this crate makes"
    )]
    fn arm(&self, request: &Request) -> Result<&SharedArm<S>, BoxFuture> {
        // The layer has put it there. An event type in a header is not signed and does not decide.
        let delivery = request.extensions().get::<Delivery>();
        let delivery = delivery.ok_or_else(|| answer(EventRejection::LayerMissing))?;
        of_default_scheme(delivery).map_err(answer)?;
        let arm = self
            .table
            .arm(delivery.event_type(), || model_id(delivery.verified()))
            .map_err(answer)?;
        arm.ok_or_else(|| {
            let unhandled = Unhandled::new(delivery);
            if self.refuse_unhandled {
                // The layer writes the body.
                answer(unhandled.mark(StatusCode::UNPROCESSABLE_ENTITY.into_response()))
            } else {
                answer(unhandled)
            }
        })
    }
}

fn answer(response: impl IntoResponse) -> BoxFuture {
    Box::pin(ready(response.into_response()))
}

/// Arms by event type and data model. The maps are ordered, so that output made from them is the
/// same each time.
#[derive(Clone, Debug)]
pub(super) struct ArmTable<A> {
    /// The arms of each type, by data model. `None` is the arm for any model.
    pub(super) types: BTreeMap<EventType, BTreeMap<Option<DataModelId>, A>>,
    pub(super) fallback: Option<A>,
}

/// It needs no request, no handler and no waiting: only an event's type, and the data model if an
/// arm names one.
impl<A> ArmTable<A> {
    fn new() -> Self {
        Self {
            types: BTreeMap::new(),
            fallback: None,
        }
    }

    /// Adds an arm. Returns false if there was one for these events already.
    fn insert(&mut self, event_type: EventType, model: Option<DataModelId>, arm: A) -> bool {
        let arms = self.types.entry(event_type).or_default();
        arms.insert(model, arm).is_none()
    }

    /// Returns the arm for an event, the most specific one: type and model, then type, then
    /// `fallback`. `None` if there is none.
    ///
    /// The model is asked for only if an arm for this type names one. If the model is not readable,
    /// no arm is chosen, because the choice depends on the model.
    fn arm<M: AsRef<str>, E>(
        &self,
        event_type: &str,
        model: impl FnOnce() -> Result<M, E>,
    ) -> Result<Option<&A>, E> {
        let Some(arms) = self.types.get(event_type) else {
            return Ok(self.fallback.as_ref());
        };
        let of_model = if arms.keys().any(Option::is_some) {
            let model = model()?;
            let named = |known: &Option<DataModelId>| {
                known
                    .as_ref()
                    .is_some_and(|known| known.as_str() == model.as_ref())
            };
            arms.iter()
                .find(|(known, _)| named(known))
                .map(|(_, arm)| arm)
        } else {
            None
        };
        let of_any_model = || arms.get(&None);
        Ok(of_model.or_else(of_any_model).or(self.fallback.as_ref()))
    }
}

/// The subscriptions for an [`EventRouter`](crate::EventRouter): the fewest that bring each arm its
/// events, with no event in two of them.
///
/// A subscription has event types and at most one data model. So there is one without a data model,
/// for the types that have their own arm, and one for each data model with arms for further types.
/// `fallback` adds none: it takes the remaining events of the existing subscriptions.
///
/// `Display` prints a line for each subscription, then a line for each warning. See the [module
/// docs](super#what-to-subscribe-to).
///
/// ```
/// use axum::http::StatusCode;
/// use hookgate::{EventRouter, event::EventType};
///
/// let events: EventRouter = EventRouter::new()
///     .on("page.created", StatusCode::NO_CONTENT)
///     .on_model("row.created", "dm_orders", StatusCode::NO_CONTENT);
/// let subscriptions = events.subscriptions();
/// let of_orders = subscriptions.iter().find(|subscription| subscription.model.is_some()).unwrap();
/// assert_eq!(of_orders.model.as_ref().unwrap(), &"dm_orders");
/// assert_eq!(of_orders.event_types, [EventType::ROW_CREATED]);
/// assert!(subscriptions.warnings().is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscriptions {
    subscriptions: Vec<Subscription>,
    warnings: Vec<String>,
}

/// One subscription, as it is set up in the workspace's developer settings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subscription {
    /// Its event types, at least one.
    pub event_types: Vec<EventType>,
    /// The data model to which it is limited, if there is one.
    pub model: Option<DataModelId>,
}

impl Subscriptions {
    fn from_table<A>(table: &ArmTable<A>) -> Self {
        let mut by_model = BTreeMap::<_, Vec<_>>::new();
        let mut overlapping = BTreeMap::<_, Vec<_>>::new();
        let mut warnings = Vec::new();
        for (event_type, arms) in &table.types {
            for model in arms.keys() {
                let list = match model {
                    Some(model) if arms.contains_key(&None) => {
                        overlapping.entry(model).or_default()
                    }
                    _ => by_model.entry(model).or_default(),
                };
                list.push(event_type.clone());
            }
            if !event_type.is_known() {
                let name = event_type.as_str().escape_debug();
                warnings.push(format!(
                    "warning: {name} is not an event type that the service documents: is it mistyped?"
                ));
            }
        }
        let subscriptions = by_model
            .into_iter()
            .map(|(model, event_types)| Subscription {
                event_types,
                model: model.clone(),
            });
        let shared = overlapping.into_iter().map(|(model, event_types)| {
            format!(
                "warning: {} of {}: the subscription to any data model brings that; another one that brings it too needs the same scope, or each event runs twice",
                listed(&event_types),
                model.as_str().escape_debug()
            )
        });
        Self {
            subscriptions: subscriptions.collect(),
            warnings: warnings.into_iter().chain(shared).collect(),
        }
    }

    /// Returns the subscriptions: the one without a data model first, then the others by their data
    /// model's id.
    pub fn iter(&self) -> std::slice::Iter<'_, Subscription> {
        self.subscriptions.iter()
    }

    /// Returns the warnings about them, each a line:
    ///
    /// - An event type that the specification does not list is mistyped, or newer than this crate.
    /// - Events of a data model that have their own arm come with the subscription that has no data
    ///   model. If another subscription is limited to the model **and** lists these events, each
    ///   comes a second time, under another secret. Give both subscriptions one scope then
    ///   ([`KeyRing::with_scope`](crate::KeyRing::with_scope)), or the event runs twice.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

impl fmt::Display for Subscriptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subscriptions = self.subscriptions.iter().map(ToString::to_string);
        let lines = subscriptions.chain(self.warnings.iter().cloned());
        f.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

impl fmt::Display for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "subscription to {}; data model: ",
            listed(&self.event_types)
        )?;
        match &self.model {
            Some(model) => model.as_str().escape_debug().fmt(f),
            None => f.write_str("any"),
        }
    }
}

fn listed(types: &[EventType]) -> String {
    let types = types
        .iter()
        .map(|name| name.as_str().escape_debug().to_string());
    types.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(arms: &[(&'static str, Option<&'static str>)], fallback: bool) -> ArmTable<String> {
        let mut table = ArmTable::new();
        for (name, model) in arms {
            let arm = format!("{name} {}", model.unwrap_or("any"));
            let name = EventType::parse(name).unwrap();
            assert!(table.insert(name, model.map(DataModelId::from), arm));
        }
        if fallback {
            table.fallback = Some("fallback".into());
        }
        table
    }

    #[test]
    fn the_model_is_asked_for_only_where_it_decides() {
        let table = table(
            &[
                ("row.created", None),
                ("row.updated", Some("dm_1")),
                ("row.updated", None),
            ],
            true,
        );
        let untold = || Err::<&str, _>("untold");
        assert_eq!(
            table.arm("row.created", untold),
            Ok(Some(&"row.created any".into()))
        );
        assert_eq!(
            table.arm("row.deleted", untold),
            Ok(Some(&"fallback".into()))
        );
        // If the model is not readable, neither the arm for any model nor `fallback` takes its
        // place.
        assert_eq!(table.arm("row.updated", untold), Err("untold"));
    }
}
