//! Sample events: of all eight types, with properties of every format.
//!
//! An [`EventFactory`] counts, so that no two of its events share an id. The same seed makes the
//! same events. The result is a
//! [`SampleEvent`]: JSON with the service's fields in the service's order. Change it with methods or by path, then send it,
//! or convert it to a typed [`Event`](hookgate::Event) or a [`Delivery`](hookgate::Delivery) for a
//! unit test.
//!
//! ```
//! use hookgate::EventData;
//! use hookgate_testing::factory::{EventFactory, JsonText};
//!
//! #[derive(serde::Deserialize)]
//! struct Order {
//!     #[serde(rename = "Total")]
//!     total: f64,
//! }
//!
//! let factory = EventFactory::new();
//! let event = factory.row_created().property("Total", JsonText::currency("1250.00")).event::<Order>()?;
//! match event.data {
//!     EventData::RowCreated(row) => assert_eq!(row.properties.total, 1_250.0),
//!     other => panic!("unexpected {}", other.event_type()),
//! }
//! assert_ne!(factory.row_deleted().event_id(), factory.row_deleted().event_id());
//! # Ok::<(), hookgate::event::EventError>(())
//! ```
//!
//! # What is made up here
//! The service's specification shows the payloads of `row.created`, `row.updated` and
//! `row.deleted`. It shows **no** payload of `page.*` and `member.*`, nor of the test event: their
//! `data` is an invention of this crate, and the service's `data` will differ. Use them to test
//! that your receiver accepts such events, not how it reads them.

mod sample;
mod tree;
mod value;

pub use sample::SampleEvent;
pub use tree::{PathError, PathErrorKind};
pub use value::JsonText;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hookgate::clock::{Clock, UnixSeconds};

use crate::iso8601;
use sample::person;
use tree::quoted;

/// The time of the first event of a factory without a clock: 2026-11-21T09:30:00Z.
const FIRST: i64 = 1_795_253_400;

/// The event types of the specification, in its order.
pub const EVENT_TYPES: [&str; 8] = [
    "row.created",
    "row.updated",
    "row.deleted",
    "page.created",
    "page.updated",
    "page.deleted",
    "member.invited",
    "member.removed",
];

/// Makes events. Clones share one counter. See the [module docs](self).
#[derive(Clone, Debug, Default)]
pub struct EventFactory {
    prefix: Arc<str>,
    made: Arc<AtomicU64>,
    clock: Option<Arc<dyn Clock>>,
}

impl EventFactory {
    /// Makes a factory whose events are `evt_1`, `evt_2` and so on, one second apart.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a factory whose ids contain the seed, so that the ids of two seeds differ: `evt_7_1`
    /// for the seed 7.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self {
            prefix: format!("{seed}_").into(),
            ..Self::new()
        }
    }

    /// Sets `createdAt` of each event to the time of this clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// A new order, with a property of each format.
    pub fn row_created(&self) -> SampleEvent {
        self.of_type("row.created")
    }

    /// An order that was shipped.
    pub fn row_updated(&self) -> SampleEvent {
        self.of_type("row.updated")
    }

    /// An order that was deleted. Its `deletedBy` has no e-mail address, as in the specification.
    pub fn row_deleted(&self) -> SampleEvent {
        self.of_type("row.deleted")
    }

    /// A new page; its `data` is [made up](self#what-is-made-up-here).
    pub fn page_created(&self) -> SampleEvent {
        self.of_type("page.created")
    }

    /// A page with new content; its `data` is [made up](self#what-is-made-up-here).
    pub fn page_updated(&self) -> SampleEvent {
        self.of_type("page.updated")
    }

    /// A page that was deleted; its `data` is [made up](self#what-is-made-up-here).
    pub fn page_deleted(&self) -> SampleEvent {
        self.of_type("page.deleted")
    }

    /// A member was invited; its `data` is [made up](self#what-is-made-up-here).
    pub fn member_invited(&self) -> SampleEvent {
        self.of_type("member.invited")
    }

    /// A member was removed; its `data` is [made up](self#what-is-made-up-here).
    pub fn member_removed(&self) -> SampleEvent {
        self.of_type("member.removed")
    }

    /// An event of any type. A type that the specification does not know gets an empty `data`.
    pub fn of_type(&self, event_type: &str) -> SampleEvent {
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        let prefix = &self.prefix;
        let id = quoted(&format!("evt_{prefix}{number}"));
        let created_at = quoted(&iso8601(self.now(number)));
        let data = data(event_type, &format!("{prefix}{number}"));
        let event_type = quoted(event_type);
        SampleEvent::of_json(format!(
            r#"{{"id":{id},"type":{event_type},"createdAt":{created_at},"workspaceId":"ws_made_up","data":{data}}}"#
        ))
    }

    fn now(&self, number: u64) -> UnixSeconds {
        match &self.clock {
            Some(clock) => clock.now(),
            None => {
                let since_first = i64::try_from(number - 1).unwrap_or(i64::MAX);
                UnixSeconds::new(FIRST.saturating_add(since_first))
            }
        }
    }
}

