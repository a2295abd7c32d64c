//! Kill loops: receivers and workers are SIGKILLed at random under load, or stand still for longer
//! than their leases, and their servers are killed as well, while a sender keeps each event until
//! it gets a 2xx. In the end no acknowledged event is lost, and each second run had a reason.
//!
//! In `cargo test` each loop takes some seconds, with a new seed; a loop that fails prints it. On
//! demand:
//!
//! ```sh
//! # So many kills a loop.
//! HOOKGATE_KILLS=200 cargo test -p hookgate-tests --all-features --test servers kill:: -- --nocapture --test-threads=2
//! # The same chances again.
//! HOOKGATE_SEED=4711 cargo test -p hookgate-tests --all-features --test servers kill::claims_on_redis -- --nocapture
//! ```
//!
//! A seed repeats the random choices of the test, and not how the machine schedules it.
//! `kill/record.md` holds a long run.

mod ledger;
mod pause;
mod processes;
mod role;
mod round;
mod sender;

use hookgate::Scheme;

use role::Role;
use round::{Engine, Topology};

fn topology(test: &'static str, engine: Engine, roles: &'static [Role]) -> Topology {
    Topology {
        test,
        engine,
        roles,
        clock_jumps: false,
        scheme: Scheme::WORKSPACE,
    }
}

#[test]
fn inbox_on_sqlite_in_one_process() {
    let test = "kill::inbox_on_sqlite_in_one_process";
    topology(test, Engine::Sqlite, &[Role::AcceptsAndWorks]).run();
}

#[test]
fn inbox_on_sqlite_in_two_processes() {
    let test = "kill::inbox_on_sqlite_in_two_processes";
    topology(test, Engine::Sqlite, &[Role::Accepts, Role::Works]).run();
}

/// With libfaketime: the wall clock that both processes read is an hour ahead, or behind, and right
/// again.
#[test]
fn inbox_on_sqlite_while_the_clock_jumps() {
    let test = "kill::inbox_on_sqlite_while_the_clock_jumps";
    let roles = &[Role::Accepts, Role::Works, Role::Works];
    let topology = Topology {
        clock_jumps: true,
        ..topology(test, Engine::Sqlite, roles)
    };
    topology.run();
}

#[test]
fn inbox_on_postgres() {
    let roles = &[Role::Accepts, Role::Accepts, Role::Works, Role::Works];
    topology("kill::inbox_on_postgres", Engine::Postgres, roles).run();
}

#[test]
fn claims_on_redis() {
    let roles = &[Role::Handles, Role::Handles];
    topology("kill::claims_on_redis", Engine::Redis, roles).run();
}

#[test]
fn claims_on_postgres() {
    let roles = &[Role::Handles, Role::Handles];
    topology("kill::claims_on_postgres", Engine::Postgres, roles).run();
}

#[test]
fn effects_in_the_same_transaction() {
    let test = "kill::effects_in_the_same_transaction";
    let roles = &[Role::HandlesInTransaction, Role::HandlesInTransaction];
    topology(test, Engine::Postgres, roles).run();
}

#[test]
fn claims_on_sqlite() {
    topology("kill::claims_on_sqlite", Engine::Sqlite, &[Role::Handles]).run();
}

#[test]
fn claims_on_sqlite_in_two_processes() {
    let test = "kill::claims_on_sqlite_in_two_processes";
    topology(test, Engine::Sqlite, &[Role::Handles, Role::Handles]).run();
}

#[test]
fn effects_in_the_same_transaction_of_sqlite() {
    let test = "kill::effects_in_the_same_transaction_of_sqlite";
    let roles = &[Role::HandlesInTransaction, Role::HandlesInTransaction];
    topology(test, Engine::Sqlite, roles).run();
}

/// Other senders: their ids stand in the body, and in a signed header.
#[test]
fn effects_of_stripe_in_the_same_transaction_of_sqlite() {
    effects_of(
        "kill::effects_of_stripe_in_the_same_transaction_of_sqlite",
        Scheme::STRIPE,
    );
}

#[test]
fn effects_of_standard_webhooks_in_the_same_transaction_of_sqlite() {
    effects_of(
        "kill::effects_of_standard_webhooks_in_the_same_transaction_of_sqlite",
        Scheme::STANDARD_WEBHOOKS,
    );
}

fn effects_of(test: &'static str, scheme: Scheme) {
    let roles = &[Role::HandlesInTransaction, Role::HandlesInTransaction];
    let topology = Topology {
        scheme,
        ..topology(test, Engine::Sqlite, roles)
    };
    topology.run();
}

/// The loops can fail: a sink that answers before the delivery is durable loses events, and the
/// loop finds it.
#[test]
fn a_sink_that_answers_too_early_is_found_out() {
    let test = "kill::a_sink_that_answers_too_early_is_found_out";
    let roles = &[Role::AcceptsTooEarly, Role::Works];
    let report = topology(test, Engine::Sqlite, roles).report().unwrap();
    let lost = report
        .wrong
        .iter()
        .filter(|wrong| wrong.ends_with("is not in the inbox"));
    assert!(lost.count() > 0, "{report}");
}
