//! A simulated business: customers are created, orders are placed, changed and deleted.

use std::fmt;

use hookgate::clock::{Clock, UnixSeconds};

use super::{EventFactory, JsonText, SampleEvent};
use crate::iso8601;

/// The maximum number of rows that are kept at a time.
const MAX_CUSTOMERS: usize = 200;
const MAX_ORDERS: usize = 1_000;

/// The states of an order, and the property that gets the date of the state.
const ORDER_STATES: [(&str, Option<&str>); 4] = [
    ("open", None),
    ("paid", Some("Paid on")),
    ("shipped", Some("Shipped on")),
    ("delivered", None),
];

const PEOPLE: [(&str, &str, &str); 3] = [
    ("usr_bo", "Bo Lind", "bo@example.com"),
    ("usr_cleo", "Cleo Amari", "cleo@example.com"),
    ("usr_dan", "Dan Okoye", "dan@example.com"),
];

/// An endless stream of consistent `row.created`, `row.updated` and `row.deleted` events: of customers (`dm_customers`) and
/// their orders (`dm_orders`). A row is created before it changes, `before` is its last value, and no row is deleted twice.
/// The same seed makes the same events.
///
/// ```
/// use hookgate_testing::factory::World;
///
/// let events: Vec<_> = World::seeded(7).take(100).collect();
/// assert_eq!(events[0].event_type().as_deref(), Some("row.created"));
/// let again: Vec<_> = World::seeded(7).take(100).map(|event| event.to_json()).collect();
/// assert!(events.iter().map(|event| event.to_json()).eq(again));
/// ```
pub struct World {
    factory: EventFactory,
    draws: fastrand::Rng,
    customers: Vec<Row>,
    orders: Vec<Row>,
    placed: u64,
}

/// The current state of a row.
struct Row {
    id: String,
    properties: Vec<(&'static str, JsonText)>,
    /// The index of an order's current state.
    stage: usize,
}

impl World {
    /// Makes a world without rows. The ids of its events contain the seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self {
            factory: EventFactory::seeded(seed),
            draws: fastrand::Rng::with_seed(seed),
            customers: Vec::new(),
            orders: Vec::new(),
            placed: 0,
        }
    }

    /// Sets `createdAt` of each event to the time of this clock. Without it, events are one second apart.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock) -> Self {
        self.factory = self.factory.with_clock(clock);
        self
    }

    /// Returns the next event.
    pub fn next_event(&mut self) -> SampleEvent {
        let event = match self.draws.u8(..100) {
            _ if self.customers.is_empty() => self.add_customer(),
            _ if self.orders.len() >= MAX_ORDERS => self.delete_an_order(),
            0..8 if self.customers.len() < MAX_CUSTOMERS => self.add_customer(),
            8..14 => self.move_customer(),
            14..50 => self.place_order(),
            50..60 if !self.orders.is_empty() => self.change_total(),
            60..90 if !self.orders.is_empty() => self.advance_order(),
            90.. if !self.orders.is_empty() => self.delete_an_order(),
            _ => self.place_order(),
        };
        let (id, name, email) = PEOPLE[self.draws.usize(..PEOPLE.len())];
        event.actor(id, name, email)
    }

    fn add_customer(&mut self) -> SampleEvent {
        const NAMES: [&str; 6] = [
            "Ada Lovelace",
            "Grace Hopper",
            "José Núñez",
            "Zoë Krüger",
            "O’Neill & Sons",
            "山田 花子",
        ];
        let number = self.customers.len() + 1;
        let name = NAMES[self.draws.usize(..NAMES.len())];
        let city = self.city();
        let event = self.factory.row_created();
        let since = today(&event);
        let properties = vec![
            ("Name", JsonText::text(name)),
            (
                "E-mail",
                JsonText::text(&format!("customer{number}@example.com")),
            ),
            ("City", JsonText::select(city)),
            ("Customer since", JsonText::date(&since)),
            ("Newsletter", JsonText::checkbox(self.draws.bool())),
        ];
        let (event, row) = created(event, ("dm_customers", "Customers"), properties);
        self.customers.push(row);
        event
    }

    fn move_customer(&mut self) -> SampleEvent {
        let (city, at) = (self.city(), self.draws.usize(..self.customers.len()));
        let customer = &mut self.customers[at];
        let event = self.factory.row_updated().without_changes();
        let event = event.model("dm_customers", "Customers").row(&customer.id);
        customer.change(event, "City", JsonText::select(city))
    }

    fn place_order(&mut self) -> SampleEvent {
        self.placed += 1;
        let draws = &mut self.draws;
        let customer = &self.customers[draws.usize(..self.customers.len())];
        let (quantity, total) = (draws.u32(1..20), total(draws));
        let tags: &[&str] = match draws.u8(..4) {
            0 => &["gift"],
            1 => &["gift", "express"],
            _ => &[],
        };
        let event = self.factory.row_created();
        let number = self.placed;
        let invoice = format!("https://files.example.com/orders/{number}.pdf");
        let properties = vec![
            ("Number", JsonText::text(&format!("2026-{number:05}"))),
            ("Customer", customer.value("Name")),
            ("Account", JsonText::relation([customer.id.as_str()])),
            ("Quantity", JsonText::number(quantity)),
            ("Total", total),
            ("Ordered", JsonText::date(&now(&event))),
            ("Status", JsonText::select(ORDER_STATES[0].0)),
            ("Tags", JsonText::multi_select(tags.iter().copied())),
            ("Paid on", JsonText::null()),
            ("Shipped on", JsonText::null()),
            (
                "Invoice",
                JsonText::file([(invoice.as_str(), "invoice.pdf")]),
            ),
        ];
        let (event, row) = created(event, ("dm_orders", "Orders"), properties);
        self.orders.push(row);
        event
    }

    fn change_total(&mut self) -> SampleEvent {
        let (total, at) = (
            total(&mut self.draws),
            self.draws.usize(..self.orders.len()),
        );
        let order = &mut self.orders[at];
        let event = self.factory.row_updated().without_changes();
        let event = event.model("dm_orders", "Orders").row(&order.id);
        order.change(event, "Total", total)
    }

    fn advance_order(&mut self) -> SampleEvent {
        let at = self.draws.usize(..self.orders.len());
        if self.orders[at].stage + 1 == ORDER_STATES.len() {
            return self.delete_order(at);
        }
        let order = &mut self.orders[at];
        order.stage += 1;
        let (status, day) = ORDER_STATES[order.stage];
        let event = self.factory.row_updated().without_changes();
        let today = JsonText::date(&today(&event));
        let event = event.model("dm_orders", "Orders").row(&order.id);
        let event = order.change(event, "Status", JsonText::select(status));
        match day {
            Some(day) => order.change(event, day, today),
            None => event,
        }
    }

    fn delete_an_order(&mut self) -> SampleEvent {
        let at = self.draws.usize(..self.orders.len());
        self.delete_order(at)
    }

    fn delete_order(&mut self, at: usize) -> SampleEvent {
        let order = self.orders.swap_remove(at);
        let event = self.factory.row_deleted();
        event.model("dm_orders", "Orders").row(&order.id)
    }

    fn city(&mut self) -> &'static str {
        const CITIES: [&str; 5] = ["Lisbon", "Oslo", "Zürich", "São Paulo", "大阪"];
        CITIES[self.draws.usize(..CITIES.len())]
    }
}