/// Returns the `data` of an event of this type, with this number in its ids.
fn data(event_type: &str, number: &str) -> String {
    const MODEL: &str = r#""datamodelId":"dm_orders","datamodelName":"Orders""#;
    let bo = person("usr_bo", "Bo Lind", Some("bo@example.com"));
    let bo_without_address = person("usr_bo", "Bo Lind", None);
    match event_type {
        "row.created" => {
            let properties = properties();
            format!(
                r#"{{{MODEL},"rowId":"row_{number}","properties":{properties},"createdBy":{bo}}}"#
            )
        }
        "row.updated" => format!(
            r#"{{{MODEL},"rowId":"row_{number}","changes":{{"Status":{{"before":"open","after":"shipped"}},"Shipped":{{"before":null,"after":"2026-11-23"}}}},"updatedBy":{bo}}}"#
        ),
        "row.deleted" => {
            format!(r#"{{{MODEL},"rowId":"row_{number}","deletedBy":{bo_without_address}}}"#)
        }
        "page.created" => {
            format!(r#"{{"pageId":"page_{number}","title":"Plans for 2027","createdBy":{bo}}}"#)
        }
        "page.updated" => {
            format!(r#"{{"pageId":"page_{number}","title":"Plans for 2027","updatedBy":{bo}}}"#)
        }
        "page.deleted" => {
            format!(r#"{{"pageId":"page_{number}","deletedBy":{bo_without_address}}}"#)
        }
        "member.invited" => format!(
            r#"{{"memberId":"usr_{number}","email":"cleo@example.com","role":"member","invitedBy":{bo}}}"#
        ),
        "member.removed" => {
            format!(r#"{{"memberId":"usr_{number}","name":"Cleo Amari","removedBy":{bo}}}"#)
        }
        _ => "{}".to_owned(),
    }
}

/// An order's properties, one of each format.
fn properties() -> String {
    let properties = [
        ("Customer", JsonText::text("Ada Lovelace")),
        ("Quantity", JsonText::number(3)),
        ("Total", JsonText::currency("1249.90")),
        ("Ordered", JsonText::date("2026-11-21T09:29:41+01:00")),
        ("Due", JsonText::date("2026-12-01")),
        ("Status", JsonText::select("open")),
        ("Tags", JsonText::multi_select(["gift", "express"])),
        ("Paid", JsonText::checkbox(false)),
        ("Account", JsonText::relation(["row_ada"])),
        (
            "Invoice",
            JsonText::file([("https://files.example.com/2026-7.pdf", "2026-7.pdf")]),
        ),
    ];
    let fields = properties
        .iter()
        .map(|(name, value)| format!("{}:{}", quoted(name), value.as_str()));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}
