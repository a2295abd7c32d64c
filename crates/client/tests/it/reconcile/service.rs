//! A simulated service: a list of rows that changes while it is read, and the events of its
//! changes.

use std::collections::{BTreeMap, VecDeque};

use hookgate::{
    Event,
    event::{Fields, RowId},
};
use hookgate_client::reconcile::{Column, PassPage, PassRow};
use serde_json::{Value, json};

pub const MODEL: &str = "dm_orders";

/// A generator of numbers with a seed: splitmix64.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to, and without, `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// The order in which the service lists rows. The specification shows none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ListOrder {
    Creation,
    NewestFirst,
    /// An update moves a row to the end.
    Update,
    /// An update moves a row to the beginning.
    LastUpdateFirst,
    /// A new row, and a row that is updated, gets any place.
    Any,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ServiceRow {
    pub id: String,
    pub name: String,
    pub total: Option<u64>,
    pub created_at: u64,
    pub updated_at: u64,
}

pub struct Service {
    pub now: u64,
    pub order: ListOrder,
    pub rows: Vec<ServiceRow>,
    /// When each row that is gone was deleted.
    pub deleted: BTreeMap<String, u64>,
    next: u64,
    /// The lists of the last moments, for pages that are read from a copy that lags behind.
    past: VecDeque<Vec<ServiceRow>>,
}

/// An event that was made, with the time when it is handled. `None`: it is lost.
pub struct Sent {
    pub row: String,
    pub at: Option<u64>,
    pub event: Event,
}

pub fn iso(seconds: u64) -> String {
    // Any day will do, as long as times differ and rise.
    let (day, rest) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("2026-03-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1)
}

pub fn event(kind: &str, seconds: u64, row: &str, rest: Value) -> Event {
    let mut data = json!({ "datamodelId": MODEL, "datamodelName": "Orders", "rowId": row });
    for (name, value) in rest.as_object().unwrap() {
        data[name] = value.clone();
    }
    let id = format!("evt_{row}_{seconds}");
    let body = json!({ "id": id, "type": kind, "createdAt": iso(seconds), "workspaceId": "ws_1", "data": data });
    hookgate_testing::event(body.to_string()).unwrap()
}

/// An update of the row's name.
pub fn renamed(seconds: u64, row: &str, before: &str, after: &str) -> Event {
    let changes = json!({ "changes": { "Name": { "before": before, "after": after } } });
    event("row.updated", seconds, row, changes)
}

pub fn deleted(seconds: u64, row: &str) -> Event {
    event("row.deleted", seconds, row, json!({}))
}

impl ServiceRow {
    pub fn properties(&self) -> Value {
        let mut properties = json!({ "Name": self.name });
        if let Some(total) = self.total {
            // An event and a row may write one number differently.
            properties["Total"] = json!(total as f64);
        }
        properties
    }

    fn listed(&self) -> PassRow {
        let mut data = json!({ "prop_1": self.name, "prop_2": null });
        if let Some(total) = self.total {
            data["prop_2"] = json!(total);
        }
        PassRow {
            id: RowId::from(self.id.as_str()),
            data: serde_json::from_str::<Fields>(&data.to_string()).unwrap(),
            created_at: iso(self.created_at),
            updated_at: iso(self.updated_at),
        }
    }
}

pub fn columns() -> Vec<Column> {
    [("prop_1", "Name", "TEXT"), ("prop_2", "Total", "CURRENCY")]
        .map(|(id, name, kind)| Column {
            id: id.into(),
            name: name.into(),
            kind: kind.into(),
        })
        .to_vec()
}

impl Service {
    pub fn new(order: ListOrder) -> Self {
        Self {
            now: 1,
            order,
            rows: Vec::new(),
            deleted: BTreeMap::new(),
            next: 0,
            past: VecDeque::new(),
        }
    }

    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn insert(&mut self, row: ServiceRow, chance: &mut Chance) {
        let at = match self.order {
            ListOrder::Creation | ListOrder::Update => self.rows.len(),
            ListOrder::NewestFirst | ListOrder::LastUpdateFirst => 0,
            ListOrder::Any => chance.below(self.rows.len() + 1),
        };
        self.rows.insert(at, row);
    }

    pub fn create(&mut self, chance: &mut Chance) -> Event {
        let number = self.fresh();
        let row = ServiceRow {
            id: format!("row_{number}"),
            name: format!("name {number}"),
            total: chance.one_in(2).then_some(number),
            created_at: self.now,
            updated_at: self.now,
        };
        let properties = json!({ "properties": row.properties() });
        let made = event("row.created", self.now, &row.id, properties);
        self.insert(row, chance);
        made
    }

    pub fn update(&mut self, chance: &mut Chance) -> Option<Event> {
        let at = (!self.rows.is_empty()).then(|| chance.below(self.rows.len()))?;
        let mut row = self.rows[at].clone();
        let number = self.fresh();
        let mut changes = json!({});
        if chance.one_in(2) {
            let before = std::mem::replace(&mut row.name, format!("name {number}"));
            changes["Name"] = json!({ "before": before, "after": row.name });
        } else {
            let now = (!chance.one_in(4)).then_some(number);
            let before = std::mem::replace(&mut row.total, now);
            changes["Total"] = json!({ "before": before, "after": now });
        }
        row.updated_at = self.now;
        let changes = json!({ "changes": changes });
        let made = event("row.updated", self.now, &row.id, changes);
        if matches!(self.order, ListOrder::Creation | ListOrder::NewestFirst) {
            self.rows[at] = row;
        } else {
            self.rows.remove(at);
            self.insert(row, chance);
        }
        Some(made)
    }

    pub fn delete(&mut self, chance: &mut Chance) -> Option<Event> {
        let at = (!self.rows.is_empty()).then(|| chance.below(self.rows.len()))?;
        let row = self.rows.remove(at);
        self.deleted.insert(row.id.clone(), self.now);
        Some(deleted(self.now, &row.id))
    }

    /// Keeps the list of this moment, so that a page may lag behind.
    pub fn remember(&mut self) {
        self.past.push_front(self.rows.clone());
        self.past.truncate(4);
    }

    /// A page of the list as it was so many moments ago.
    pub fn page(&self, offset: u64, limit: u64, lag: usize) -> PassPage {
        let rows = self.past.get(lag).unwrap_or(&self.rows);
        let from = (offset as usize).min(rows.len());
        let to = ((offset + limit) as usize).min(rows.len());
        PassPage {
            rows: rows[from..to].iter().map(ServiceRow::listed).collect(),
            total: Some(rows.len() as u64),
        }
    }

    pub fn find(&self, id: &str) -> Option<&ServiceRow> {
        self.rows.iter().find(|row| row.id == id)
    }
}
