//! The service: its rows, its list, and its deliveries.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hookgate::{
    Properties, Secret,
    clock::{Clock, UnixSeconds},
    dedupe::StoreFuture,
    event::{DataModelId, Json},
    verify::{Signature, Timestamp},
};
use hookgate_client::reconcile::{Column, PassPage, PassRow, RowSource};
use hookgate_testing::iso8601;
use http::Request;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::super::service::{Chance, MODEL, columns};
use super::World;
use crate::support::{TestClock, Whole};

pub const SECRET: &str = "whsec_made_up_for_this_test";

/// The rows at most: few, so that their events meet.
const ROWS: usize = 3;

pub struct Service {
    clock: TestClock,
    rows: BTreeMap<String, Row>,
    deleted: Vec<String>,
    events: u64,
    digits: Digits,
    /// An event's `createdAt` may be a little later than its row's `updatedAt`, in milliseconds.
    skew: usize,
    pub kills: u64,
    pub repairs: u64,
}

#[derive(Clone)]
struct Row {
    name: String,
    total: Option<usize>,
    created_at: String,
    updated_at: String,
}

/// The digits of a time behind the second.
#[derive(Clone, Copy)]
enum Digits {
    None,
    Three,
    /// Zeros at the end are dropped.
    Any,
}

impl Digits {
    fn write(self, millis: u64) -> String {
        let whole = iso8601(UnixSeconds::new((millis / 1_000).cast_signed()));
        let fraction = match self {
            Self::None => String::new(),
            Self::Three => format!(".{:03}", millis % 1_000),
            Self::Any => format!(".{:02}", millis % 1_000 / 50 * 5),
        };
        let fraction = match self {
            Self::Any => fraction.trim_end_matches('0').trim_end_matches('.'),
            _ => &fraction,
        };
        format!("{}{fraction}Z", whole.trim_end_matches('Z'))
    }
}

impl Row {
    fn properties(&self) -> Value {
        let mut properties = json!({ "Name": self.name });
        if let Some(total) = self.total {
            properties["Total"] = json!(total);
        }
        properties
    }
}

impl Service {
    pub fn new(clock: TestClock, chance: &mut Chance) -> Self {
        Self {
            clock,
            rows: BTreeMap::new(),
            deleted: Vec::new(),
            events: 0,
            digits: [Digits::None, Digits::Three, Digits::Any][chance.below(3)],
            skew: if chance.one_in(3) { 20 } else { 0 },
            kills: 0,
            repairs: 0,
        }
    }

    /// Changes a row. Returns the body of the event.
    pub fn change(&mut self, chance: &mut Chance) -> String {
        let millis = self.clock.unix_millis();
        let updated_at = self.digits.write(millis);
        let kind = match (self.rows.len(), chance.below(6)) {
            (0, _) => 0,
            (rows, 0) if rows < ROWS => 0,
            (_, 1) => 1,
            _ => 2,
        };
        let (kind, row, rest) = if kind == 0 {
            let id = match self.deleted.pop().filter(|_| chance.one_in(2)) {
                Some(restored) => restored,
                None => format!("row_{:03}", self.events),
            };
            let row = Row {
                name: name(chance),
                total: total(chance),
                created_at: updated_at.clone(),
                updated_at,
            };
            let properties = json!({ "properties": row.properties() });
            self.rows.insert(id.clone(), row);
            ("created", id, properties)
        } else {
            let place = chance.below(self.rows.len());
            let id = self.rows.keys().nth(place).unwrap().clone();
            if kind == 1 {
                self.rows.remove(&id);
                self.deleted.push(id.clone());
                ("deleted", id, json!({}))
            } else {
                let row = self.rows.get_mut(&id).unwrap();
                row.updated_at = updated_at;
                let changes = if chance.one_in(2) {
                    let before = std::mem::replace(&mut row.name, name(chance));
                    json!({ "Name": { "before": before, "after": row.name } })
                } else {
                    let before = std::mem::replace(&mut row.total, total(chance));
                    json!({ "Total": { "before": before, "after": row.total } })
                };
                ("updated", id, json!({ "changes": changes }))
            }
        };
        let mut data = json!({ "datamodelId": MODEL, "datamodelName": "Orders", "rowId": row });
        for (name, value) in rest.as_object().unwrap() {
            data[name] = value.clone();
        }
        self.events += 1;
        json!({
            "id": format!("evt_{}", self.events),
            "type": format!("row.{kind}"),
            "createdAt": self.digits.write(millis + chance.below(self.skew + 1) as u64),
            "workspaceId": "ws_1",
            "data": data,
        })
        .to_string()
    }

