//! Each example is started as a process, gets deliveries over TCP, and behaves as its header says.

use crate::process::{Example, own_secret, row_created, signed};

#[cfg(all(feature = "axum", feature = "testing"))]
#[path = "../../examples/custom_store/store.rs"]
mod store;

/// What no example takes from its environment, a file or its operator.
#[cfg(feature = "axum")]
const PUBLISHED: &str = "whsec_made_up_for_the_examples";

/// The rules for every example, whatever it is built on: one run, no second one, no run for a
/// delivery that is not authentic.
fn check_the_rules(example: &mut Example, secret: &str, id: &str) {
    let body = row_created(id, "{}");
    assert_eq!(example.deliver(secret, &body).status, 204);
    example.line_with(id);
    assert_eq!(example.deliver(secret, &body).status, 200);

    let changed = body.replace("row_1", "row_2");
    let headers = signed(secret, &body, 0);
    let changed = example.send("POST", "/webhooks", &headers, &changed);
    assert_eq!(changed.status, 401);
    let stale = example.send("POST", "/webhooks", &signed(secret, &body, 301), &body);
    assert_eq!(stale.status, 401);
    assert_eq!(stale.body, changed.body);
    assert_eq!(
        example.deliver("whsec_made_up_and_another", &body).status,
        401
    );
    assert_eq!(example.send("GET", "/webhooks", &[], "").status, 405);
}

#[test]
fn custom_server_takes_the_walk_over_plain_tcp() {
    let mut example = Example::start("custom_server", &[("WEBHOOK_SECRET", own_secret())]);
    check_the_rules(&mut example, own_secret(), "evt_custom");
    let announced = [("Content-Length", "1048577".to_owned())];
    let mut headers = signed(own_secret(), "", 0);
    headers.extend(announced);
    assert_eq!(example.send("POST", "/webhooks", &headers, "").status, 413);
    // The reason with its sources, and the claim of the refused.
    let mut headers = signed("whsec_made_up_and_another", "{}", 0);
    headers.push(("X-Service-Webhook-Id", "wh_1".to_owned()));
    assert_eq!(
        example.send("POST", "/webhooks", &headers, "{}").status,
        401
    );
    example.line_with("not authentic or not fresh: the signature is not that of these bytes");
    example.line_with("subscription wh_1, which is unproven");
    // A failure is released: the next attempt runs again, and is not answered as a duplicate.
    let misfit = r#"{"id":"evt_misfit","type":"row.created","data":7}"#;
    for _ in 0..2 {
        assert_eq!(example.deliver(own_secret(), misfit).status, 500);
        example.line_with("evt_misfit failed: ");
    }
}

#[test]
fn custom_server_renews_the_lease_of_a_long_run() {
    let settings = [("WEBHOOK_SECRET", own_secret()), ("WORK_MS", "7000")];
    let example = Example::start("custom_server", &settings);
    let body = row_created("evt_long", "{}");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| example.deliver(own_secret(), &body).status);
        // Longer than the lease, which is 3 s.
        std::thread::sleep(std::time::Duration::from_millis(4_000));
        assert_eq!(example.deliver(own_secret(), &body).status, 503);
        assert_eq!(first.join().unwrap(), 204);
    });
    assert_eq!(example.deliver(own_secret(), &body).status, 200);
}

// In a package whose dependency on this crate has `metrics`, and which is built where all features
// are.
#[cfg(all(feature = "axum", feature = "metrics"))]
#[test]
fn hyper_server_guards_a_plain_tower_service() {
    let mut example = Example::start("hyper_server", &[("WEBHOOK_SECRET", own_secret())]);
    check_the_rules(&mut example, own_secret(), "evt_hyper");
    let again = example.deliver(own_secret(), &row_created("evt_hyper", "{}"));
    assert!(again.is_replay(), "{again:?}");
}

#[cfg(feature = "axum")]
mod axum {
    use std::path::PathBuf;

