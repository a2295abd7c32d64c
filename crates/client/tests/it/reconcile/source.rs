//! The client as the source of a reconciliation.

use std::time::Duration;

use hookgate::event::DataModelId;
use hookgate_client::Options;
use hookgate_client::reconcile::RowSource;
use tokio::time::Instant;

use crate::support::{Fake, answer};

// fault K4: a reconciliation takes a greater share of the rate than its client is given, and other times and retries
#[tokio::test(start_paused = true)]
async fn a_reconciliation_keeps_the_options_of_its_client() {
    let model = DataModelId::from("dm_orders");
    let page = answer(200, None, r#"{"data": [], "meta": {"total": 0}}"#);
    // Of 60 requests a minute.
    for (share, requests) in [(0.1, 6), (0.5, 30), (1.0, 30)] {
        let fake = Fake::answering([page.clone()]);
        let client = fake.client().with(Options::default().rate_share(share));
        let begun = Instant::now();
        for _ in 0..requests {
            RowSource::page(&client, &model, 0, 500).await.unwrap();
        }
        assert_eq!(begun.elapsed(), Duration::ZERO, "{share}");
        RowSource::page(&client, &model, 0, 500).await.unwrap();
        assert_eq!(begun.elapsed(), Duration::from_secs(60), "{share}");
    }
    let fake = Fake::answering([answer(500, None, "{}")]);
    let client = fake.client().with(Options::default().retries(1));
    client.columns(&model).await.unwrap_err();
    RowSource::page(&client, &model, 0, 500).await.unwrap_err();
    assert_eq!(fake.seen.lock().unwrap().len(), 4);
}
