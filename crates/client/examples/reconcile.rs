//! Rows that changed while the receiver was down, found and repaired:
//! `cargo run -p hookgate-client --features reconcile --example reconcile`.
//!
//! The service is the emulator in this process. Nothing receives its events, as in an outage.

#![allow(missing_docs)] // a program has no API
#![allow(clippy::print_stdout)] // an example prints for its user

use std::error::Error;
use std::sync::Arc;

use hookgate::{Properties, event::Field};
use hookgate_client::reconcile::{MemoryMirror, Reconcile, Reconciled, Settings};
use hookgate_client::{ApiKey, Client};
use hookgate_emulator::{Emulator, Seed};
use serde_json::json;

pub(crate) async fn found() -> Result<Vec<String>, Box<dyn Error>> {
    let service = Emulator::start(Seed::orders()).await?;
    let key = ApiKey::new("tk_test_read")?;
    let client = Client::builder(&service.base_url(), key)
        .allow_plain_http()
        .build()?;
    let orders = service.rows("dm_orders");
    let ada = orders.create(json!({ "prop_customer": "Ada", "prop_total": 12.5 }))?;
    let bo = orders.create(json!({ "prop_customer": "Bo", "prop_total": 3 }))?;

    // Once, before the first event: the rows as they are. From then on `feed` writes each handled
    // event into the mirror.
    let mirror = Arc::new(MemoryMirror::with_values());
    let mut settings = Settings::default();
    settings.is_filling = true;
    let mut filling = Reconcile::new(client.clone(), Arc::clone(&mirror), "dm_orders", settings);
    filling.pass(async |_| Ok::<_, String>(())).await?;

    // The outage.
    orders.update(&ada, json!({ "prop_total": 20 }))?;
    orders.delete(&bo)?;
    orders.create(json!({ "prop_customer": "Cy", "prop_total": 7 }))?;

    // A program makes a pass now and then, an hour apart for example.
    let mut found = Vec::new();
    let mut reconcile = Reconcile::new(client, mirror, "dm_orders", Settings::default());
    for _ in 0..3 {
        let mut repaired = Vec::new();
        let repair = |finding: Reconciled| {
            // The place to bring your own data to the row's state.
            repaired.push(match finding {
                Reconciled::Created(row) => format!("created: {}", customer(&row.properties)),
                Reconciled::Updated(row) => format!("updated: {}", customer(&row.properties)),
                Reconciled::Deleted(row) => format!(
                    "deleted: {}",
                    row.before.as_ref().map(customer).unwrap_or_default()
                ),
                other => format!("to look at: {other:?}"),
            });
            std::future::ready(Ok::<_, String>(()))
        };
        reconcile.pass(repair).await?;
        found.append(&mut repaired);
    }
    Ok(found)
}

fn customer(order: &Properties) -> String {
    let customer = order.text("Customer").ok().and_then(Field::into_option);
    customer.unwrap_or_default().into_owned()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    for line in found().await? {
        println!("{line}");
    }
    Ok(())
}
