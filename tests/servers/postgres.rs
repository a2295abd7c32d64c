//! Claims on PostgreSQL, and claims inside a transaction.

mod clock;
mod exactly_once;
mod faults;
mod race;
mod schema;
mod sessions;
mod sizes;
mod store;
mod transaction;

use std::str::FromStr;

use hookgate::postgres::{Postgres, migrate};
use tokio_postgres::{Client, Config, NoTls};

use crate::support::PostgresServer;

async fn client_at(config: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(config, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A server with its tables.
async fn migrated(settings: &[&str]) -> Option<PostgresServer> {
    let server = PostgresServer::start(settings)?;
    migrate(&client_at(&server.config()).await).await.unwrap();
    Some(server)
}

fn database(config: &str) -> Postgres {
    Postgres::new(Config::from_str(config).unwrap(), NoTls)
}

/// For what is no matter of time: a busy machine makes no connection within the usual one.
fn patient(config: &str) -> Postgres {
    database(config).with_timeout(std::time::Duration::from_secs(30))
}
