//! docs/emulator.md against the program: no control, switch, fault or test is missing, and none is
//! named that does not exist.

use serde_json::{Value, json};

use crate::Service;
use crate::support::count;

const PAGE: &str = include_str!("../../../../docs/emulator.md");
const TESTS: [(&str, &str); 11] = [
    ("authentication", include_str!("authentication.rs")),
    ("access", include_str!("access.rs")),
    ("control", include_str!("control.rs")),
    ("data_models", include_str!("data_models.rs")),
    ("deliveries", include_str!("deliveries.rs")),
    ("envelope", include_str!("envelope.rs")),
    ("limits", include_str!("limits.rs")),
    ("rows", include_str!("rows.rs")),
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
    let endpoints = table("| Endpoint | Takes |").join(", ");
    assert_eq!(endpoints.split(", ").collect::<Vec<_>>(), controls);
    let switches = service.get("switches").await.data();
    let names: Vec<_> = switches.as_object().unwrap().keys().cloned().collect();
    assert_eq!(table("| Switch | Values | Decides |"), names);
    for (name, switch) in switches.as_object().unwrap() {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let values = switch["values"].as_array().unwrap().iter();
        let values: Vec<_> = values.map(|value| format!("`{}`", text(value))).collect();
        let (values, about) = (values.join(", "), text(&switch["about"]));
        let row = format!("| `{name}` | {values} | {about} |");
        assert!(PAGE.contains(&row), "{row}");
        // The first value is the default.
        assert_eq!(switch["value"], switch["values"][0], "{name}");
    }
    let faults = table("| Fault | Where | Effect |");
    let known = service.get("faults/table").await.data();
    for fault in known.as_array().unwrap() {
        let cells = ["fault", "where", "about"].map(|name| fault[name].as_str().unwrap());
        let [name, place, about] = cells;
        let row = format!("| `{name}` | {place} | {about} |");
        assert!(PAGE.contains(&row), "{row}");
    }
    assert_eq!(count(&known), faults.len());
    let fault = |name: &str| json!({ "fault": name, "first": 1 });
    let message = service.post("faults", fault("none")).await.invalid();
    for name in &faults {
        assert!(message.contains(name), "{name}: {message}");
        service.post("faults", fault(name)).await.data();
    }
    let on = service.get("faults").await.data();
    assert_eq!(count(&on), 14);
}

/// The statements of the specification that the emulator shows, with their tests.
const SHOWN: &str = "\
| Section | Statement | Test |
|---|---|---|
| Data model | fields; properties in the detail and on request | `data_models::the_list_has_every_data_model_without_properties`, `data_models::a_data_model_has_its_properties_with_options_and_relations` |
| Property | fields, nine types, options, relations | `data_models::a_data_model_has_its_properties_with_options_and_relations` |
| Row | fields, keyed by property id | `rows::a_row_in_a_list_has_id_data_and_both_times` |
| Value formats | each type's values | `values::each_type_takes_its_values_and_gives_them_back`, `values::each_type_refuses_other_values_with_a_message_that_names_the_property` |
| Response envelope | object, list, error | `envelope::every_answer_is_json_in_the_envelope` |
| Endpoint overview | 28 endpoints, each with its scope | `authentication::scopes_are_cumulative_and_403_names_the_scope` |
| List data models | search, limit, details, row counts, total | `data_models::search_matches_title_and_id`, `data_models::a_list_has_100_data_models_by_default`, `data_models::details_and_row_counts_are_asked_for` |
| List rows | limit, offset, orderBy | `rows::a_list_of_rows_has_100_by_default_and_500_at_most`, `rows::offset_skips_rows_and_the_last_page_has_no_more`, `rows::order_by_sorts_by_several_properties_and_earlier_ones_take_precedence` |
| Create rows | single and batch, partial errors | `rows::a_single_row_is_created_from_values`, `rows::a_batch_creates_what_is_right_and_reports_the_others` |
| Update a row | only the listed properties change | `rows::an_update_changes_the_listed_properties_and_answers_the_full_row` |
| Delete a row | id and deleted | `rows::a_deleted_row_is_gone` |
| Groups without shown payloads | paths and envelope | `things::objects_are_kept_as_the_json_that_came_under_ids_of_the_service`, `things::workflows_and_stats_run` |
| Inbound workflow trigger | methods, authentication, both modes, expressions | `triggers::a_call_is_answered_with_the_template_of_the_last_node`, `triggers::a_call_without_the_secret_is_refused` |
| Authentication | Bearer, three forms, name, scope, expiry, shown once, disabled | `authentication::a_missing_or_malformed_key_is_401_and_the_message_states_the_forms`, `authentication::all_three_forms_of_keys_are_accepted`, `authentication::an_expiry_follows_the_emulators_time`, `authentication::a_disabled_key_and_an_expired_one_are_401`, `authentication::a_new_key_is_shown_once` |
| Subscription settings | name, URL, events, data model, secret shown once | `deliveries::a_subscription_is_made_changed_and_deleted_and_its_secret_shown_once`, `deliveries::a_subscription_takes_its_events_and_its_data_model_alone` |
| Event types, Envelope | eight types, property names, before and after, actor | `deliveries::a_row_created_changed_and_deleted_by_the_api_arrives_signed_with_property_names`, `control::events_of_every_type_are_emitted_with_the_data_given` |
| Signature | verified by a receiver of hookgate | `deliveries::a_row_created_changed_and_deleted_by_the_api_arrives_signed_with_property_names` |
| Delivery and retry | waits, attempts, discard, test event, log | `deliveries::a_receiver_with_a_real_clock_takes_the_retries_of_advanced_time`, `deliveries::an_event_is_discarded_after_five_attempts_or_six`, `deliveries::a_test_event_and_a_redelivery_answer_with_their_result` |
| Errors | seven codes | `envelope::malformed_json_is_a_validation_error`, `envelope::what_does_not_exist_is_404_with_its_name`, `data_models::the_use_of_409_is_a_switch`, `limits::the_tiers_have_60_60_and_1000_requests_a_minute`, `deliveries::faults_of_the_api_are_shown_with_their_hits` |
| Limits | rates with their headers | `limits::the_tiers_have_60_60_and_1000_requests_a_minute`, `limits::the_window_follows_the_emulators_time`, `limits::errors_of_a_valid_key_have_the_headers_too` |
";

#[test]
fn every_test_that_shows_a_statement_exists() {
    let rows = SHOWN.lines().skip(2);
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
