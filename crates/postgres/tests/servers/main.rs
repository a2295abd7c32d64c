//! Claims on PostgreSQL, claims inside a transaction, and the inbox in a table: each test starts the server that it needs on a free
//! loopback port, and stops it.
//!
//! Where a server's program is missing, its tests print that and are left out; `scripts/test` installs missing programs, and sets
//! `HOOKGATE_REQUIRE_TOOLS`, with which no test is left out.

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

#[allow(dead_code)] // shared with the tests of the workspace
mod support;

use std::str::FromStr;

use hookgate_postgres::{Postgres, migrate};
use tokio_postgres::{Config, NoTls};

fn database(config: &str) -> Postgres {
    Postgres::new(Config::from_str(config).unwrap(), NoTls)
}

/// For tests in which time plays no part: a busy machine makes no connection within the usual limit.
fn patient(config: &str) -> Postgres {
    database(config).with_timeout(std::time::Duration::from_secs(30))
}
