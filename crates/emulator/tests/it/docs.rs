//! docs/emulator.md against the program: no control, switch, fault or test is missing, and none is named that does not exist.

use serde_json::{Value, json};

use crate::Service;

const PAGE: &str = include_str!("../../../../docs/emulator.md");
const TESTS: [(&str, &str); 12] = [
    ("authentication", include_str!("authentication.rs")),
    ("access", include_str!("access.rs")),
    ("control", include_str!("control.rs")),
    ("data_models", include_str!("data_models.rs")),
    ("deliveries", include_str!("deliveries.rs")),
    ("envelope", include_str!("envelope.rs")),
    ("limits", include_str!("limits.rs")),
    ("rows", include_str!("rows.rs")),
    ("specification", include_str!("specification.rs")),
    ("things", include_str!("things.rs")),
    ("triggers", include_str!("triggers.rs")),
    ("values", include_str!("values.rs")),
];

/// The first cells of the table with this head, without their backticks.
fn table(head: &str) -> Vec<String> {
    let rows = PAGE.split(head).nth(1).expect(head).lines().skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.map(|line| line.split('|').nth(1).unwrap().trim().replace('`', ""))
        .collect()
}

#[tokio::test]
async fn the_page_lists_every_control_switch_and_fault() {
    let service = Service::orders().await;
    let controls = service.controls().await;
    assert_eq!(table("| Endpoint | Takes | Answers | Does |"), controls);
    let switches = service.control("GET", "switches", None).await.data();
    let names: Vec<_> = switches.as_object().unwrap().keys().cloned().collect();
    assert_eq!(table("| Switch | Values | Decides |"), names);
    for (name, switch) in switches.as_object().unwrap() {
        let values: Vec<_> = switch["values"]
            .as_array()
            .unwrap()
            .iter()
            .map(|value| format!("`{}`", value.as_str().unwrap()))
            .collect();
        let row = format!(
            "| `{name}` | {} | {} |",
            values.join(", "),
            switch["about"].as_str().unwrap()
        );
        assert!(PAGE.contains(&row), "{row}");
        assert_eq!(
            switch["value"], switch["values"][0],
            "the first value is the default"
        );
    }
    let faults = table("| Fault | Where | Effect |");
    let known = service.control("GET", "faults/table", None).await.data();
    for fault in known.as_array().unwrap() {
        let text = |name: &str| fault[name].as_str().unwrap().to_owned();
        let row = format!(
            "| `{}` | {} | {} |",
            text("fault"),
            text("where"),
            text("about")
        );
        assert!(PAGE.contains(&row), "{row}");
    }
    assert_eq!(known.as_array().unwrap().len(), faults.len());
    let unknown = service
        .control(
            "POST",
            "faults",
            Some(json!({ "fault": "none", "first": 1 })),
        )
        .await;
    let message = unknown.refused(400, "VALIDATION_ERROR");
    for fault in &faults {
        assert!(message.contains(fault), "{fault}: {message}");
        let on: Value = json!({ "fault": fault, "first": 1 });
        service.control("POST", "faults", Some(on)).await.data();
    }
    let on = service.control("GET", "faults", None).await.data();
    assert_eq!(on.as_array().unwrap().len(), 14);
}

#[test]
fn every_test_that_the_page_names_exists() {
    let shown = PAGE.split("| Section | Statement | Test |").nth(1).unwrap();
    let rows = shown
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let mut seen = 0;
    for row in rows {
        let tests = row.split('|').nth(3).unwrap();
        for test in tests.split(',') {
            let (module, name) = test.trim().trim_matches('`').split_once("::").expect(row);
            let text = TESTS
                .iter()
                .find(|(other, _)| *other == module)
                .expect(module)
                .1;
            assert!(text.contains(&format!("async fn {name}()")), "{test}");
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}