    /// The rows as a table has them.
    pub fn table(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let rows = self.rows.iter().map(|(id, row)| {
            let properties: Properties =
                serde_json::from_str(&row.properties().to_string()).unwrap();
            let values = properties.iter().map(|(name, value)| {
                let value = value.json().map(Json::canonical).unwrap();
                (name.to_owned(), value)
            });
            (id.clone(), values.collect())
        });
        rows.collect()
    }

    fn page(&self) -> PassPage {
        let rows = self.rows.iter().map(|(id, row)| {
            let data = json!({ "prop_1": row.name, "prop_2": row.total });
            PassRow {
                id: id.as_str().into(),
                data: serde_json::from_str(&data.to_string()).unwrap(),
                created_at: row.created_at.clone(),
                updated_at: row.updated_at.clone(),
            }
        });
        PassPage {
            rows: rows.collect(),
            total: Some(self.rows.len() as u64),
        }
    }
}

/// Few values, so that one comes back.
fn name(chance: &mut Chance) -> String {
    ["a", "b", "c"][chance.below(3)].to_owned()
}

fn total(chance: &mut Chance) -> Option<usize> {
    Some(chance.below(4)).filter(|total| *total > 0)
}

/// The service's list, whose pages take a while.
#[derive(Clone)]
pub struct Source(Arc<World>);

impl Source {
    pub fn new(world: &Arc<World>) -> Self {
        Self(Arc::clone(world))
    }
}

impl RowSource for Source {
    type Error = Infallible;

    fn columns<'a>(&'a self, _: &'a DataModelId) -> StoreFuture<'a, Vec<Column>, Infallible> {
        StoreFuture::ready(Ok(columns()))
    }

    fn page<'a>(
        &'a self,
        _: &'a DataModelId,
        offset: u64,
        _: u64,
    ) -> StoreFuture<'a, PassPage, Infallible> {
        StoreFuture::boxed(async move {
            let mut page = self.0.service.lock().unwrap().page();
            page.rows.drain(..page.rows.len().min(offset as usize));
            let millis = self.0.chance.lock().unwrap().below(2_000);
            sleep(Duration::from_millis(millis as u64)).await;
            Ok(page)
        })
    }
}

/// Delivers an event until an attempt is answered 2xx. Some attempts are lost, and some events with
/// all of theirs.
pub async fn send(world: Arc<World>, body: String, seed: u64) {
    let mut chance = Chance::new(seed);
    if chance.one_in(10) {
        return;
    }
    for wait in [0, 60, 300, 1_800, 7_200, 86_400] {
        sleep(Duration::from_secs(wait)).await;
        if chance.one_in(4) {
            continue;
        }
        sleep(Duration::from_millis(chance.below(3_000) as u64)).await;
        if chance.one_in(10) {
            tokio::spawn(attempt(Arc::clone(&world), body.clone(), chance.below(2)));
        }
        let is_taken = attempt(Arc::clone(&world), body.clone(), chance.below(2)).await;
        // The answer may be lost.
        if is_taken && !chance.one_in(20) {
            return;
        }
    }
}

async fn attempt(world: Arc<World>, body: String, place: usize) -> bool {
    let (receiver, handler) = {
        let process = world.processes[place].lock().unwrap();
        let Some(process) = &*process else {
            return false;
        };
        process.handler()
    };
    let secret = Secret::new(SECRET).unwrap();
    let now = Timestamp::at(world.durable.clock.now()).unwrap();
    let signature = Signature::sign(&secret, &now, body.as_bytes()).to_header_value();
    let request = Request::post("/webhooks")
        .header("x-service-timestamp", now.as_str())
        .header("x-service-signature", signature)
        .body(Whole(Some(body.into())))
        .unwrap();
    let answer = timeout(Duration::from_secs(5), receiver.handle(request, handler)).await;
    answer.is_ok_and(|answer| answer.status().is_success())
}
