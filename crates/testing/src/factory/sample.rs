//! One event, to change and to send.

use std::fmt;

use bytes::Bytes;
use hookgate::{Delivery, Event, clock::UnixSeconds, event::EventError};
use serde::de::DeserializeOwned;

use super::PathError;
use super::tree::{Change, Tree, quoted};
use super::value::JsonText;
use crate::iso8601;

/// An event as it will be sent: fields in the service's order, values as they were given. Made by
/// an [`EventFactory`](super::EventFactory).
///
/// A method with the name of a part of the event changes that part and can't fail.
/// [`set`](Self::set) changes the value at any path. `Debug` shows only the id and the type.
///
/// ```
/// use hookgate_testing::factory::{EventFactory, JsonText};
///
/// let event = EventFactory::new()
///     .row_created()
///     .model("dm_invoices", "Invoices")
///     .without_properties()
///     .property("Number", JsonText::text("2026-7"))
///     .property("Total", JsonText::currency("12.50"))
///     .set("data.createdBy.name", "Ada")?;
/// assert_eq!(
///     event.to_json(),
///     r#"{"id":"evt_1","type":"row.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_made_up","data":{"datamodelId":"dm_invoices","datamodelName":"Invoices","rowId":"row_1","properties":{"Number":"2026-7","Total":12.50},"createdBy":{"id":"usr_bo","name":"Ada","email":"bo@example.com"}}}"#,
/// );
/// # Ok::<(), hookgate_testing::factory::PathError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct SampleEvent {
    tree: Tree,
}

impl SampleEvent {
    /// Makes a sample event from an existing body. Its text is kept; only changed parts are written
    /// again.
    ///
    /// ```
    /// use hookgate_testing::factory::SampleEvent;
    ///
    /// let event = SampleEvent::of_json(r#"{ "id":"evt_9", "type":"page.created" }"#);
    /// assert_eq!(event.to_json(), r#"{ "id":"evt_9", "type":"page.created" }"#);
    /// assert_eq!(event.id("evt_10").to_json(), r#"{"id":"evt_10","type":"page.created"}"#);
    /// ```
    pub fn of_json(json: impl Into<String>) -> Self {
        Self {
            tree: Tree::text(json.into()),
        }
    }

    /// Sets the event's id.
    pub fn id(self, id: &str) -> Self {
        self.with(&["id"], quoted(id))
    }

    /// Sets the second of its creation.
    pub fn created_at(self, second: UnixSeconds) -> Self {
        self.with(&["createdAt"], quoted(&iso8601(second)))
    }

    /// Sets the workspace.
    pub fn workspace(self, id: &str) -> Self {
        self.with(&["workspaceId"], quoted(id))
    }

    /// Sets the data model of the row.
    pub fn model(self, id: &str, name: &str) -> Self {
        self.with(&["data", "datamodelId"], quoted(id))
            .with(&["data", "datamodelName"], quoted(name))
    }

    /// Sets the row.
    pub fn row(self, id: &str) -> Self {
        self.with(&["data", "rowId"], quoted(id))
    }

    /// Sets a property of the row that was created. An existing property gets the new value.
    pub fn property(self, name: &str, value: JsonText) -> Self {
        self.with(&["data", "properties", name], value.into_text())
    }

    /// Removes all properties.
    pub fn without_properties(self) -> Self {
        self.with(&["data", "properties"], "{}")
    }