impl Row {
    fn value(&self, name: &str) -> JsonText {
        let there = self.properties.iter().find(|(other, _)| *other == name);
        there.map_or_else(JsonText::null, |(_, value)| value.clone())
    }

    fn change(&mut self, event: SampleEvent, name: &'static str, after: JsonText) -> SampleEvent {
        let there = self.properties.iter_mut().find(|(other, _)| *other == name);
        match there {
            Some((_, value)) => {
                let before = std::mem::replace(value, after.clone());
                event.change(name, before, after)
            }
            None => event,
        }
    }
}

/// Returns a random amount with two decimals, also where they are zeros.
fn total(draws: &mut fastrand::Rng) -> JsonText {
    let cents = draws.u32(100..500_000);
    JsonText::currency(format!("{}.{:02}", cents / 100, cents % 100))
}

fn created(
    event: SampleEvent,
    model: (&str, &str),
    properties: Vec<(&'static str, JsonText)>,
) -> (SampleEvent, Row) {
    let mut event = event.model(model.0, model.1).without_properties();
    for (name, value) in &properties {
        event = event.property(name, value.clone());
    }
    let row = Row {
        id: event.get_text("data.rowId").unwrap_or_default(),
        properties,
        stage: 0,
    };
    (event, row)
}

fn now(event: &SampleEvent) -> String {
    let created = event.get_text("createdAt");
    created.unwrap_or_else(|| iso8601(UnixSeconds::new(0)))
}

fn today(event: &SampleEvent) -> String {
    now(event).chars().take("2026-11-21".len()).collect()
}

/// This iterator never ends.
impl Iterator for World {
    type Item = SampleEvent;

    fn next(&mut self) -> Option<SampleEvent> {
        Some(self.next_event())
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("customers", &self.customers.len())
            .field("orders", &self.orders.len())
            .finish_non_exhaustive()
    }
}
