//! Small programs, one for each use that README names: each is run by a test, and asserts on its
//! own outcome. `replicas` and `order_rows` need servers, so they are run by the tests in
//! `tests/servers`.

#![allow(clippy::expect_used, clippy::print_stdout)] // a failed expectation must stop the test
#![allow(unreachable_pub, missing_debug_implementations)] // a program has no API

mod one_process;
mod own_queue;
mod own_server;
mod remembers;
#[allow(dead_code)] // its `main` takes 30 s, twice
mod slow_handler;
mod stored_secrets;
mod three_am;
mod whole_app;
mod yesterday;

type Ran = Result<(), Box<dyn std::error::Error>>;

#[test]
fn one_process_with_a_handler_that_uses_question_marks() -> Ran {
    one_process::main()
}

#[test]
fn a_whole_app_has_other_routes_layers_and_an_orderly_end() -> Ran {
    whole_app::main()
}

#[test]
fn secrets_in_a_database_are_rotated_and_removed() -> Ran {
    stored_secrets::main()
}

#[test]
fn a_server_of_ones_own_verifies_and_claims() -> Ran {
    own_server::main()
}

#[test]
fn a_process_that_remembers_has_each_effect_once() -> Ran {
    remembers::main()
}

/// With 6 s in place of 30 s: longer than the sender waits, and longer than the layer lets it.
#[tokio::test]
async fn a_handler_that_takes_longer_than_the_sender_waits_is_behind_an_inbox() -> Ran {
    slow_handler::run(std::time::Duration::from_secs(6)).await
}

#[test]
fn a_queue_of_ones_own_keeps_deliveries() -> Ran {
    own_queue::main()
}

#[test]
fn yesterdays_deliveries_are_replayed() -> Ran {
    yesterday::main()
}

#[test]
fn at_three_in_the_morning_the_mistake_is_found() -> Ran {
    three_am::main()
}
