//! One event, to be changed and sent.

use std::fmt;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::tree::{Change, Tree, quoted};
use super::value::JsonText;
use crate::clock::UnixSeconds;
use crate::delivery::Delivery;
use crate::error::{EventError, PathError};
use crate::event::Event;
use crate::testing::iso8601;

/// An event as it will be sent: fields in the service's order, values as they were given. From an [`EventFactory`](super::EventFactory).
///
/// Methods that name a part of the event change it and can't fail; [`set`](Self::set) reaches any place by its path. `Debug` shows id and
/// type alone.
///
/// ```
/// use hookgate::testing::factory::{EventFactory, JsonText};
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
/// # Ok::<(), hookgate::PathError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct SampleEvent {
    tree: Tree,
}

impl SampleEvent {
    /// Of a body that is there already, kept as it is written: only what is changed of it is written anew.
    ///
    /// ```
    /// use hookgate::testing::factory::SampleEvent;
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

    /// With this id.
    pub fn id(self, id: &str) -> Self {
        self.with(&["id"], quoted(id))
    }

    /// Created at this second.
    pub fn created_at(self, second: UnixSeconds) -> Self {
        self.with(&["createdAt"], quoted(&iso8601(second)))
    }

    /// In this workspace.
    pub fn workspace(self, id: &str) -> Self {
        self.with(&["workspaceId"], quoted(id))
    }

    /// About a row of this data model.
    pub fn model(self, id: &str, name: &str) -> Self {
        self.with(&["data", "datamodelId"], quoted(id))
            .with(&["data", "datamodelName"], quoted(name))
    }

    /// About this row.
    pub fn row(self, id: &str) -> Self {
        self.with(&["data", "rowId"], quoted(id))
    }

    /// With this property, of the row that was created. A name that is there already is given the value.
    pub fn property(self, name: &str, value: JsonText) -> Self {
        self.with(&["data", "properties", name], value.into_text())
    }

    /// Without any of the sample's own properties.
    pub fn without_properties(self) -> Self {
        self.with(&["data", "properties"], "{}")
    }

    /// With this change, of the row that was updated.
    pub fn change(self, name: &str, before: JsonText, after: JsonText) -> Self {
        let (before, after) = (before.into_text(), after.into_text());
        let change = format!(r#"{{"before":{before},"after":{after}}}"#);
        self.with(&["data", "changes", name], change)
    }

    /// Without any of the sample's own changes.
    pub fn without_changes(self) -> Self {
        self.with(&["data", "changes"], "{}")
    }

    /// Caused by this person. Whoever deleted something has no address in the specification, so none is written there.
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
    /// Steps are parted by dots: `data.properties.Total`. A dot inside a name is written `\.`, a step into a list is a number, from 0.
    /// What is not there yet is made, objects on the way included. Number text is kept as written: `12.50` stays `12.50`.
    ///
    /// # Errors
    /// The path is empty, leads into a text or a number, or beyond the end of a list.
    ///
    /// ```
    /// use hookgate::PathErrorKind;
    /// use hookgate::testing::factory::EventFactory;
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
    /// # Ok::<(), hookgate::PathError>(())
    /// ```
    pub fn set(self, path: &str, value: &str) -> Result<Self, PathError> {
        self.set_json(path, JsonText::lenient(value))
    }

    /// Sets the value at a path to exactly this text.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn set_json(mut self, path: &str, value: JsonText) -> Result<Self, PathError> {
        self.tree
            .change(path, Change::Set(Tree::text(value.into_text())))?;
        Ok(self)
    }

    /// Adds a field though its name is there already, which JSON allows and the service never does.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn double(mut self, path: &str, value: JsonText) -> Result<Self, PathError> {
        self.tree
            .change(path, Change::Double(Tree::text(value.into_text())))?;
        Ok(self)
    }

    /// Takes a field out.
    ///
    /// # Errors
    /// As [`set`](Self::set). A field that is not there is no error.
    pub fn without(mut self, path: &str) -> Result<Self, PathError> {
        self.tree.change(path, Change::Remove)?;
        Ok(self)
    }

    /// The JSON at a path, as it will be sent.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<String> {
        self.tree.find(path)
    }

    /// The string at a path.
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

    /// The typed event that a handler would be given.
    ///
    /// # Errors
    /// As [`testing::event`](crate::testing::event).
    pub fn event<R: DeserializeOwned>(&self) -> Result<Event<R>, EventError> {
        crate::testing::event(self.to_json())
    }

    /// The delivery that a handler would be given.
    ///
    /// # Errors
    /// As [`testing::delivery`](crate::testing::delivery).
    pub fn delivery(&self) -> Result<Delivery, EventError> {
        crate::testing::delivery(self.to_json())
    }

    /// These steps lead nowhere only where the event has been taken apart by hand; then there is nothing to change.
    fn with(mut self, steps: &[&str], json: impl Into<Box<str>>) -> Self {
        let _ = self.tree.change_at(steps, Change::Set(Tree::text(json)));
        self
    }
}

/// An actor as the service writes one.
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
