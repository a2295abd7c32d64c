//! The subscriptions that a router needs, so that every arm gets its events and no event comes twice.

use std::collections::BTreeMap;
use std::fmt;

use super::router::ArmTable;
use crate::event::{DataModelId, EventType};

/// The subscriptions for an [`EventRouter`](crate::EventRouter): the fewest that bring each arm its events, with no event in
/// two of them.
///
/// A subscription has event types and at most one data model. So there is one without a data model, for the types that have
/// their own arm, and one for each data model with arms for further types. `fallback` adds none: it takes the remaining events
/// of the existing subscriptions.
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
    pub(super) fn of<A>(table: &ArmTable<A>) -> Self {
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

    /// Returns the subscriptions: the one without a data model first, then the others by their data model's id.
    pub fn iter(&self) -> std::slice::Iter<'_, Subscription> {
        self.subscriptions.iter()
    }

    /// Returns the warnings about them, each a line:
    ///
    /// - An event type that the specification does not list is mistyped, or newer than this crate.
    /// - Events of a data model that have their own arm come with the subscription that has no data model. If another subscription
    ///   is limited to the model **and** lists these events, each comes a second time, under another secret. Give both subscriptions
    ///   one scope then ([`KeyRing::with_scope`](crate::KeyRing::with_scope)), or the event runs twice.
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