    use super::*;

    /// A path in a directory that cargo keeps for tests.
    fn scratch(name: &str) -> PathBuf {
        let name = format!("{name}-{}", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_file(&path);
        path
    }

    #[test]
    fn secret_rotation_takes_old_and_new_without_a_restart() {
        let (old, new) = (own_secret(), &*format!("{}_new", own_secret()));
        let file = scratch("secrets");
        std::fs::write(&file, format!("2026-05 {old}\n")).unwrap();
        let mut example = Example::start(
            "secret_rotation",
            &[("SECRETS_FILE", file.to_str().unwrap())],
        );
        let body = |n: u32| row_created(&format!("evt_{n}"), "{}");
        assert_eq!(example.deliver(old, &body(1)).status, 204);
        example.line_with("evt_1 signed with the key 2026-05");
        assert_eq!(example.deliver(new, &body(2)).status, 401);

        std::fs::write(&file, format!("2026-11 {new}\n2026-05 {old}\n")).unwrap();
        example.line_with("live keys: 2026-11, 2026-05");
        assert_eq!(example.deliver(new, &body(2)).status, 204);
        assert_eq!(example.deliver(old, &body(3)).status, 204);
        // Rotation changes none of the remembered events.
        assert!(example.deliver(new, &body(1)).is_replay());

        std::fs::write(&file, "half-writ").unwrap();
        example.line_with("kept the old secrets");
        assert_eq!(example.deliver(old, &body(4)).status, 204);
        std::fs::write(&file, format!("2026-12 {PUBLISHED}\n")).unwrap();
        example.line_with("kept the old secrets: this secret is published");
        assert_eq!(example.deliver(PUBLISHED, &body(5)).status, 401);

        std::fs::write(&file, format!("2026-11 {new}\n")).unwrap();
        while example.count_lines_with("live keys: 2026-11") < 2 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(example.deliver(old, &body(5)).status, 401);
        assert_eq!(example.deliver(new, &body(5)).status, 204);
        // No part of a secret is ever printed.
        for secret in [old, PUBLISHED] {
            assert_eq!(example.count_lines_with(secret), 0);
        }
        let _ = std::fs::remove_file(file);
    }

    #[test]
    fn many_subscriptions_looks_each_up_once_and_forgets_when_told() {
        let ports = [("OPERATOR_ADDR", "127.0.0.1:0")];
        let mut example = Example::start_with("many_subscriptions", &["--try"], &ports);
        example.line_with("anyone can sign with them");
        let line = example.line_with("operator: ");
        let operator = Operator(line.strip_prefix("operator: ").unwrap().to_owned());
        let deliver = |example: &Example, subscription: &str, secret: &str, id: &str| {
            let body = row_created(id, "{}");
            let mut headers = signed(secret, &body, 0);
            headers.push(("X-Service-Webhook-Id", subscription.to_owned()));
            example.send("POST", "/webhooks", &headers, &body).status
        };
        let secret_of = |subscription: &str| format!("whsec_made_up_for_{subscription}");
        let good = |example: &Example, subscription: &str, id: &str| {
            deliver(example, subscription, &secret_of(subscription), id)
        };

        // Eight at one moment, one query.
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let numbers = (0..8).map(|number| format!("evt_{number}"));
            let started: Vec<_> = numbers
                .map(|id| scope.spawn(|| good(&example, "wh_7", &{ id })))
                .collect();
            started.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(statuses, [204; 8]);
        example.line_with("evt_7 for wh_7");
        assert_eq!(example.count_lines_with("query: wh_7 is there"), 1);
        // Another subscription remembers for itself.
        assert_eq!(good(&example, "wh_10000", "evt_7"), 204);
        example.line_with("evt_7 for wh_10000");
        assert_eq!(good(&example, "wh_7", "evt_7"), 200);

        assert_eq!(good(&example, "wh_10001", "evt_1"), 401);
        example.line_with("query: wh_10001 is unknown");
        assert_eq!(good(&example, "wh_'or'1'='1", "evt_1"), 401);
        assert_eq!(deliver(&example, "wh_7", PUBLISHED, "evt_9"), 401);
        assert_eq!(good(&example, "wh_down", "evt_1"), 503);
        example.line_with("made up: the database is down");

        let another = "whsec_made_up_another_one";
        assert_eq!(operator.ask("PUT", "/subscriptions/wh_7", another), 204);
        assert_eq!(good(&example, "wh_7", "evt_9"), 401);
        assert_eq!(deliver(&example, "wh_7", another, "evt_9"), 204);
        assert_eq!(operator.ask("PUT", "/subscriptions/wh_7", "whsec_"), 400);
        assert_eq!(operator.ask("DELETE", "/subscriptions/wh_7", ""), 204);
        assert_eq!(deliver(&example, "wh_7", another, "evt_10"), 401);
        assert_eq!(operator.ask("DELETE", "/subscriptions/wh_7", ""), 404);
        assert_eq!(operator.ask("GET", "/stats", ""), 200);
        // One more query for each change, and none for an id of another form.
        example.line_with("query: wh_7 is unknown");
        assert_eq!(example.count_lines_with("query: wh_7 is there"), 2);
        assert_eq!(example.count_lines_with("or'1"), 0);
        assert_eq!(example.count_lines_with("whsec"), 0);

        // Without `--try` nothing is there, and no published secret gets in.
        let mut example = Example::start("many_subscriptions", &ports);
        let line = example.line_with("operator: ");
        let operator = Operator(line.strip_prefix("operator: ").unwrap().to_owned());
        assert_eq!(good(&example, "wh_7", "evt_1"), 401);
        assert_eq!(operator.ask("PUT", "/subscriptions/wh_8", PUBLISHED), 400);
        assert_eq!(
            operator.ask("PUT", "/subscriptions/wh_8", own_secret()),
            204
        );
        assert_eq!(deliver(&example, "wh_8", own_secret(), "evt_1"), 204);
    }

    /// The operator's port of an example.
    struct Operator(String);

    impl Operator {
        fn ask(&self, method: &str, path: &str, body: &str) -> u16 {
            crate::process::Reply::to(&self.0, method, path, &[], body).status
        }
    }

    #[test]
    fn custom_store_keeps_the_rules() {
        let mut example = Example::start("custom_store", &[("WEBHOOK_SECRET", own_secret())]);
        check_the_rules(&mut example, own_secret(), "evt_store");
        let again = example.deliver(own_secret(), &row_created("evt_store", "{}"));
        assert!(again.is_replay(), "{again:?}");
    }

    /// The store itself, under the suite that every store passes.
    #[cfg(feature = "testing")]
    mod store_of_ones_own {
        use std::sync::Arc;
        use std::time::Duration;

        use hookgate::{
            DedupeStore,
            clock::{ManualClock, UnixSeconds},
            dedupe::Capacity,
        };
        use hookgate_testing::{StoreConformance, StoreUnderTest};

        use crate::examples::store::MapStore;

        struct Map(ManualClock);

        impl StoreUnderTest for Map {
            async fn open(&self, capacity: Option<Capacity>) -> Option<Arc<dyn DedupeStore>> {
                if capacity.is_some() {
                    return None; // it keeps whatever it is given
                }
                Some(Arc::new(MapStore(self.0.clone(), Default::default())))
            }

            async fn advance(&self, time: Duration) {
                self.0.advance(time);
            }
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn custom_store_keeps_the_contract() {
            let map = Map(ManualClock::at(UnixSeconds::new(1_763_690_000)));
            StoreConformance::new(map).run().await.assert_kept();
        }
    }

    #[cfg(unix)]
    #[test]
    fn receiver_prints_typed_events_and_ends_gracefully() {
        let mut example = Example::start("receiver", &[("WEBHOOK_SECRET", own_secret())]);
        let created = row_created("evt_1", r#"{"Customer":"Ada","Total":12.50}"#);
        assert_eq!(example.deliver(own_secret(), &created).status, 204);
        example.line_with("evt_1 row.created: Ada ordered for 12.50 (row_1, entered by Bo)");
        assert!(example.deliver(own_secret(), &created).is_replay());
        example.line_with("200 replayed");
        // A property that is filled for the first time.
        let updated = r#"{"id":"evt_4","type":"row.updated","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","changes":{"Total":{"before":null,"after":9.90}},"updatedBy":{"id":"usr_1","name":"Bo","email":"bo@example.com"}}}"#;
        assert_eq!(example.deliver(own_secret(), updated).status, 204);
        example.line_with("evt_4 row.updated: total nothing became 9.90 (row_1, changed by Bo)");
        let other = r#"{"id":"evt_2","type":"page.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{"title":"Plans"}}"#;
        assert_eq!(example.deliver(own_secret(), other).status, 204);
        example.line_with(r#"evt_2 page.created: {"title":"Plans"}"#);
        let mismatch = row_created("evt_3", r#"{"Customer":"Ada","Total":"much"}"#);
        assert_eq!(example.deliver(own_secret(), &mismatch).status, 422);
        example.line_with("Total does not fit");
        assert!(example.terminate());
        example.line_with("stopped, 0 runs aborted");
    }

    #[test]
    fn event_router_takes_each_event_to_its_arm() {
        let (secret, other) = (own_secret(), &*format!("{}_2", own_secret()));
        let secrets = format!("wh_1={secret},wh_2={other}");
        let mut example = Example::start("event_router", &[("WEBHOOK_SECRETS", &secrets)]);
        for line in [
            "subscription to page.created; data model: any",
            "subscription to row.created; data model: dm_invoices",
            "subscription to row.created, row.deleted, row.updated; data model: dm_orders",
        ] {
            example.line_with(line);
        }
        let deliver = |example: &Example, subscription: &str, secret: &str, body: &str| {
            let mut headers = signed(secret, body, 0);
            headers.push(("X-Service-Webhook-Id", subscription.to_owned()));
            example.send("POST", "/webhooks", &headers, body)
        };
        let created = |id: &str, model: &str, properties: &str| {
            row_created(id, properties).replace("dm_1", model)
        };
        let order = created("evt_1", "dm_orders", r#"{"Customer":"Ada","Total":12.50}"#);
        assert_eq!(deliver(&example, "wh_1", secret, &order).status, 204);
        example.line_with("order 1: Ada for 12.50");
        assert!(deliver(&example, "wh_1", secret, &order).is_replay());

        let invoice = created("evt_2", "dm_invoices", r#"{"Number":"2026-7"}"#);
        assert_eq!(deliver(&example, "wh_2", other, &invoice).status, 204);
        example.line_with("invoice 2026-7");
        assert_eq!(deliver(&example, "wh_1", other, &invoice).status, 401);

        let mismatch = created(
            "evt_3",
            "dm_invoices",
            r#"{"Customer":"Ada","Total":12.50}"#,
        );
        assert_eq!(deliver(&example, "wh_2", other, &mismatch).status, 422);
        example.line_with("evt_3: 422 type_mismatch: data.properties.Number is missing");

        let page = r#"{"id":"evt_4","type":"page.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{"title":"Plans"}}"#;
        assert_eq!(deliver(&example, "wh_1", secret, page).status, 204);
        example.line_with("page Plans");

        let unknown = created("evt_5", "dm_customers", "{}");
        assert_eq!(deliver(&example, "wh_1", secret, &unknown).status, 204);
        example.line_with(
            "evt_5: 204 unhandled: no handler for row.created of the data model dm_customers",
        );

        let alone = format!("wh_1={secret}");
        let mut example = Example::start("event_router", &[("WEBHOOK_SECRETS", &alone)]);
        check_the_rules(&mut example, secret, "evt_router");

        for (secrets, expected) in [
            (secret, "expected ID=SECRET"),
            (&*format!("wh_1={PUBLISHED}"), "this secret is published"),
        ] {
            let said = Example::refused("event_router", &[("WEBHOOK_SECRETS", secrets)]);
            let shows = [secret, PUBLISHED].map(|secret| said.contains(secret));
            assert!(said.contains(expected) && shows == [false; 2], "{said}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn receiver_ends_within_its_limits_while_clients_hold_connections_open() {
        // Five seconds for the server. No run is under way, so `drain` ends at once. A busy machine
        // may need longer once.
        let limit = std::time::Duration::from_secs(9);
        let is_in_time = (0..5).any(|_| {
            let mut example = Example::start("receiver", &[("WEBHOOK_SECRET", own_secret())]);
            let held = example.held_open(own_secret());
            let asked = std::time::Instant::now();
            assert!(example.terminate());
            let took = asked.elapsed();
            example.line_with("stopped, 0 runs aborted");
            drop(held);
            took < limit
        });
        assert!(is_in_time);
    }

    #[test]
    fn receiver_asks_for_a_secret_and_takes_the_published_one_only_with_try() {
        let said = Example::refused("receiver", &[]);
        assert!(said.contains("set WEBHOOK_SECRET, or give --try"), "{said}");
        let published = "whsec_made_up_for_local_tries";
        let said = Example::refused("receiver", &[("WEBHOOK_SECRET", published)]);
        assert!(
            said.contains("WEBHOOK_SECRET: this secret is published"),
            "{said}"
        );
        assert!(!said.contains(published), "{said}");

        let mut example = Example::start_with("receiver", &["--try"], &[]);
        example.line_with("anyone can sign with it");
        let created = row_created("evt_try", r#"{"Customer":"Ada","Total":12.50}"#);
        assert_eq!(example.deliver(published, &created).status, 204);
    }

    #[test]
    fn receiver_says_what_keeps_it_from_starting() {
        let key = "tk_live_made_up_for_the_examples";
        let said = Example::refused("receiver", &[("WEBHOOK_SECRET", key)]);
        let advice = "WEBHOOK_SECRET: this is an API key: paste the subscription's secret";
        assert!(said.contains(advice), "{said}");
        assert!(!said.contains(key), "{said}");

        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let said = Example::refused("receiver", &[("ADDR", &address)]);
        let advice = format!("can't listen on {address}: ");
        assert!(said.contains(&advice), "{said}");
    }

    mod conformance {
        use serde_json::{Value, json};

        use super::*;

        const SECRET: &str = "whsec_made_up_for_the_examples";
        const OTHER: &str = "another-form-of-secret";

        fn start() -> Example {
            Example::start(
                "conformance",
                &[("SECRET", SECRET), ("SECRET2", OTHER), ("MAX_BODY", "2000")],
            )
        }

        fn deliver(example: &Example, subscription: &str, secret: &str, body: &str) -> u16 {
            let mut headers = signed(secret, body, 0);
            headers.push(("X-Service-Webhook-Id", subscription.to_owned()));
            example.send("POST", "/webhooks", &headers, body).status
        }

        fn count(example: &Example, query: &str) -> Value {
            let reply = example.get(&format!("/count{query}"));
            assert_eq!(reply.status, 200);
            serde_json::from_str(&reply.body).unwrap()
        }

        #[test]
        fn counts_runs_by_the_id_in_the_body() {
            let example = start();
            assert_eq!(count(&example, ""), json!({"total": 0}));
            assert_eq!(
                count(&example, "?id=evt_1"),
                json!({"total": 0, "effects": 0, "starts": 0, "type": null})
            );
            let body = row_created("evt_1", "{}");
            assert_eq!(deliver(&example, "wh_1", SECRET, &body), 204);
            assert_eq!(deliver(&example, "wh_1", SECRET, &body), 200);
            assert_eq!(
                count(&example, "?id=evt_1"),
                json!({"total": 1, "effects": 1, "starts": 1, "type": "row.created"})
            );
            // Another subscription has a scope of its own; its run counts under the same id.
            assert_eq!(deliver(&example, "wh_2", OTHER, &body), 204);
            assert_eq!(count(&example, "?id=evt_1")["effects"], 2);
            assert_eq!(count(&example, ""), json!({"total": 2}));
            assert_eq!(deliver(&example, "wh_1", OTHER, &body), 401);
            assert_eq!(deliver(&example, "wh_3", SECRET, &body), 401);
            assert_eq!(
                example.deliver(SECRET, &body).status,
                401,
                "which of the two?"
            );

            let odd = row_created("evt ä/?&", "{}");
            assert_eq!(deliver(&example, "wh_1", SECRET, &odd), 204);
            assert_eq!(count(&example, "?id=evt%20%C3%A4%2F%3F%26")["effects"], 1);
        }

        #[test]
        fn obeys_the_probe() {
            let example = start();
            let run = |id: &str, probe: &str| {
                let body = row_created(id, &format!(r#"{{"probe":"{probe}"}}"#));
                deliver(&example, "wh_1", SECRET, &body)
            };
            let statuses = |id, probe| [(); 4].map(|()| run(id, probe));
            assert_eq!(statuses("evt_fail", "fail=2"), [500, 500, 204, 200]);
            assert_eq!(statuses("evt_panic", "panic=1"), [500, 204, 200, 200]);
            assert_eq!(statuses("evt_both", "panic=1;fail=2"), [500, 500, 204, 200]);
            assert_eq!(count(&example, "?id=evt_both")["starts"], 3);

            let started = std::time::Instant::now();
            assert_eq!(run("evt_sleep", "sleep=300;fail=1"), 500);
            assert!(started.elapsed().as_millis() >= 300);
            assert_eq!(run("evt_sleep", "sleep=300;fail=1"), 204);
        }

        #[test]
        fn copies_at_one_moment_run_once() {
            let example = start();
            let body = row_created("evt_race", r#"{"probe":"sleep=200"}"#);
            let statuses: Vec<u16> = std::thread::scope(|scope| {
                let copies: Vec<_> = (0..4)
                    .map(|_| scope.spawn(|| deliver(&example, "wh_1", SECRET, &body)))
                    .collect();
                copies
                    .into_iter()
                    .map(|copy| copy.join().unwrap())
                    .collect()
            });
            assert_eq!(count(&example, "?id=evt_race")["starts"], 1, "{statuses:?}");
            assert_eq!(statuses.iter().filter(|status| **status == 204).count(), 1);
        }

        #[test]
        fn keeps_the_limit_that_it_is_given() {
            let example = start();
            let of_length = |id: &str, length: usize| {
                let empty = row_created(id, r#"{"pad":""}"#).len();
                let pad = "x".repeat(length - empty);
                row_created(id, &format!(r#"{{"pad":"{pad}"}}"#))
            };
            let exact = of_length("evt_exact", 2_000);
            assert_eq!(deliver(&example, "wh_1", SECRET, &exact), 204);
            let above = of_length("evt_above", 2_001);
            assert_eq!(deliver(&example, "wh_1", SECRET, &above), 413);
            assert_eq!(example.get("/webhooks").status, 405);
            assert!(example.get("/webhooks").has("allow: post"));
        }

        #[test]
        fn one_subscription_needs_no_name() {
            let example = Example::start("conformance", &[("SECRET", SECRET)]);
            let body = row_created("evt_1", "{}");
            assert_eq!(example.deliver(SECRET, &body).status, 204);
            assert_eq!(deliver(&example, "wh_2", SECRET, &body), 401);
        }
    }
}
