//! Claims on PostgreSQL, and claims inside a transaction.

mod age;
mod clock;
mod exactly_once;
mod faults;
mod order;
mod pooler;
mod race;
mod schema;
mod sessions;
mod sizes;
mod store;
mod tls;
mod transaction;

use std::str::FromStr;

use hookgate::postgres::Postgres;
use tokio_postgres::{Config, NoTls};

fn database(config: &str) -> Postgres {
    Postgres::new(Config::from_str(config).unwrap(), NoTls)
}

/// For tests in which time plays no part: a busy machine makes no connection within the usual limit.
fn patient(config: &str) -> Postgres {
    database(config).with_timeout(std::time::Duration::from_secs(30))
}
