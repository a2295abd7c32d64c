//! The metrics of a guard, as an exporter shows them.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::routing::post;
use hookgate::Delivery;
use hookgate_order::{MemoryOrderStore, Order, OrderGuard};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::sync::Semaphore;
use tower::ServiceExt;

use crate::support::{Sent, receiver};

fn is(expected: &[(&str, f64)]) -> BTreeMap<String, f64> {
    let own = |(labels, value): &(&str, f64)| ((*labels).to_owned(), *value);
    expected.iter().map(own).collect()
}

#[tokio::test]
async fn what_an_order_guard_sees_is_counted_as_the_docs_say() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _installed = metrics::set_default_local_recorder(&recorder); // on this thread runs the whole test
    let store = MemoryOrderStore::default();
    let guard = || OrderGuard::new(store.clone()).metrics_name("orders");
    let receiver = receiver().build().unwrap();
    let (begun, may_end) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let handler = {
        let (begun, may_end) = (Arc::clone(&begun), Arc::clone(&may_end));
        async move |delivery: Delivery, _: Order| {
            if delivery.event_id() == "evt_4" {
                begun.add_permits(1);
                may_end.acquire().await.unwrap().forget();
            }
        }
    };
    let app = |guard: OrderGuard| {
        let route = post(handler.clone()).layer((receiver.layer(), guard));
        Router::new().route("/hook", route)
    };
    // As in two processes: in one of them the second event would wait for the first.
    let (app, elsewhere) = (app(guard()), app(guard()));
    let held = || {
        let text = recorder.handle().render();
        let short = text.lines().filter_map(|line| {
            let (name, value) = line.strip_prefix("hookgate_order_")?.rsplit_once(' ')?;
            let name = name.replace("guard=\"orders\",", "");
            Some((name, value.parse().unwrap()))
        });
        short.collect::<BTreeMap<String, f64>>()
    };
    // Those that must not be missed are there from the beginning.
    let mut expected = is(&[
        ("total{order=\"stale\"}", 0.0),
        ("total{order=\"overlapped\"}", 0.0),
        ("gaps_total{reason=\"before_differs\"}", 0.0),
        ("gaps_total{reason=\"not_created\"}", 0.0),
    ]);
    assert_eq!(held(), expected);

    let update_in = |app: &Router, id: &str, second: u32, before: u32| {
        let body = format!(
            r#"{{"id":"{id}","type":"row.updated","createdAt":"2026-11-21T09:30:{second:02}Z","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","changes":{{"Total":{{"before":{before},"after":{second}}}}}}}}}"#
        );
        app.clone().oneshot(Sent::new(body).request())
    };
    let update = |id: &str, second: u32, before: u32| update_in(&app, id, second, before);
    for (id, second, before) in [
        ("evt_2", 2, 1),
        ("evt_1", 1, 0),
        ("evt_3", 2, 1),
        ("evt_9", 9, 8),
    ] {
        assert_eq!(update(id, second, before).await.unwrap().status(), 200);
    }
    let overlapped = tokio::spawn(update("evt_4", 20, 9));
    begun.acquire().await.unwrap().forget();
    let later = update_in(&elsewhere, "evt_5", 21, 20).await;
    assert_eq!(later.unwrap().status(), 200);
    may_end.add_permits(1);
    overlapped.await.unwrap().unwrap();
    expected.extend(is(&[
        ("total{order=\"newest\"}", 3.0),
        ("total{order=\"stale\"}", 1.0),
        ("total{order=\"unknown\"}", 1.0),
        ("total{order=\"overlapped\"}", 1.0),
        // `evt_5` begins where `evt_4` ends, which is not recorded yet.
        ("gaps_total{reason=\"before_differs\"}", 1.0),
    ]));
    assert_eq!(held(), expected);

    let docs = include_str!("../../../../docs/operations.md");
    for (name, label) in [("total", "order"), ("gaps_total", "reason")] {
        let line = format!("| `hookgate_order_{name}` | counter | `guard`, `{label}` |");
        assert!(docs.contains(&line), "{line}");
    }
    assert_eq!(docs.matches("\n| `hookgate_order_").count(), 2);
    for name in held().keys() {
        let value = name.split('"').nth(1).unwrap();
        assert!(docs.contains(&format!("`{value}`")), "{value}");
    }
}
