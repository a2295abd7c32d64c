//! Claims on PostgreSQL, claims inside a transaction, and the inbox in a table: each test starts
//! the server that it needs on a free loopback port, and stops it.
//!
//! Where a server's program is missing, its tests print that and are left out; `scripts/test`
//! installs missing programs, and sets `HOOKGATE_REQUIRE_TOOLS`, with which no test is left out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // a failed expectation must stop the test
#![allow(unreachable_pub, missing_debug_implementations)] // a test has no API
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // The numbers are the tests' own.
#![cfg(unix)]

mod clock;
mod exactly_once;
mod faults;
mod inbox;
mod order;
mod pooler;
mod race;
mod rights;
mod schema;
mod sessions;
mod sizes;
mod store;
mod tls;
mod transaction;

#[allow(dead_code)]
#[path = "../../../../tests/it/process.rs"]
mod process;
#[allow(dead_code)] // shared with the tests of the workspace
mod support;

use std::str::FromStr;

use hookgate::dedupe::{ClaimToken, ClaimValues, ClaimedIn, EventKey};
use hookgate_postgres::{Postgres, PostgresStore, claim_values_in, migrate};
use tokio_postgres::{Client, Config, IsolationLevel, NoTls, Transaction};

fn database(config: &str) -> Postgres {
    Postgres::new(Config::from_str(config).unwrap(), NoTls)
}

/// For tests in which time plays no part: a busy machine makes no connection within the usual
/// limit.
fn patient(config: &str) -> Postgres {
    database(config).with_timeout(std::time::Duration::from_secs(30))
}

/// A store of a database that answers a busy machine in its time.
fn store(config: &str) -> PostgresStore {
    PostgresStore::new(&patient(config), "test")
}

/// A store with so many connections, within the usual limits.
fn hasty(config: &str, connections: usize) -> PostgresStore {
    PostgresStore::new(&database(config).with_connections(connections), "test")
}

fn key(id: &str) -> EventKey {
    EventKey::new("s", id)
}

fn token() -> ClaimToken {
    ClaimToken::new(b"{}")
}

const LEVELS: [IsolationLevel; 3] = [
    IsolationLevel::ReadCommitted,
    IsolationLevel::RepeatableRead,
    IsolationLevel::Serializable,
];

async fn begin(client: &mut Client, level: IsolationLevel) -> Transaction<'_> {
    let transaction = client.build_transaction().isolation_level(level);
    transaction.start().await.unwrap()
}

/// Claims in a transaction of its own.
async fn claimed_in(client: &mut Client, values: &ClaimValues) -> ClaimedIn {
    let transaction = client.transaction().await.unwrap();
    let claimed = claim_values_in(&transaction, values).await.unwrap();
    transaction.commit().await.unwrap();
    claimed
}