    /// Adds a change of the row that was updated.
    pub fn change(self, name: &str, before: JsonText, after: JsonText) -> Self {
        let (before, after) = (before.into_text(), after.into_text());
        let change = format!(r#"{{"before":{before},"after":{after}}}"#);
        self.with(&["data", "changes", name], change)
    }

    /// Removes all changes.
    pub fn without_changes(self) -> Self {
        self.with(&["data", "changes"], "{}")
    }

    /// Sets the person who caused the event. In the specification `deletedBy` has no e-mail
    /// address, so none is written there.
    pub fn actor(self, id: &str, name: &str, email: &str) -> Self {
        let by = [
            "createdBy",
            "updatedBy",
            "deletedBy",
            "invitedBy",
            "removedBy",
        ];
        let there = by
            .iter()
            .find(|by| self.get(&format!("data.{by}")).is_some());
        match there {
            Some(by) => {
                let with_email = *by != "deletedBy";
                let person = person(id, name, with_email.then_some(email));
                self.with(&["data", by], person)
            }
            None => self,
        }
    }

    /// Sets the value at a path: JSON where the text is JSON, a string otherwise.
    ///
    /// Steps are separated by dots: `data.properties.Total`. A dot inside a name is written `\.`. A
    /// step into a list is a number, from 0. A missing value is added, and so are missing objects
    /// on the path. The text of a number is kept: `12.50` stays `12.50`.
    ///
    /// # Errors
    /// The path is empty, leads into a text or a number, or leads beyond the end of a list.
    ///
    /// ```
    /// use hookgate_testing::factory::{EventFactory, PathErrorKind};
    ///
    /// let event = EventFactory::new()
    ///     .row_created()
    ///     .set("data.properties.Total", "12.50")?
    ///     .set("data.properties.Status", "open")?
    ///     .set(r"data.properties.No\. of parcels", "3")?
    ///     .set("data.origin.channel", r#""12""#)?;
    /// assert_eq!(event.get("data.properties.Total").as_deref(), Some("12.50"));
    /// assert_eq!(event.get("data.properties.Status").as_deref(), Some(r#""open""#));
    /// assert_eq!(event.get("data.origin").as_deref(), Some(r#"{"channel":"12"}"#));
    ///
    /// let error = event.set("id.of", "1").unwrap_err();
    /// assert_eq!(error.kind(), PathErrorKind::NoContainer);
    /// # Ok::<(), hookgate_testing::factory::PathError>(())
    /// ```
    pub fn set(mut self, path: &str, value: &str) -> Result<Self, PathError> {
        let value = Tree::text(JsonText::lenient(value).into_text());
        self.tree.change(path, Change::Set(value))?;
        Ok(self)
    }

    /// Removes a field.
    ///
    /// # Errors
    /// As [`set`](Self::set). A missing field is not an error.
    pub fn without(mut self, path: &str) -> Result<Self, PathError> {
        self.tree.change(path, Change::Remove)?;
        Ok(self)
    }

    /// Returns the JSON at a path, as it will be sent.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<String> {
        self.tree.find(path)
    }

    /// Returns the string at a path.
    #[expect(clippy::disallowed_methods, reason = "a text is read of it")]
    #[must_use]
    pub fn get_text(&self, path: &str) -> Option<String> {
        serde_json::from_str(&self.get(path)?).ok()
    }

    /// The event's id, where it has one.
    #[must_use]
    pub fn event_id(&self) -> Option<String> {
        self.get_text("id")
    }

    /// The event's type, where it has one.
    #[must_use]
    pub fn event_type(&self) -> Option<String> {
        self.get_text("type")
    }

    /// The whole body.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = String::new();
        self.tree.write(&mut json);
        json
    }

    /// The whole body, as bytes to sign and send.
    #[must_use]
    pub fn body(&self) -> Bytes {
        self.to_json().into()
    }

    /// Returns the typed event that a handler would get.
    ///
    /// # Errors
    /// As [`testing::event`](crate::event).
    pub fn event<R: DeserializeOwned>(&self) -> Result<Event<R>, EventError> {
        crate::event(self.to_json())
    }

    /// Returns the delivery that a handler would get.
    ///
    /// # Errors
    /// As [`testing::delivery`](crate::delivery).
    pub fn delivery(&self) -> Result<Delivery, EventError> {
        crate::delivery(self.to_json())
    }

    /// Sets a value. This fails only where the caller has removed parts of the event; then nothing
    /// is changed.
    fn with(mut self, steps: &[&str], json: impl Into<Box<str>>) -> Self {
        let _ = self.tree.change_at(steps, Change::Set(Tree::text(json)));
        self
    }
}

/// Returns an actor in the form that the service writes.
pub(super) fn person(id: &str, name: &str, email: Option<&str>) -> String {
    let (id, name) = (quoted(id), quoted(name));
    match email.map(quoted) {
        Some(email) => format!(r#"{{"id":{id},"name":{name},"email":{email}}}"#),
        None => format!(r#"{{"id":{id},"name":{name}}}"#),
    }
}

impl From<SampleEvent> for Bytes {
    fn from(event: SampleEvent) -> Self {
        event.body()
    }
}

impl From<&SampleEvent> for Bytes {
    fn from(event: &SampleEvent) -> Self {
        event.body()
    }
}

impl fmt::Debug for SampleEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SampleEvent")
            .field("id", &self.event_id())
            .field("type", &self.event_type())
            .finish_non_exhaustive()
    }
}
