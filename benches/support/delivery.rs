//! A `row.created` of a chosen size, as used by the benches.

#![allow(unreachable_pub)] // a bench has no public API

use serde::Deserialize;

/// A row of eight properties.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Order {
    pub number: String,
    pub customer: String,
    pub total: f64,
    pub due: String,
    pub paid: bool,
    pub tags: Vec<String>,
    pub lines: u32,
    pub note: String,
}

impl Order {
    /// Reads all fields, so that none is optimised away.
    pub fn weigh(&self) -> usize {
        let texts = [&self.number, &self.customer, &self.due, &self.note];
        let text: usize = texts.iter().map(|text| text.len()).sum();
        std::hint::black_box((self.total, self.paid, self.lines));
        text + self.tags.len()
    }
}

/// Returns the whole body, `bytes` long.
pub fn body(id: &str, bytes: usize) -> String {
    let (head, tail) = (
        format!(
            r#"{{"id":"{id}","type":"row.created","createdAt":"2026-11-21T09:30:00.000Z","workspaceId":"ws_1","data":{{"datamodelId":"dm_orders","datamodelName":"Orders","rowId":"row_{id}","properties":{{"Number":"2026-004711","Customer":"Ada Lovelace","Total":1234.56,"Due":"2026-12-01","Paid":false,"Tags":["new","priority"],"Lines":7,"Note":""#
        ),
        r#""},"createdBy":{"id":"usr_1","name":"Grace Hopper","email":"grace@example.com"}}}"#,
    );
    let note = "x".repeat(bytes - head.len() - tail.len());
    format!("{head}{note}{tail}")
}
